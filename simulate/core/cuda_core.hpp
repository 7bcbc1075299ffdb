// CUDA-core work of one SM's warpgroups: one server working in quanta (docs/isa.md section 6).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "config.hpp"
#include "tensor_core.hpp"
#include "types.hpp"

namespace simfa {

class CudaCore {
  public:
    CudaCore(const Config& config, const TensorCore& tensor_core)
        : round_robin_(config.cuda_round_robin),
          quantum_cycles_(config.quantum_cycles),
          pressure_ppm_(config.register_pressure_ppm),
          tensor_core_(tensor_core) {}

    // Queues `work_cycles` > 0 of role `role`, issued in phase 4 of `now`; each role has at most one job.
    void enqueue(int role, std::int32_t work_cycles, Cycle now) {
        jobs_[role] = {work_cycles, 0};
        queue_[(head_ + size_++) % kMaxRoles] = role;
        if (size_ == 1) {
            begin(now);
        } else if (running_alone_) {
            // The server ran past quantum boundaries nobody could see; find the one after `now`.
            running_alone_ = false;
            const Cycle boundary = start_ + ((now - start_) / quantum_cycles_ + 1) * quantum_cycles_;
            if (boundary < next_) next_ = boundary;
        }
    }

    // Phase 3 of cycle `next()`: ends the quantum; returns the role whose job is finished, or -1.
    int end_quantum() {
        const Cycle now = next_;
        const int role = queue_[head_];
        Job& job = jobs_[role];
        const std::int32_t base = running_alone_ ? job.left_cycles : quantum_base(now);
        job.left_cycles -= base;
        job.served_cycles += now - start_;
        busy_cycles_ += now - start_;
        int finished = -1;
        if (job.left_cycles == 0) {
            finished = role;
            head_ = (head_ + 1) % kMaxRoles;
            --size_;
        } else if (round_robin_ && size_ > 1) {
            head_ = (head_ + 1) % kMaxRoles;
            queue_[(head_ + size_ - 1) % kMaxRoles] = role;
        }
        if (size_ > 0)
            begin(now);
        else
            next_ = kNever;
        return finished;
    }

    Cycle next() const { return next_; }
    // Cycles the server spent on the role's last finished job.
    Cycle served_cycles(int role) const { return jobs_[role].served_cycles; }
    // Cycles before `end` in which the server worked.
    std::int64_t busy_cycles(Cycle end) const { return busy_cycles_ + (size_ > 0 ? end - start_ : 0); }

  private:
    struct Job {
        std::int32_t left_cycles = 0;
        Cycle served_cycles = 0;
    };

    void begin(Cycle now) {
        start_ = now;
        const std::int32_t left = jobs_[queue_[head_]].left_cycles;
        running_alone_ = pressure_ppm_ == 0 && (size_ == 1 || !round_robin_);
        quantum_ = running_alone_ ? left : std::min(left, quantum_cycles_);
        std::int64_t stretch = 0;
        if (pressure_ppm_ > 0 && tensor_core_.free_at() > now)
            stretch = (static_cast<std::int64_t>(quantum_) * pressure_ppm_ + 999999) / 1000000;
        next_ = now + quantum_ + stretch;
    }

    // Work done by the quantum that ends now; several quanta if the server had run alone until another job came.
    std::int32_t quantum_base(Cycle now) const {
        return pressure_ppm_ == 0 ? static_cast<std::int32_t>(now - start_) : quantum_;
    }

    bool round_robin_;
    std::int32_t quantum_cycles_;
    std::int32_t pressure_ppm_;
    const TensorCore& tensor_core_;
    std::array<Job, kMaxRoles> jobs_{};
    std::array<int, kMaxRoles> queue_{};
    int head_ = 0;
    int size_ = 0;
    bool running_alone_ = false;
    std::int32_t quantum_ = 0;
    Cycle start_ = 0;
    Cycle next_ = kNever;
    std::int64_t busy_cycles_ = 0;
};

}  // namespace simfa
