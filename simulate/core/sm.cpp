#include "sm.hpp"

#include <algorithm>

namespace simfa {

Sm::Sm(const Config& config, const Kernel& kernel, int index, SmHost& host, PairStats& stats, Timeline& timeline)
    : config_(config),
      kernel_(kernel),
      index_(index),
      host_(host),
      stats_(stats),
      timeline_(timeline),
      has_cta_(index < kernel.ctas),
      barriers_(kernel.rings),
      tensor_core_(config),
      cuda_core_(config, tensor_core_),
      tma_(config, index & 1, *this, stats) {
    if (has_cta_) start_cta();
}

void Sm::start_cta() {
    const Cycle launch = config_.launch_cycles;
    if (kernel_.dynamic)
        granted_.push_back(index_ < static_cast<int>(kernel_.tiles.size()) ? kernel_.tiles[index_] : Tile{-1, 0, 0, 0});
    for (int i = 0; i < kernel_.roles; ++i) {
        Role& role = roles_[i];
        role.ready = launch;
        role.state = Role::State::needs_tile;
        if (kernel_.has_prologue) {
            role.kind = &kernel_.prologue;
            role.tiles = -1;
            if (kernel_.prologue.programs[i] >= 0) {
                role.state = Role::State::running;
                set_program(role, kernel_.prologue.programs[i]);
            }
        }
    }
    frontend_next_ = launch;
}

void Sm::set_program(Role& role, int program) {
    role.program = program;
    role.code = kernel_.programs[program].code.data();
    role.pc = role.code;
    role.body = nullptr;
    role.iteration = 0;
    settle(role);
}

// Steps over repeat marks until `pc` is an instruction or the program's end.
void Sm::settle(Role& role) {
    for (;;) {
        if (role.pc->op == Op::repeat) {
            role.body = ++role.pc;
            role.iteration = 0;
        } else if (role.pc->op == Op::end) {
            if (++role.iteration < role.body[-1].count) {
                role.pc = role.body;
            } else {
                role.iteration = 0;
                role.body = nullptr;
                ++role.pc;
            }
        } else {
            break;
        }
    }
    if (role.pc->op == Op::wgmma) role.wgmmas_left = role.pc->count;
    if (role.pc->op == Op::finish) role.state = Role::State::needs_tile;
}

void Sm::advance(Role& role) {
    ++role.pc;
    settle(role);
}

// Pays the edge of the role's last tile, or starts its next one, at `now`; false if the role has to wait for the grid
// or has ended.
bool Sm::begin_tile(int index, Cycle now) {
    Role& role = roles_[index];
    if (role.edge_due) {
        role.edge_due = false;
        account(index, now, Reason::tile_edge);
        role.ready = now + config_.tile_edge_cycles;
        return true;
    }
    if (kernel_.dynamic) {
        const std::int64_t next = role.tiles < 0 ? 0 : role.tiles;
        if (next >= static_cast<std::int64_t>(granted_.size())) {
            account(index, now, Reason::tile_fetch);
            block(role, Role::Wait::tile, Reason::tile_fetch, 0, 0, 0);
            return false;
        }
        role.tile = granted_[next];
        if (role.tile.kind < 0) {
            end_role(index, now);
            return false;
        }
    } else {
        const std::int64_t next = kernel_.first_tile[index_] + (role.tiles < 0 ? 0 : role.tiles);
        if (next >= kernel_.first_tile[index_ + 1]) {
            end_role(index, now);
            return false;
        }
        role.tile = kernel_.tiles[next];
    }
    if (role.kind != nullptr)
        for (std::size_t r = 0; r < kernel_.rings.size(); ++r) role.base[r] += role.kind->fills[r];
    role.tiles = std::max<std::int64_t>(role.tiles, 0) + 1;
    role.kind = &kernel_.kinds[role.tile.kind];
    if (timeline_.wants(index_)) timeline_.begin_tile(index_, index, role.tiles - 1, role.tile, now);
    role.group_base = role.groups.committed();
    role.store_base = role.stores.committed();
    role.state = Role::State::running;
    set_program(role, role.kind->programs[index]);
    if (index == 0) {
        ++stats_.tiles;
        if (kernel_.dynamic) {
            asks_at_ = kernel_.programs[role.program].last_acquire();
            if (asks_at_ == nullptr) host_.request_tile(index_, now);
        }
    }
    role.ready = now;
    role.edge_due = index > 0 && config_.tile_edge_cycles > 0;
    return true;
}

void Sm::end_role(int index, Cycle now) {
    Role& role = roles_[index];
    account(index, now, Reason::tail);
    role.state = Role::State::ended;
    role_end_[index] = now;
    if (timeline_.wants(index_)) timeline_.end_role(index_, index, now);
    note_end(now);
    ++ended_;
}

void Sm::run_cuda_core(Cycle now) {
    const int finished = cuda_core_.end_quantum();
    if (finished < 0) return;
    Role& role = roles_[finished];
    const Reason work = role.reason;
    const Cycle began = now - cuda_core_.served_cycles(finished);
    if (began > role.accounted) {
        role.reason = Reason::cuda_contention;
        account(finished, began, work);
    }
    wake(role, now);
}

void Sm::run_frontend(Cycle now) {
    for (int i = 0; i < kernel_.roles; ++i)
        while (roles_[i].state == Role::State::needs_tile && roles_[i].ready <= now)
            if (!begin_tile(i, now)) break;
    std::uint32_t refused = 0;  // refused, or issued in this cycle already
    for (int slots = config_.issue_width; slots > 0;) {
        const int index = pick(now, refused);
        if (index < 0) break;
        if (issue(index, now) == Outcome::refused) {
            refused |= 1U << index;
            continue;
        }
        refused |= 1U << index;
        last_issued_ = index;
        --slots;
    }
    refresh(now);
}

int Sm::pick(Cycle now, std::uint32_t refused) const {
    const auto can = [&](int i) {
        return roles_[i].state == Role::State::running && roles_[i].ready <= now && !(refused >> i & 1U);
    };
    const auto policy = static_cast<Scheduler>(config_.scheduler);
    if (policy == Scheduler::gto && last_issued_ >= 0 && can(last_issued_)) return last_issued_;
    const int first = policy == Scheduler::lrr ? (last_issued_ + 1) % kernel_.roles : 0;
    for (int k = 0; k < kernel_.roles; ++k) {
        const int i = (first + k) % kernel_.roles;
        if (can(i)) return i;
    }
    return -1;
}

void Sm::refresh(Cycle now) {
    Cycle next = kNever;
    for (int i = 0; i < kernel_.roles; ++i) {
        const Role& role = roles_[i];
        if (role.state == Role::State::running || role.state == Role::State::needs_tile)
            next = std::min(next, std::max(role.ready, now + 1));
    }
    frontend_next_ = next;
}

void Sm::wake(Role& role, Cycle ready) {
    role.state =
        role.wait == Role::Wait::tile || role.pc->op == Op::finish ? Role::State::needs_tile : Role::State::running;
    role.wait = Role::Wait::none;
    role.ready = ready;
    frontend_next_ = std::min(frontend_next_, ready);
}

void Sm::block(Role& role, Role::Wait wait, Reason reason, int ring, std::int64_t target, std::int32_t count) {
    role.state = Role::State::blocked;
    role.wait = wait;
    role.reason = reason;
    role.ring = static_cast<std::uint8_t>(ring);
    role.wait_target = target;
    role.wait_count = count;
}

Sm::Outcome Sm::issue(int index, Cycle now) {
    Role& role = roles_[index];
    const Instruction& instruction = *role.pc;
    if (instruction.op == Op::wgmma) {
        const Outcome outcome = issue_wgmma(role, instruction, now);
        if (outcome == Outcome::refused) return outcome;
    }
    ++stats_.instructions;
    if (config_.record_issues) issues_.push_back({now, index_, index, role.program, instruction.flat});
    const int ring = instruction.ring;
    const std::int64_t fill = role.base[ring & (kMaxRings - 1)] + instruction.index +
                              static_cast<std::int64_t>(instruction.index_step) * role.iteration;
    const std::int64_t group = instruction.group + static_cast<std::int64_t>(instruction.group_step) * role.iteration;
    switch (instruction.op) {
        case Op::wgmma:
            return Outcome::issued;
        case Op::bubbles:
            return issue_bubbles(index, role, instruction, now);
        case Op::acquire_stage: {
            const bool named = barriers_.ring(ring).named;
            account(index, now, acquire_reason(ring));
            if (role.pc == asks_at_ && (role.body == nullptr || role.iteration + 1 == role.body[-1].count))
                host_.request_tile(index_, now);
            if (!barriers_.free_for(ring, fill)) {
                block(role, Role::Wait::stage, role.reason, ring, fill, 0);
                return Outcome::blocked;
            }
            barriers_.expect(ring, fill);
            show_stage(ring, fill, now);
            role.ready = now + (named ? config_.named_wait_cycles : config_.mbarrier_wait_cycles);
            // Who is woken by an issue takes part in the frontend from the next cycle on.
            wake_fill(ring, fill, now, 1);
            break;
        }
        case Op::mb_wait:
            account(index, now, fill_reason(ring));
            if (!barriers_.complete(ring, fill)) {
                block(role, Role::Wait::fill, role.reason, ring, fill, 0);
                return Outcome::blocked;
            }
            role.ready = now + config_.mbarrier_wait_cycles;
            break;
        case Op::bar_wait:
            account(index, now, Reason::barrier);
            if (!barriers_.take_signals(ring, instruction.count)) {
                block(role, Role::Wait::barrier, role.reason, ring, 0, instruction.count);
                show_barrier(ring, now);
                return Outcome::blocked;
            }
            show_barrier(ring, now);
            role.ready = now + config_.named_wait_cycles;
            break;
        case Op::wgmma_wait: {
            account(index, now, Reason::wgmma_wait);
            const Cycle completion = role.groups.completion(role.group_base + group - instruction.count);
            role.ready = std::max(now + 1, completion);
            break;
        }
        case Op::tma_wait: {
            account(index, now, Reason::store);
            const bool read = instruction.flags & kRead;
            const std::int64_t target = role.store_base + group - instruction.count;
            if (!role.stores.done(target, read)) {
                block(role, Role::Wait::stores, role.reason, 0, target, read);
                return Outcome::blocked;
            }
            role.ready = now + 1;
            break;
        }
        default:
            account(index, now, Reason::issue);
            role.ready = now + 1;
            issue_copy(index, role, instruction, now);
            break;
    }
    advance(role);
    return Outcome::issued;
}

Sm::Outcome Sm::issue_wgmma(Role& role, const Instruction& instruction, Cycle now) {
    const bool register_a = instruction.flags & kRegisterA;
    const Cycle admitted = tensor_core_.admission(register_a, now);
    const int index = static_cast<int>(&role - roles_.data());
    if (admitted > now) {
        account(index, now, Reason::tensor_busy);
        role.ready = admitted;
        return Outcome::refused;
    }
    account(index, now, Reason::wgmma_issue);
    if (now > tensor_core_.free_at()) charge_idle_pipe(role, now);
    const TensorCore::Slice slice = tensor_core_.issue(register_a, now, instruction.work_cycles);
    role.groups.add(slice.end, slice.done);
    timeline_.extend(index_, kTensorTrack, instruction.label, slice.start, slice.end, index);
    role.ready = now + config_.wgmma_issue_cycles;
    if (--role.wgmmas_left > 0) return Outcome::issued;
    if (timeline_.wants(index_)) timeline_.separate(index_, kTensorTrack);
    advance(role);
    return Outcome::issued;
}

Sm::Outcome Sm::issue_bubbles(int index, Role& role, const Instruction& instruction, Cycle now) {
    const auto work = static_cast<Work>(instruction.label);
    const Reason reason = work == Work::softmax    ? Reason::softmax
                          : work == Work::epilogue ? Reason::epilogue
                                                   : Reason::bubble;
    account(index, now, reason);
    advance(role);
    if (instruction.work_cycles == 0 || !config_.cuda_shared) {
        role.ready = now + std::max(1, instruction.work_cycles);
        return Outcome::issued;
    }
    block(role, Role::Wait::none, reason, 0, 0, 0);
    cuda_core_.enqueue(index, instruction.work_cycles, now);
    return Outcome::blocked;
}

// Instructions that start something and go on in the next cycle.
void Sm::issue_copy(int index, Role& role, const Instruction& instruction, Cycle now) {
    const std::int64_t fill = role.base[instruction.ring & (kMaxRings - 1)] + instruction.index +
                              static_cast<std::int64_t>(instruction.index_step) * role.iteration;
    switch (instruction.op) {
        case Op::release_stage: {
            const bool named = barriers_.ring(instruction.ring).named;
            const Cycle own = named ? config_.named_arrive_cycles : config_.mbarrier_arrive_cycles;
            host_.release_later(index_, instruction.ring, fill, now + std::max<Cycle>(1, own));
            if ((instruction.flags & kRemote) && peer() != nullptr)
                host_.release_later(index_ ^ 1, instruction.ring, fill,
                                    now + std::max<Cycle>(1, config_.mbarrier_remote_arrive_cycles));
            return;
        }
        case Op::bar_arrive:
            host_.signal_later(index_, instruction.ring, now + std::max<Cycle>(1, config_.named_arrive_cycles));
            return;
        case Op::wgmma_commit:
            if (const Cycle end = role.groups.commit(now); end >= 0) {
                const Cycle worked = tensor_core_.free_at();
                tensor_core_.commit(end);
                timeline_.extend(index_, kTensorTrack, kDrain, worked, tensor_core_.free_at(), index);
            }
            return;
        case Op::tma_commit:
            role.stores.commit();
            return;
        default:
            break;
    }
    // TMA_TENSOR, TMA_BULK, TMA_STORE
    TmaOp op;
    op.role = static_cast<std::uint8_t>(index);
    op.ring = instruction.ring;
    op.fill = fill;
    op.eligible = now;
    if (instruction.op == Op::tma_bulk) {
        op.bytes = instruction.count;
        op.lines =
            BoxLines(instruction.address + instruction.address_step * role.iteration, op.bytes, config_.line_shape());
        tma_.issue(op, -1, now);
        return;
    }
    const TensorMap& map = kernel_.maps[instruction.map];
    std::array<std::int64_t, kMaxTensorRank> corner{
        instruction.x, instruction.y + static_cast<std::int64_t>(instruction.y_step) * role.iteration, 0, 0, 0};
    if (map.origin == Origin::query) {
        corner[1] += static_cast<std::int64_t>(role.tile.m_block) * kernel_.tile_m;
        corner[2] += role.tile.head;
        corner[3] += role.tile.batch;
    } else if (map.origin == Origin::kv) {
        corner[2] += role.tile.head / kernel_.group_size;
        corner[3] += role.tile.batch;
    }
    op.bytes = map.box_bytes();
    if (instruction.op == Op::tma_store) {
        op.kind = TmaOp::Kind::store;
        op.store_group = role.stores.open_index();
        role.stores.add();
    } else if ((instruction.flags & kMulticast) && peer() != nullptr) {
        op.multicast = true;
        op.split = !config_.lrc_multicast && config_.ideal_latency_cycles == 0;
        corner[1] += cluster_rank() * map.box[1];
    }
    op.lines = BoxLines(map, corner, config_.line_shape());
    tma_.issue(op, instruction.map, now);
}

// Wakes who waits for a fill if it is complete, `least` cycles later or more.
void Sm::wake_fill(int ring, std::int64_t fill, Cycle now, Cycle least) {
    if (!barriers_.complete(ring, fill)) return;
    for (int i = 0; i < kernel_.roles; ++i) {
        Role& role = roles_[i];
        if (role.state == Role::State::blocked && role.wait == Role::Wait::fill && role.ring == ring &&
            role.wait_target == fill) {
            advance(role);
            wake(role, now + std::max<Cycle>(least, config_.mbarrier_wake_cycles));
        }
    }
}

void Sm::credit(int ring, std::int64_t fill, std::int64_t bytes, Cycle now) {
    barriers_.credit(ring, fill, bytes);
    show_stage(ring, fill, now);
    wake_fill(ring, fill, now);
}

void Sm::release(int ring, std::int64_t fill, Cycle now) {
    barriers_.release(ring, fill);
    show_stage(ring, fill, now);
    for (int i = 0; i < kernel_.roles; ++i) {
        Role& role = roles_[i];
        if (role.state == Role::State::blocked && role.wait == Role::Wait::stage && role.ring == ring &&
            barriers_.free_for(ring, role.wait_target)) {
            const std::int64_t target = role.wait_target;
            barriers_.expect(ring, target);
            show_stage(ring, target, now);
            advance(role);
            const bool named = barriers_.ring(ring).named;
            wake(role, now + (named ? config_.named_wake_cycles : config_.mbarrier_wake_cycles));
            wake_fill(ring, target, now);
        }
    }
}

void Sm::signal(int barrier, Cycle now) {
    barriers_.signal(barrier);
    for (int i = 0; i < kernel_.roles; ++i) {
        Role& role = roles_[i];
        if (role.state == Role::State::blocked && role.wait == Role::Wait::barrier && role.ring == barrier &&
            barriers_.take_signals(barrier, role.wait_count)) {
            advance(role);
            wake(role, now + config_.named_wake_cycles);
        }
    }
    show_barrier(barrier, now);
}

void Sm::store_read(int index, std::int64_t group, Cycle now) {
    Role& role = roles_[index];
    role.stores.read(group);
    if (role.state == Role::State::blocked && role.wait == Role::Wait::stores && role.wait_count &&
        role.stores.done(role.wait_target, true)) {
        advance(role);
        wake(role, now);
    }
}

void Sm::store_answered(int index, std::int64_t group, Cycle now) {
    Role& role = roles_[index];
    role.stores.answer(group);
    note_end(now);
    if (role.state == Role::State::blocked && role.wait == Role::Wait::stores && !role.wait_count &&
        role.stores.done(role.wait_target, false)) {
        advance(role);
        wake(role, now);
    }
}

void Sm::grant(const Tile& tile, Cycle now) {
    granted_.push_back(tile);
    for (int i = 0; i < kernel_.roles; ++i) {
        Role& role = roles_[i];
        if (role.state == Role::State::blocked && role.wait == Role::Wait::tile) wake(role, std::max(role.ready, now));
    }
}

}  // namespace simfa
