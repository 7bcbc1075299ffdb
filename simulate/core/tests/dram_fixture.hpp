// HBM3 at 5200 Mb/s, 16 Gb dies, 8 high, in clocks of 769 ps: the 6400 Mb/s values of the standard kept in ns and
// rounded up, and the bank-group rotating mapping g64x.
#pragma once

#include "address_map.hpp"
#include "dram_config.hpp"

namespace simfa::test {

inline DramTiming hbm3_5200() {
    return {.burst = 2,
            .read_latency = 17,
            .write_latency = 9,
            .activate_to_read = 26,
            .activate_to_write = 13,
            .precharge_to_activate = 22,
            .activate_to_precharge = 37,
            .activate_to_activate = 59,
            .write_recovery = 27,
            .read_to_precharge = 8,
            .column_short = 2,
            .column_long = 4,
            .column_sid = 3,
            .activate_short = 4,
            .activate_long = 5,
            .four_activates = 20,
            .write_to_read_short = 6,
            .write_to_read_long = 9,
            .read_to_write = 17,
            .precharge_to_precharge = 2,
            .refresh_all = 455,
            .refresh_bank = 260,
            .refresh_to_activate = 7,
            .refresh_interval = 5070,
            .refresh_bank_interval = 159,
            .activate_bus_ticks = 3,
            .column_bus_ticks = 2,
            .precharge_bus_ticks = 1,
            .controller_ticks = 1};
}

inline AddressMap g64x() {
    using F = DramField;
    return AddressMap(
        {},
        {{F::column, 1},
         {F::bank_group, 2},
         {F::pseudo_channel, 1},
         {F::column, 4},
         {F::bank, 2},
         {F::sid, 1},
         {F::row, 14}},
        {{F::bank_group, F::row, 0}, {F::bank, F::row, 2}, {F::sid, F::row, 4}, {F::pseudo_channel, F::row, 5}});
}

// Row, bank, SID, bank group, pseudo channel, column from high to low, without XORs: places can be written down.
inline AddressMap plain_map() {
    using F = DramField;
    return AddressMap(
        {}, {{F::column, 5}, {F::pseudo_channel, 1}, {F::bank_group, 2}, {F::sid, 1}, {F::bank, 2}, {F::row, 14}}, {});
}

struct Spot {
    std::uint32_t row = 0;
    std::uint32_t bank = 0;
    std::uint32_t sid = 0;
    std::uint32_t bank_group = 0;
    std::uint32_t pseudo_channel = 0;
    std::uint32_t column = 0;
};

// The burst that `plain_map` puts at `spot`.
inline std::uint32_t burst_at(const Spot& spot) {
    return spot.row << 11 | spot.bank << 9 | spot.sid << 8 | spot.bank_group << 6 | spot.pseudo_channel << 5 |
           spot.column;
}

}  // namespace simfa::test
