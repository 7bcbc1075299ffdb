// Where an SM's cycles went: every cycle of a role, and every idle cycle of the tensor pipe, has one reason.
#include <algorithm>
#include <utility>

#include "sm.hpp"

namespace simfa {

// Puts the cycles since the last call down to the role's reason, and goes on with `next`.
void Sm::account(int index, Cycle now, Reason next) {
    Role& role = roles_[index];
    // Cycles between being ready and getting an issue slot are the frontend's.
    Cycle until = now;
    if (role.reason != Reason::launch && role.state == Role::State::running)
        until = std::clamp(role.ready, role.accounted, now);
    charge(index, role.accounted, until, role.reason);
    charge(index, until, now, Reason::issue);
    role.accounted = now;
    role.accounted_tile = std::max<std::int64_t>(role.tiles, 0) - 1;
    role.reason = next;
}

void Sm::charge(int index, Cycle from, Cycle until, Reason reason) {
    if (from >= until) return;
    Role& role = roles_[index];
    stats_.stalls[index][static_cast<int>(reason)] += until - from;
    role.recent[role.stretches++ % Role::kRecent] = {from, until, reason};
    timeline_.extend(index_, index, static_cast<int>(reason), from, until, role.accounted_tile);
}

// The tensor pipe was idle until `until`, when `role` uses it: puts that down to what the role was doing.
void Sm::charge_idle_pipe(const Role& role, Cycle until) {
    Cycle left = until;
    const Cycle from = tensor_core_.free_at();
    for (std::uint32_t k = 1; k <= std::min(role.stretches, Role::kRecent) && left > from; ++k) {
        const Role::Stretch& stretch = role.recent[(role.stretches - k) % Role::kRecent];
        const Cycle begin = std::max(stretch.begin, from);
        if (begin >= left) continue;
        stats_.tensor_idle[static_cast<int>(stretch.reason)] += left - begin;
        left = begin;
    }
    if (left > from) stats_.tensor_idle[static_cast<int>(Reason::issue)] += left - from;
}

// Stage and barrier tracks of the timeline.
void Sm::show_stage(int ring, std::int64_t fill, Cycle now) {
    if (!timeline_.wants(index_)) return;
    const int stages = barriers_.ring(ring).stages;
    const std::int64_t held = (std::as_const(barriers_).stage(ring, fill).expected - 1) * stages + fill % stages;
    timeline_.enter(index_, kStageTracks + ring * kMaxStages + static_cast<int>(fill % stages),
                    static_cast<int>(barriers_.state(ring, fill)), static_cast<int>(StageState::free), held, now);
}

void Sm::show_barrier(int barrier, Cycle now) {
    if (!timeline_.wants(index_)) return;
    BarrierState state = barriers_.signals(barrier) > 0 ? BarrierState::arrived : BarrierState::quiet;
    std::int64_t arg = barriers_.signals(barrier);
    for (int i = 0; i < kernel_.roles; ++i)
        if (roles_[i].wait == Role::Wait::barrier && roles_[i].ring == barrier) {
            state = BarrierState::waited;
            arg = i;
        }
    timeline_.enter(index_, kBarrierTracks + barrier, static_cast<int>(state), static_cast<int>(BarrierState::quiet),
                    arg, now);
}

void Sm::close_accounts(Cycle end) {
    if (!has_cta_) return;
    for (int i = 0; i < kernel_.roles; ++i) account(i, end, roles_[i].reason);
    tma_.close_accounts(end);
    if (end > tensor_core_.free_at())
        stats_.tensor_idle[static_cast<int>(Reason::tail)] += end - tensor_core_.free_at();
    stats_.tensor_busy_cycles += tensor_core_.busy_cycles(end);
    stats_.tensor_drain_cycles += tensor_core_.drain_cycles(end);
    stats_.cuda_busy_cycles += cuda_core_.busy_cycles(end);
}

}  // namespace simfa
