// The response queue of an L2 slice and the port that empties it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ring_buffer.hpp"
#include "types.hpp"

namespace simfa {

// Answers leave one after the other, so the cycle at which one will is known when it enters. As long as all of them
// take the port for one `interval` they need no list; from the first shorter one on they have one.
class ResponsePort {
  public:
    ResponsePort(int entries, Cycle interval)
        : entries_(static_cast<std::size_t>(entries)), interval_(interval), room_cycles_(interval * Cycle{entries}) {}

    // First cycle at which the queue has room.
    Cycle room_cycle() const {
        if (!uneven_) [[likely]]
            return free_ - room_cycles_;
        return departures_.size() < entries_ ? 0 : departures_[departures_.size() - entries_];
    }

    // Takes an answer at `now`, when there is room, that holds the port for `cycles`; returns when the port sends it.
    Cycle send(Cycle now, Cycle cycles) {
        const Cycle departure = std::max(now, free_);
        if (cycles != interval_) [[unlikely]]
            uneven_ = true;
        if (uneven_) [[unlikely]]
            list(now, departure);
        free_ = departure + cycles;
        waited_cycles_ += departure - now;
        longest_wait_ = std::max(longest_wait_, departure - now);
        return departure;
    }

    // Answers taken that the port does not send before `cycle`, which is later than the last answer came.
    std::int64_t waiting(Cycle cycle) const {
        if (!uneven_) return std::max<Cycle>(0, free_ - cycle) / interval_;
        std::int64_t count = 0;
        for (std::size_t i = 0; i < departures_.size(); ++i) count += departures_[i] >= cycle;
        return count;
    }

    std::int64_t waited_cycles() const { return waited_cycles_; }  // summed over answers
    std::int64_t peak() const {                                    // most answers that waited at once
        return uneven_ ? peak_ : whole_peak();
    }

  private:
    std::int64_t whole_peak() const { return (longest_wait_ + interval_ - 1) / interval_; }

    [[gnu::noinline]] void list(Cycle now, Cycle departure) {
        if (!listed_) {
            // Those that have not left follow each other without a gap.
            listed_ = true;
            peak_ = whole_peak();
            for (Cycle back = (free_ - now) / interval_; back > 0; --back) departures_.push(free_ - back * interval_);
        }
        while (!departures_.empty() && departures_.front() <= now) departures_.pop();
        if (departure > now) departures_.push(departure);
        peak_ = std::max(peak_, static_cast<std::int64_t>(departures_.size()));
    }

    std::size_t entries_;
    Cycle interval_;
    Cycle room_cycles_;  // the queue of whole lines has room up to so many cycles before `free_`
    Cycle free_ = 0;     // the port sends nothing before
    Cycle waited_cycles_ = 0;
    Cycle longest_wait_ = 0;
    bool uneven_ = false;           // an answer took less than `interval_` ...
    bool listed_ = false;           // ... and so there is a list
    RingBuffer<Cycle> departures_;  // that lie ahead
    std::int64_t peak_ = 0;
};

}  // namespace simfa
