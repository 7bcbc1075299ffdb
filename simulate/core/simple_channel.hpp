// A memory channel without banks: a fixed latency behind one server.
#pragma once

#include <array>
#include <cstdint>

#include "memory_channel.hpp"
#include "types.hpp"

namespace simfa {

struct SimpleChannelConfig {
    Cycle latency_cycles = 0;                // from the start of service to the data
    std::int64_t line_cycles_numerator = 1;  // server time of a read line, as an exact fraction of cycles
    std::int64_t line_cycles_denominator = 1;
    std::int64_t write_cost_ppm = 1000000;  // server time of a written line against a read one, in millionths
    int sectors = 1;                        // of a line: some of them take their share of its time
    std::int64_t write_queue_entries = 32;  // written lines the channel holds, the one in service included
};

class SimpleChannel final : public MemoryChannel {
  public:
    // Throws `std::invalid_argument` naming the value that cannot be.
    explicit SimpleChannel(const SimpleChannelConfig& config);

    Cycle earliest_write(Cycle now) override;
    void read(std::uint32_t local, SectorMask sectors, Cycle now, std::uint32_t token) override;
    void write(std::uint32_t local, SectorMask sectors, Cycle now) override;
    void advance(Cycle) override {}

  private:
    // Takes the server for `units`; returns the unit of time at which service starts.
    std::int64_t serve(Cycle now, std::int64_t units);

    Cycle latency_cycles_;
    std::int64_t units_per_cycle_;
    std::array<std::int64_t, kMostSectors + 1> read_units_{};  // by the count of sectors
    std::array<std::int64_t, kMostSectors + 1> write_units_{};
    std::int64_t backlog_units_;  // most work ahead of a write that is accepted
    std::int64_t free_ = 0;       // unit of time from which the server is free
};

}  // namespace simfa
