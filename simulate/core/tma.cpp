#include "tma.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "memory_port.hpp"
#include "sm.hpp"

namespace simfa {

TmaEngine::TmaEngine(const Config& config, int sm, Sm& owner, PairStats& stats)
    : config_(config), sm_(sm), owner_(owner), stats_(stats) {
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
    queued.pending[0] = 1;
    queued.pending[1] = op.multicast ? 1 : 0;
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

void TmaEngine::run(Cycle now, MemoryPort& port) {
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
            const bool limited = in_flight_ >= config_.max_lines_in_flight;
            if (limited || !port.ready(now)) {
                blocked_ = true;
                blocked_since_ = now;
                if (!limited) next_ = port.retry();
                return;
            }
            Target target = op.multicast ? Target::both : Target::own;
            if (op.split) {
                target = op.second ? Target::other : Target::own;
                op.second = !op.second;
            }
            if (target != Target::other) op.line = op.lines.next();
            ++in_flight_;
            if (target != Target::other) ++op.pending[0];
            if (target != Target::own) ++op.pending[1];
            ++stats_.requests;
            if (write)
                ++stats_.write_lines;
            else
                stats_.read_lines += target == Target::both ? 2 : 1;
            if (config_.cycles_per_line > 1) {
                pace_cycle_ = now + config_.cycles_per_line;
            } else {
                pace_used_ = pace_start_ == now ? pace_used_ + 1 : 1;
                pace_start_ = now;
                if (pace_used_ >= config_.lines_per_cycle) pace_cycle_ = now + 1;
            }
            port.request(op.line, write, {index, static_cast<std::uint8_t>(sm_), target}, now);
        }
        pop();
        owner_.timeline().extend(owner_.index(), kTmaIssueTrack, write ? kStore : op.ring,
                                 std::max(op.start, issued_until_), now + 1, write ? op.store_group : op.fill);
        issued_until_ = now + 1;
        read_source(op, now);
        complete(index, now);
    }
}

void TmaEngine::answer(std::uint16_t index, bool other, Cycle now) {
    if (!other || ops_[index].split) {
        --in_flight_;
        if (blocked_ && next_ > now) next_ = now;
    }
    finish(index, other ? 1 : 0, now);
}

void TmaEngine::complete(std::uint16_t index, Cycle now) {
    const bool multicast = ops_[index].multicast;
    finish(index, 0, now);
    if (multicast) finish(index, 1, now);
}

// A store has sent its last line: its shared memory will have been read a little later.
void TmaEngine::read_source(const TmaOp& op, Cycle now) {
    if (op.kind != TmaOp::Kind::store) return;
    if (config_.store_read_cycles == 0)
        owner_.store_read(op.role, op.store_group, now);
    else
        owner_.host().read_later(owner_.index(), op.role, op.store_group, now + config_.store_read_cycles);
}

// One answer (or the end of issuing) less is missing at one of the op's SMs.
void TmaEngine::finish(std::uint16_t index, int which, Cycle now) {
    TmaOp& op = ops_[index];
    if (--op.pending[which] > 0) return;
    if (op.kind == TmaOp::Kind::store) {
        owner_.store_answered(op.role, op.store_group, now);
    } else {
        Sm& target = which == 0 ? owner_ : *owner_.peer();
        target.credit(op.ring, op.fill, op.bytes, now);
        if (which == 0) owner_.timeline().add(owner_.index(), kTmaTrack, op.ring, op.start, now, op.fill);
    }
    if (op.pending[0] == 0 && op.pending[1] == 0) free_ops_.push_back(index);
}

}  // namespace simfa
