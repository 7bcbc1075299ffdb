// A memory channel with banks: sectors become bursts of a DRAM controller that runs on its own clock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "address_map.hpp"
#include "dram_config.hpp"
#include "dram_controller.hpp"
#include "memory_channel.hpp"
#include "ring_buffer.hpp"
#include "types.hpp"

namespace simfa {

struct DramChannelConfig {
    DramOrganisation organisation;
    DramTiming timing;
    DramControl control;
    std::int64_t ticks_numerator = 1;  // half clocks of the DRAM in an SM cycle, as a fraction
    std::int64_t ticks_denominator = 1;
    std::int32_t line_bytes = 128;
    std::int32_t sector_bytes = 32;
    Cycle path_cycles = 0;  // between the slice and the controller, both ways together
    std::shared_ptr<const AddressMap> map = nullptr;
};

// The controller runs behind the slice and catches up when it must: for a write, whose place depends on it, and before
// the first cycle at which a read can be complete. Reads that find no place in its queue wait here, in order.
class DramChannel final : public MemoryChannel {
  public:
    // Throws `std::invalid_argument` naming the value that cannot be.
    explicit DramChannel(const DramChannelConfig& config);

    Cycle earliest_write(Cycle now) override;
    void read(std::uint32_t local, SectorMask sectors, Cycle now, std::uint32_t token) override;
    void write(std::uint32_t local, SectorMask sectors, Cycle now) override;
    void advance(Cycle now) override;

    DramStats dram_stats() const override { return controller_.stats(); }

  private:
    struct Line {
        std::int32_t bursts_left = 0;
        Tick end = 0;
    };
    struct WaitingRead {
        std::uint32_t local;
        std::uint32_t token;
        SectorMask sectors;
        std::int32_t bursts;
    };

    Tick first_tick(Cycle cycle) const {
        return (cycle * ticks_numerator_ + ticks_denominator_ - 1) / ticks_denominator_;
    }
    Cycle first_cycle(Tick tick) const {
        return tick == DramController::kNeverTick
                   ? kNever
                   : (tick * ticks_denominator_ + ticks_numerator_ - 1) / ticks_numerator_;
    }
    void catch_up(Tick until);
    std::int32_t bursts_of(SectorMask sectors) const;
    void push(std::uint32_t local, SectorMask sectors, bool write, Tick tick, std::uint32_t token);
    void collect();

    DramController controller_;
    std::shared_ptr<const AddressMap> map_;
    std::int64_t ticks_numerator_;
    std::int64_t ticks_denominator_;
    std::int32_t bursts_;  // of a line
    SectorMask all_;
    std::vector<SectorMask> burst_sectors_;  // that each burst of a line has a part of
    Cycle path_cycles_;
    Tick shortest_read_;  // from a read command to the data's arrival at the requester
    Tick controller_ticks_;
    Tick tick_ = 0;            // the controller has come this far
    std::vector<Line> lines_;  // by token
    RingBuffer<WaitingRead> waiting_;
};

}  // namespace simfa
