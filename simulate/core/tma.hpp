// TMA engine of one SM: a FIFO of copies, a descriptor cache, paced line requests (docs/isa.md section 5).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "box_lines.hpp"
#include "config.hpp"
#include "program.hpp"
#include "ring_buffer.hpp"
#include "stats.hpp"
#include "types.hpp"

namespace simfa {

class MemoryPort;
class Sm;

// One TMA_TENSOR, TMA_BULK or TMA_STORE from its issue to its last answer.
struct alignas(64) TmaOp {
    enum class Kind : std::uint8_t { load, store };

    // What arriving lines touch comes first, in one cache line of the machine that simulates.
    // Lines that have not come to the own SM and (multicast) the other; + 1 while lines are to be issued.
    struct Arrivals {
        Cycle last = -1;                // when the last of them leaves the response port ...
        std::uint64_t last_number = 0;  // ... as so many-th line of that port
        std::int32_t missing = 0;
    };
    Arrivals arrivals[2];
    bool split = false;          // multicast is off: each line is requested once for either SM
    std::int8_t unfinished = 1;  // SMs at which lines are missing or still pass the port

    Kind kind = Kind::load;
    bool multicast = false;
    bool second = false;  // of a split operation, `last` is still to be requested for the other SM
    std::uint8_t role = 0;
    std::uint8_t ring = 0;
    LineRequest last;
    std::int64_t fill = 0;         // absolute fill of the ring (load)
    std::int64_t store_group = 0;  // absolute store group of the role (store)
    std::int64_t bytes = 0;        // credited to the fill
    Cycle eligible = 0;
    Cycle start = 0;
    BoxLines lines;
};

class TmaEngine {
  public:
    TmaEngine(const Config& config, int sm, Sm& owner, PairStats& stats);

    // Queues an operation issued at `now`; `map` is -1 for bulk copies.
    void issue(const TmaOp& op, int map, Cycle now);

    // Phase 2: starts operations and issues lines that are due at `now`; also lines that are due later, but before
    // `horizon`, if nothing that happens until then can hold them back or be changed by them.
    void run(Cycle now, MemoryPort& port, Cycle horizon);

    // A line of `op` is complete at `now`; `other` tells that it is so at the other SM (multicast).
    void answer(std::uint16_t op, bool other, Cycle now);

    // A line of `op` came at `now` and leaves the response port at `leaves`, as its `number`-th line. Returns true if
    // it is the last one: `finish` is due at `leaves`.
    bool arrive(std::uint16_t index, bool other, Cycle leaves, std::uint64_t number, Cycle now) {
        TmaOp& op = ops_[index];
        if (!other || op.split) {
            if (leaves == now) {
                line_left(now);
            } else {
                leaving_[other].push(leaves);
                if (blocked_ && limited_) next_ = std::min(next_, leaves);
            }
        }
        TmaOp::Arrivals& arrivals = op.arrivals[other];
        arrivals.last = leaves;
        arrivals.last_number = number;
        return --arrivals.missing == 0;
    }

    // The last line of `op` has left the port of its own or (`other`) of the other SM.
    void finish(std::uint16_t op, bool other, Cycle now);

    // Level 0: the operation is done without traffic.
    void complete(std::uint16_t op, Cycle now);

    // A coalescer entry came free; returns true if that lets lines go on at `now`.
    bool unblock(Cycle now) {
        if (!blocked_ || limited_ || next_ <= now) return false;
        next_ = now;
        return true;
    }

    // Counts the cycles up to `end` in which a line is held back.
    void close_accounts(Cycle end) {
        if (!blocked_) return;
        stats_.tma_limit_cycles += end - blocked_since_;
        blocked_since_ = end;
    }

    bool blocked() const { return blocked_; }

    // First cycle at which `run` has something to do.
    Cycle next() const { return next_; }
    // Lines that have been requested and have not left a port before `now`.
    int in_flight(Cycle now) const {
        int lines = in_flight_;
        for (const RingBuffer<Cycle>& leaving : leaving_)
            for (std::size_t i = 0; i < leaving.size() && leaving[i] < now; ++i) --lines;
        return lines;
    }
    bool quiet(Cycle now) const { return queue_size_ == 0 && in_flight(now) == 0; }
    const TmaOp& op(std::uint16_t index) const { return ops_[index]; }

  private:
    static constexpr std::size_t kMaxOps = 65536;  // their numbers have 16 bits

    std::uint16_t front() const { return queue_[queue_head_]; }
    void pop();
    bool issue_ahead(TmaOp& op, std::uint16_t index, Cycle now, MemoryPort& port, Cycle horizon);
    void pace(Cycle now);
    void count_part(SectorMask sectors, bool write, bool both);
    bool at_limit(Cycle now);
    void line_left(Cycle now) {
        --in_flight_;
        if (blocked_ && next_ > now) next_ = now;
    }
    void end_issue(std::uint16_t index, Cycle now, MemoryPort& port);
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
    bool blocked_ = false;          // its next line is ready and has to wait ...
    bool limited_ = false;          // ... for the limit of lines in flight, not for the coalescer
    Cycle blocked_since_ = 0;
    Cycle last_start_ = -(Cycle{1} << 40);      // of the last operation: long ago
    Cycle pace_cycle_ = -1;                     // the next line may go out from here on
    Cycle pace_start_ = -1;                     // cycle of the last line ...
    std::int32_t pace_used_ = 0;                // ... and so many went out in it
    SectorMask all_;                            // sectors of a line
    std::int32_t in_flight_ = 0;                // lines requested, those included that `leaving_` still lists
    std::array<RingBuffer<Cycle>, 2> leaving_;  // cycles at which lines leave the ports; looked at when the limit binds
    Cycle issued_until_ = 0;                    // of the last operation, for the timeline
    Cycle next_ = kNever;
};

}  // namespace simfa
