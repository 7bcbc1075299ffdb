// A DRAM channel in numbers: organisation, timing, controller. Values come from a standard's table and a preset.
#pragma once

#include <cstdint>

namespace simfa {

// Time inside a channel: half clocks of the command clock. Row commands may start on either edge, activates and column
// commands on the rising edge (even ticks) only.
using Tick = std::int64_t;

enum class RowPolicy : std::uint8_t { open, closed };
enum class Refresh : std::uint8_t { none, all_bank, per_bank };

// What one controller sees. All counts are powers of two.
struct DramOrganisation {
    std::int32_t pseudo_channels = 2;
    std::int32_t sids = 2;         // stack ids: ranks of dies in a stack
    std::int32_t bank_groups = 4;  // of a SID
    std::int32_t banks = 4;        // of a bank group
    std::int32_t rows = 16384;     // of a bank
    std::int32_t columns = 32;     // bursts of a row
    std::int32_t burst_bytes = 32;

    int bank_count() const { return sids * bank_groups * banks; }  // of a pseudo channel
};

// In clocks of the command clock. R, W, A, P: read, write, activate, precharge.
struct DramTiming {
    std::int32_t burst = 2;                   // nBL: data bus time of a burst
    std::int32_t read_latency = 1;            // nCL
    std::int32_t write_latency = 1;           // nCWL
    std::int32_t activate_to_read = 1;        // nRCDRD
    std::int32_t activate_to_write = 1;       // nRCDWR
    std::int32_t precharge_to_activate = 1;   // nRP
    std::int32_t activate_to_precharge = 1;   // nRAS
    std::int32_t activate_to_activate = 1;    // nRC, one bank
    std::int32_t write_recovery = 1;          // nWR: end of write data to precharge
    std::int32_t read_to_precharge = 1;       // nRTP
    std::int32_t column_short = 2;            // nCCDS: other bank group
    std::int32_t column_long = 4;             // nCCDL: same bank group
    std::int32_t column_sid = 3;              // nCCDR: other SID
    std::int32_t activate_short = 1;          // nRRDS
    std::int32_t activate_long = 1;           // nRRDL
    std::int32_t four_activates = 1;          // nFAW
    std::int32_t write_to_read_short = 1;     // nWTRS: end of write data to read
    std::int32_t write_to_read_long = 1;      // nWTRL
    std::int32_t read_to_write = 1;           // nRTW
    std::int32_t precharge_to_precharge = 1;  // nPPD
    std::int32_t refresh_all = 1;             // nRFC
    std::int32_t refresh_bank = 1;            // nRFCpb
    std::int32_t refresh_to_activate = 1;     // nRREFD: refresh of a bank to a row command of another
    std::int32_t refresh_interval = 1;        // nREFI
    std::int32_t refresh_bank_interval = 1;   // nREFIpb, between two banks
    // In half clocks.
    std::int32_t activate_bus_ticks = 3;  // row bus time of an activate; its timing counts from its last edge
    std::int32_t column_bus_ticks = 2;
    std::int32_t precharge_bus_ticks = 1;
    std::int32_t controller_ticks = 1;  // from the end of the data to the requester
};

struct DramControl {
    std::int32_t read_queue_entries = 64;  // bursts, shared by the pseudo channels
    std::int32_t write_queue_entries = 64;
    std::int32_t opened_entries = 32;       // bursts for which a row was opened: they wait apart from the queues
    std::int32_t drain_above_percent = 80;  // of the write queue
    std::int32_t drain_below_percent = 20;
    RowPolicy row_policy = RowPolicy::open;
    std::int32_t row_hit_cap = 0;  // bursts of an open row while another row of the bank waits; 0: no cap
    Refresh refresh = Refresh::all_bank;
    std::int32_t channel = 0;  // all-bank refreshes of different channels are spread over the interval
    std::int32_t channels = 1;
    std::int32_t ecc_overhead_ppm = 0;  // extra data bus time, in millionths
};

}  // namespace simfa
