// Where an SM's cycles went: every cycle of a role, and every idle cycle of the tensor pipe, has one reason.
#include <algorithm>

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
    role.reason = next;
}

void Sm::charge(int index, Cycle from, Cycle until, Reason reason) {
    if (from >= until) return;
    Role& role = roles_[index];
    stats_.stalls[index][static_cast<int>(reason)] += until - from;
    role.recent[role.stretches++ % Role::kRecent] = {from, until, reason};
    timeline_.add(index_, index, static_cast<int>(reason), from, until, role.tiles - 1);
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
