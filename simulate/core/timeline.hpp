// Slices of a run for Gantt charts: what each track did from when to when.
#pragma once

#include <cstdint>
#include <vector>

#include "types.hpp"

namespace simfa {

// Tracks of one SM: its roles, then these.
inline constexpr int kTensorTrack = kMaxRoles;
inline constexpr int kTmaTrack = kMaxRoles + 1;

struct TimelineSlice {
    Cycle start;
    Cycle end;
    std::int32_t sm;
    std::int16_t track;
    std::int16_t name;  // role tracks: Reason; tensor: accumulator label; TMA: ring
    std::int32_t arg;   // tile or fill ordinal
};

// Collects slices of the SMs below `sms` that overlap a window; does nothing when `sms` is 0.
class Timeline {
  public:
    Timeline() = default;
    Timeline(int sms, Cycle begin, Cycle end) : sms_(sms), begin_(begin), end_(end) {}

    bool wants(int sm) const { return sm < sms_; }

    void add(int sm, int track, int name, Cycle start, Cycle end, std::int64_t arg) {
        if (sm >= sms_ || end <= begin_ || start >= end_ || start >= end) return;
        slices_.push_back({start, end, sm, static_cast<std::int16_t>(track), static_cast<std::int16_t>(name),
                           static_cast<std::int32_t>(arg)});
    }

    const std::vector<TimelineSlice>& slices() const { return slices_; }

  private:
    int sms_ = 0;
    Cycle begin_ = 0;
    Cycle end_ = kNever;
    std::vector<TimelineSlice> slices_;
};

}  // namespace simfa
