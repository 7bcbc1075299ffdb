#include "tma.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "memory_port.hpp"
#include "sm.hpp"

namespace simfa {

TmaEngine::TmaEngine(const Config& config, int sm, Sm& owner, PairStats& stats)
    : config_(config), sm_(sm), owner_(owner), stats_(stats), all_(all_sectors(config.sectors())) {
    queue_.resize(16);
    descriptors_.reserve(config.descriptor_cache_entries + 1);
}

std::uint16_t TmaEngine::take_op() {
    if (free_ops_.empty()) {
        if (ops_.size() == kMaxOps)
            throw std::runtime_error("an SM has " + std::to_string(kMaxOps) +
                                     " TMA operations under way; a program must wait for some before it issues more");
        ops_.emplace_back();
        return static_cast<std::uint16_t>(ops_.size() - 1);
    }
    const std::uint16_t index = free_ops_.back();
    free_ops_.pop_back();
    return index;
}

// Looks `map` up in the descriptor cache and makes it the most recently used one.
Cycle TmaEngine::descriptor_cost(int map) {
    const auto found = std::find(descriptors_.begin(), descriptors_.end(), map);
    const bool miss = found == descriptors_.end();
    if (!miss) descriptors_.erase(found);
    descriptors_.insert(descriptors_.begin(), map);
    if (static_cast<std::int32_t>(descriptors_.size()) > config_.descriptor_cache_entries) descriptors_.pop_back();
    if (miss) ++stats_.descriptor_misses;
    return config_.tensor_map_cycles + (miss ? config_.descriptor_miss_cycles : 0);
}

void TmaEngine::issue(const TmaOp& op, int map, Cycle now) {
    const std::uint16_t index = take_op();
    TmaOp& queued = ops_[index] = op;
    queued.eligible = std::max(now + 1, now + config_.tma_launch_cycles + (map < 0 ? 0 : descriptor_cost(map)));
    queued.arrivals[0].missing = 1;
    queued.arrivals[1].missing = op.multicast ? 1 : 0;
    queued.unfinished = op.multicast ? 2 : 1;
    if (queue_size_ == queue_.size()) {
        std::rotate(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(queue_head_), queue_.end());
        queue_head_ = 0;
        queue_.resize(2 * queue_.size());
    }
    queue_[(queue_head_ + queue_size_++) % queue_.size()] = index;
    if (queue_size_ == 1) next_ = std::max(queued.eligible, last_start_ + config_.issue_gap_cycles);
}

void TmaEngine::pop() {
    queue_head_ = (queue_head_ + 1) % queue_.size();
    --queue_size_;
    started_ = false;
}

void TmaEngine::run(Cycle now, MemoryPort& port, Cycle horizon) {
    if (blocked_) {
        stats_.tma_limit_cycles += now - blocked_since_;
        blocked_ = false;
    }
    next_ = kNever;
    while (queue_size_ > 0) {
        const std::uint16_t index = front();
        TmaOp& op = ops_[index];
        if (!started_) {
            const Cycle start = std::max(op.eligible, last_start_ + config_.issue_gap_cycles);
            if (start > now) {
                next_ = start;
                return;
            }
            started_ = true;
            last_start_ = op.start = now;
            if (config_.tma_level == 0) {
                pop();
                read_source(op, now);
                if (config_.level_0_latency_cycles == 0)
                    complete(index, now);
                else
                    owner_.host().complete_later(owner_.index(), index, now + config_.level_0_latency_cycles);
                continue;
            }
        }
        const bool write = op.kind == TmaOp::Kind::store;
        while (op.second || !op.lines.empty()) {
            if (now < pace_cycle_) {
                next_ = pace_cycle_;
                return;
            }
            const bool limited = at_limit(now);
            if (limited || !port.ready(now)) {
                blocked_ = true;
                limited_ = limited;
                blocked_since_ = now;
                if (!limited) {
                    next_ = port.retry();
                } else {
                    for (const RingBuffer<Cycle>& leaving : leaving_)
                        if (!leaving.empty()) next_ = std::min(next_, leaving.front());
                }
                return;
            }
            if (now + 1 < horizon && !op.split && port.independent(write, op.multicast)) {
                if (issue_ahead(op, index, now, port, horizon)) return;
                continue;
            }
            Target target = op.multicast ? Target::both : Target::own;
            if (op.split) {
                target = op.second ? Target::other : Target::own;
                op.second = !op.second;
            }
            if (target != Target::other) op.last = op.lines.next();
            ++in_flight_;
            if (target != Target::other) ++op.arrivals[0].missing;
            if (target != Target::own) ++op.arrivals[1].missing;
            ++stats_.requests;
            if (write)
                ++stats_.write_lines;
            else
                stats_.read_lines += target == Target::both ? 2 : 1;
            pace(now);
            if (op.last.sectors != all_) [[unlikely]]
                count_part(op.last.sectors, write, target == Target::both);
            const auto sectors = static_cast<std::uint8_t>(op.last.sectors);
            port.request(op.last.line, write, {index, static_cast<std::uint8_t>(sm_), target, sectors}, now);
        }
        pop();
        owner_.timeline().extend(owner_.index(), kTmaIssueTrack, write ? kStore : op.ring,
                                 std::max(op.start, issued_until_), now + 1, write ? op.store_group : op.fill);
        issued_until_ = now + 1;
        read_source(op, now);
        end_issue(index, now, port);
    }
}

// Issues lines of `op` from `now` to `horizon`, as far as the limit of lines in flight surely allows; returns true if
// the engine's next turn is in a later cycle. The operation ends in the cycle of its last line.
bool TmaEngine::issue_ahead(TmaOp& op, std::uint16_t index, Cycle now, MemoryPort& port, Cycle horizon) {
    const bool write = op.kind == TmaOp::Kind::store;
    const Waiter waiter{index, static_cast<std::uint8_t>(sm_), op.multicast ? Target::both : Target::own,
                        static_cast<std::uint8_t>(all_)};
    const std::int32_t room = config_.max_lines_in_flight - in_flight_;
    Message request = port.request_of(write, waiter);
    const std::uint16_t whole = request.flags;
    const bool one_a_turn = config_.lines_per_cycle == 1;
    const Cycle turn_cycles = config_.cycles_per_line;
    BoxLines box = op.lines;  // a copy can stay in registers
    std::int32_t lines = 0;
    Cycle cycle = now;
    Cycle last = now;
    for (; lines < room && cycle < horizon && !box.empty(); ++lines) {
        const LineRequest next = box.next();
        request.line = next.line;
        request.flags = whole;
        if (next.sectors != all_) [[unlikely]] {
            request.flags = static_cast<std::uint16_t>(whole & ~((all_ & ~next.sectors) << kSectorShift));
            count_part(next.sectors, write, op.multicast);
            port.note_part(write, next.sectors);
        }
        port.post(request, cycle);
        if (one_a_turn)
            pace_cycle_ = cycle + turn_cycles;
        else
            pace(cycle);
        last = cycle;
        cycle = std::max(cycle, pace_cycle_);
    }
    op.lines = box;
    port.note_sent(write, lines);
    in_flight_ += lines;
    op.arrivals[0].missing += lines;
    if (op.multicast) op.arrivals[1].missing += lines;
    stats_.requests += lines;
    if (write)
        stats_.write_lines += lines;
    else
        stats_.read_lines += op.multicast ? 2 * lines : lines;
    const Cycle turn = box.empty() ? last : cycle;
    if (turn == now) return false;
    next_ = turn;
    return true;
}

// What is asked for of a line is less than all of it.
void TmaEngine::count_part(SectorMask sectors, bool write, bool both) {
    const int spared = config_.sectors() - sector_count(sectors);
    (write ? stats_.write_spared_sectors : stats_.read_spared_sectors) += both ? 2 * spared : spared;
}

// A line goes out at `now`: the next one follows at the rate of address generation.
void TmaEngine::pace(Cycle now) {
    if (config_.lines_per_cycle == 1) {
        pace_cycle_ = now + config_.cycles_per_line;
        return;
    }
    pace_used_ = pace_start_ == now ? pace_used_ + 1 : 1;
    pace_start_ = now;
    if (pace_used_ >= config_.lines_per_cycle) pace_cycle_ = now + 1;
}

bool TmaEngine::at_limit(Cycle now) {
    if (in_flight_ < config_.max_lines_in_flight) return false;
    for (RingBuffer<Cycle>& leaving : leaving_)
        for (; !leaving.empty() && leaving.front() <= now; leaving.pop()) --in_flight_;
    return in_flight_ >= config_.max_lines_in_flight;
}

void TmaEngine::answer(std::uint16_t index, bool other, Cycle now) {
    if (!other || ops_[index].split) line_left(now);
    if (--ops_[index].arrivals[other].missing == 0) finish(index, other, now);
}

// All lines are issued. What came may still have to pass a port.
void TmaEngine::end_issue(std::uint16_t index, Cycle now, MemoryPort& port) {
    for (int which = 0; which < (ops_[index].multicast ? 2 : 1); ++which) {
        TmaOp::Arrivals& arrivals = ops_[index].arrivals[which];
        if (--arrivals.missing > 0) continue;
        if (arrivals.last > now)
            port.finish_later(sm_, index, which != 0, arrivals.last, arrivals.last_number);
        else
            finish(index, which != 0, now);
    }
}

void TmaEngine::complete(std::uint16_t index, Cycle now) {
    const bool multicast = ops_[index].multicast;
    finish(index, false, now);
    if (multicast) finish(index, true, now);
}

// A store has sent its last line: its shared memory will have been read a little later.
void TmaEngine::read_source(const TmaOp& op, Cycle now) {
    if (op.kind != TmaOp::Kind::store) return;
    if (config_.store_read_cycles == 0)
        owner_.store_read(op.role, op.store_group, now);
    else
        owner_.host().read_later(owner_.index(), op.role, op.store_group, now + config_.store_read_cycles);
}

void TmaEngine::finish(std::uint16_t index, bool other, Cycle now) {
    TmaOp& op = ops_[index];
    if (op.kind == TmaOp::Kind::store) {
        owner_.store_answered(op.role, op.store_group, now);
    } else {
        Sm& target = other ? *owner_.peer() : owner_;
        target.credit(op.ring, op.fill, op.bytes, now);
        if (!other) owner_.timeline().add(owner_.index(), kTmaTrack, op.ring, op.start, now, op.fill);
    }
    if (--op.unfinished == 0) free_ops_.push_back(index);
}

}  // namespace simfa
