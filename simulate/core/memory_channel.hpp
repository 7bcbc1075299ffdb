// Device memory as an L2 slice sees it: one channel that takes reads and writes of lines or sectors of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dram_stats.hpp"
#include "ring_buffer.hpp"
#include "sectors.hpp"
#include "types.hpp"

namespace simfa {

// Time only moves forward: the cycles given to successive calls never fall.
class MemoryChannel {
  public:
    MemoryChannel() = default;
    MemoryChannel(const MemoryChannel&) = delete;
    MemoryChannel& operator=(const MemoryChannel&) = delete;
    virtual ~MemoryChannel() = default;

    // `now` if a write of any sectors is accepted at `now`; else the next cycle at which it is worth asking again.
    virtual Cycle earliest_write(Cycle now) = 0;

    // Takes sectors of a line. `local` numbers the lines of this channel; `token` comes back with the data of a read.
    // Reads are always taken: the sender has a place for each. Writes are taken when `earliest_write` says so and are
    // posted: done, for the sender, when taken.
    virtual void read(std::uint32_t local, SectorMask sectors, Cycle now, std::uint32_t token) = 0;
    virtual void write(std::uint32_t local, SectorMask sectors, Cycle now) = 0;

    // Finds all reads that are complete by `now`.
    virtual void advance(Cycle now) = 0;

    // Counts of a channel with banks; zeros for one without.
    virtual DramStats dram_stats() const { return {}; }

    // No read is complete before this cycle; `kNever` if none is outstanding.
    Cycle next_event() const {
        const Cycle completion = completions_.empty() ? kNever : completions_.front().cycle;
        return completion < not_before_ ? completion : not_before_;
    }

    // Takes the token of a read whose data is there by `now`, in order of completion; false if there is none.
    bool pop_completion(Cycle now, std::uint32_t& token) {
        if (completions_.empty() || completions_.front().cycle > now) return false;
        token = completions_.front().token;
        completions_.pop();
        return true;
    }

  protected:
    struct Completion {
        Cycle cycle = 0;
        std::uint32_t token = 0;
    };

    // Files a completion; an earlier one than the last moves forward past the later ones.
    void complete(Cycle cycle, std::uint32_t token) {
        completions_.push({cycle, token});
        for (std::size_t i = completions_.size() - 1; i > 0 && completions_[i - 1].cycle > cycle; --i) {
            completions_[i] = completions_[i - 1];
            completions_[i - 1] = {cycle, token};
        }
    }

    Cycle not_before_ = kNever;  // the same for reads whose completion is not known yet

  private:
    RingBuffer<Completion> completions_;
};

}  // namespace simfa
