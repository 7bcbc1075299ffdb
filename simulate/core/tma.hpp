// TMA engine of one SM: a FIFO of copies, a descriptor cache, paced line requests (docs/isa.md section 5).
#pragma once

#include <cstdint>
#include <vector>

#include "box_lines.hpp"
#include "config.hpp"
#include "program.hpp"
#include "stats.hpp"
#include "types.hpp"

namespace simfa {

class MemoryPort;
class Sm;

// One TMA_TENSOR, TMA_BULK or TMA_STORE from its issue to its last answer.
struct TmaOp {
    enum class Kind : std::uint8_t { load, store };
    Kind kind = Kind::load;
    bool multicast = false;
    bool split = false;   // multicast is off: each line is requested once for either SM
    bool second = false;  // of a split operation, `line` is still to be requested for the other SM
    std::uint32_t line = 0;
    std::uint8_t role = 0;
    std::uint8_t ring = 0;
    std::int64_t fill = 0;         // absolute fill of the ring (load)
    std::int64_t store_group = 0;  // absolute store group of the role (store)
    std::int64_t bytes = 0;        // credited to the fill
    Cycle eligible = 0;
    Cycle start = 0;
    std::int32_t pending[2] = {
        0, 0};  // answers missing, own SM and (multicast) the other; +1 while lines are to be issued
    BoxLines lines;
};

class TmaEngine {
  public:
    TmaEngine(const Config& config, int sm, Sm& owner, PairStats& stats);

    // Queues an operation issued at `now`; `map` is -1 for bulk copies.
    void issue(const TmaOp& op, int map, Cycle now);

    // Phase 2: starts operations and issues lines that are due at `now`.
    void run(Cycle now, MemoryPort& port);

    // A line of `op` arrived; `other` tells that it did so at the other SM (multicast).
    void answer(std::uint16_t op, bool other, Cycle now);

    // All lines are issued (level 0: the operation is done without traffic).
    void complete(std::uint16_t op, Cycle now);

    // A coalescer entry came free.
    void unblock(Cycle now) {
        if (blocked_ && next_ > now) next_ = now;
    }

    // Counts the cycles up to `end` in which a line is held back.
    void close_accounts(Cycle end) {
        if (!blocked_) return;
        stats_.tma_limit_cycles += end - blocked_since_;
        blocked_since_ = end;
    }

    // First cycle at which `run` has something to do.
    Cycle next() const { return next_; }
    int in_flight() const { return in_flight_; }
    bool quiet() const { return queue_size_ == 0 && in_flight_ == 0; }
    const TmaOp& op(std::uint16_t index) const { return ops_[index]; }

  private:
    static constexpr std::size_t kMaxOps = 65536;  // their numbers have 16 bits

    std::uint16_t front() const { return queue_[queue_head_]; }
    void pop();
    void finish(std::uint16_t index, int which, Cycle now);
    void read_source(const TmaOp& op, Cycle now);
    Cycle descriptor_cost(int map);
    std::uint16_t take_op();

    const Config& config_;
    int sm_;
    Sm& owner_;
    PairStats& stats_;
    std::vector<TmaOp> ops_;
    std::vector<std::uint16_t> free_ops_;
    std::vector<std::uint16_t> queue_;  // ring of operations not fully issued
    std::size_t queue_head_ = 0;
    std::size_t queue_size_ = 0;
    std::vector<int> descriptors_;  // most recently used maps, newest first
    bool started_ = false;          // the front operation is issuing lines
    bool blocked_ = false;
    Cycle blocked_since_ = 0;
    Cycle last_start_ = -(Cycle{1} << 40);  // of the last operation: long ago
    Cycle pace_cycle_ = -1;                 // the next line may go out from here on
    Cycle pace_start_ = -1;                 // cycle of the last line ...
    std::int32_t pace_used_ = 0;            // ... and so many went out in it
    std::int32_t in_flight_ = 0;
    Cycle issued_until_ = 0;  // of the last operation, for the timeline
    Cycle next_ = kNever;
};

}  // namespace simfa
