// The tensor pipe of one SM: a FIFO known by the cycle at which it is free (docs/isa.md section 4).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "config.hpp"
#include "types.hpp"

namespace simfa {

class TensorCore {
  public:
    explicit TensorCore(const Config& config)
        : window_ss_(config.wgmma_window_ss),
          window_rs_(config.wgmma_window_rs),
          tail_ss_cycles_(config.wgmma_tail_ss_cycles),
          tail_rs_cycles_(config.wgmma_tail_rs_cycles),
          drain_cycles_(config.group_drain_cycles) {
        ends_.fill(-1);
    }

    // The first cycle from `now` on at which the window admits a WGMMA: `now` itself if it has room.
    Cycle admission(bool register_a, Cycle now) const {
        const int window = register_a ? window_rs_ : window_ss_;
        return std::max(now, ends_[(issued_ - window) & kMask]);
    }

    struct Slice {
        Cycle start, end, done;
    };

    // Issues one WGMMA of `work_cycles`.
    Slice issue(bool register_a, Cycle now, std::int32_t work_cycles) {
        const Cycle start = std::max(now, free_);
        free_ = start + work_cycles;
        ends_[issued_ & kMask] = free_;
        work_[issued_++ & kMask] = work_cycles;
        busy_cycles_ += work_cycles;
        return {start, free_, free_ + (register_a ? tail_rs_cycles_ : tail_ss_cycles_)};
    }

    // Ends a group whose last WGMMA ends at `group_end`: the pipe drains.
    void commit(Cycle group_end) {
        const Cycle drained = group_end + drain_cycles_;
        if (drained > free_) {
            drain_cycles_total_ += drained - free_;
            free_ = drained;
        }
    }

    Cycle free_at() const { return free_; }

    // Cycles before `end` in which the pipe worked, and in which it drained. From `end` on it does one or the other
    // until it is free.
    std::int64_t busy_cycles(Cycle end) const { return busy_cycles_ - busy_after(end); }
    std::int64_t drain_cycles(Cycle end) const {
        return drain_cycles_total_ - (std::max<Cycle>(0, free_ - end) - busy_after(end));
    }

    static constexpr int kMaxWindow = 64;

  private:
    std::int64_t busy_after(Cycle end) const {
        std::int64_t cycles = 0;
        for (int i = 0; i < kMaxWindow; ++i) cycles += std::clamp<Cycle>(ends_[i] - end, 0, work_[i]);
        return cycles;
    }

    static constexpr std::uint32_t kMask = kMaxWindow - 1;
    int window_ss_, window_rs_;
    std::int32_t tail_ss_cycles_, tail_rs_cycles_, drain_cycles_;
    Cycle free_ = 0;
    std::uint32_t issued_ = 0;
    std::array<Cycle, kMaxWindow> ends_{};         // ends of the last WGMMAs, in order of issue
    std::array<std::int32_t, kMaxWindow> work_{};  // and how long they take
    std::int64_t busy_cycles_ = 0;
    std::int64_t drain_cycles_total_ = 0;
};

}  // namespace simfa
