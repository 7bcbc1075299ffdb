// An SM pair's way to memory: coalescer, crossbar, and the two SMs' response ports; or ideal memory.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "config.hpp"
#include "line_hash.hpp"
#include "lrc.hpp"
#include "mailbox.hpp"
#include "messages.hpp"
#include "ring_buffer.hpp"
#include "stats.hpp"
#include "tma.hpp"
#include "types.hpp"

namespace simfa {

class MemoryPort {
  public:
    MemoryPort(const Config& config, int pair, int pairs, PairStats& stats);

    // Where requests go: the slices' mailboxes, for the thread that runs this pair.
    void connect(const Outbox& outbox, TmaEngine* sm0, TmaEngine* sm1) {
        outbox_ = outbox;
        tma_ = {sm0, sm1};
    }

    // True if a line of `waiter` may be requested now.
    bool ready(Cycle now) { return ideal_latency_ > 0 || !lrc_.full(now); }

    // After `ready` said no: the first cycle at which it may say yes without an answer.
    Cycle retry() const { return lrc_.next_expiry(); }

    // Whether lines may be sent ahead of time: the coalescer is never full, and neither can a read of the other SM join
    // them nor they one of its reads.
    bool independent(bool write, bool multicast) const {
        return never_full_ && (write || multicast || !lrc_.merging());
    }

    // Requests one line for `waiter`.
    void request(std::uint32_t line, bool write, const Waiter& waiter, Cycle now);

    // Requests for `waiter` that cannot join others: first all but line and sectors, then each goes to its slice.
    Message request_of(bool write, const Waiter& waiter) const {
        Message request;
        request.source = static_cast<std::uint16_t>(pair_);
        request.tag = waiter.op;
        request.kind = write ? write_request : read_request;
        request.flags = static_cast<std::uint16_t>(waiter.owner | static_cast<unsigned>(waiter.target) << 1 |
                                                   SectorMask{waiter.sectors} << kSectorShift);
        return request;
    }
    [[gnu::always_inline]] void post(const Message& request, Cycle now) {
        int slice = static_cast<int>(hash_.slice_of(request.line));
        // Sides are as good as random: chosen without a branch.
        const int far = static_cast<int>(slice >= first_far_slice_) ^ side_;
        Cycle latency = request_cycles_[far];
        if (remote_copy_ && far != 0 && request.kind == read_request) {
            // The near twin looks for a shadow first.
            slice = (slice + slice_count_ / 2) % slice_count_;
            latency = request_cycles_[0];
        }
        outbox_.to_slice(slice, now + latency, request);
    }
    void note_part(bool write, SectorMask sectors) {
        if (!write) stats_.l2_read_spared_sectors += sector_count(all_ & ~sectors);
    }
    void note_sent(bool write, int lines) {
        lrc_.open_unjoinable(lines);
        if (!write) stats_.l2_read_requests += lines;
    }

    // A response or acknowledgement from a slice. Returns true if anything but later answers may be due sooner than
    // `next` and the TMA engines said before.
    bool answer(const Message& message, Cycle now);

    // An operation of SM `sm` ends when the `number`-th line of a port, its last one, leaves that port at `cycle`.
    void finish_later(int sm, std::uint16_t op, bool other, Cycle cycle, std::uint64_t number);

    // Asks the host's caches for what the answers of a window will touch.
    void prefetch(std::span<const Message> inbox) const {
        for (const Message& message : inbox)
            if (message.kind == read_response && target_of(message) != Target::both) lrc_.prefetch(message.line);
    }

    // Phase 1: ends operations whose last lines leave the response ports at `now`.
    void run(Cycle now);

    // First cycle at which `run` has something to do.
    Cycle next() const {
        Cycle first = kNever;
        if (!ideal_.empty()) first = ideal_.front().cycle;
        for (const Port& port : ports_)
            if (!port.finishes.empty() && port.finishes.front().cycle < first) first = port.finishes.front().cycle;
        return first;
    }

    bool quiet() const { return ideal_.empty() && lrc_.outstanding() == 0; }

  private:
    // An operation whose last line leaves a port.
    struct Finish {
        Cycle cycle;
        std::uint64_t number;  // of the line
        std::uint16_t op;
        std::uint8_t owner;
        bool other;
    };
    // The cycle at which a line leaves is known when it comes; only an operation's last line is an event.
    struct Port {
        Cycle cycle = 0;           // of the last delivery ...
        std::int32_t used = 0;     // ... and how many there were in it
        std::int32_t cycles = 1;   // for which the last one takes the port
        std::uint64_t number = 0;  // deliveries so far
        RingBuffer<Finish> finishes;
    };
    struct IdealAnswer {
        Cycle cycle;
        Waiter waiter;
    };

    static Target target_of(const Message& message) { return static_cast<Target>(message.flags >> 1 & 3); }
    bool deliver(int sm, const Waiter& waiter, bool other, Cycle now);
    bool deliver_all(const Waiter& waiter, Cycle now);
    bool finish_at(const Finish& finish, Port& port, Cycle now);

    int pair_;
    int side_;
    int slice_count_;
    int first_far_slice_;
    bool remote_copy_;
    Cycle ideal_latency_;
    bool never_full_;
    std::array<Cycle, 2> request_cycles_;  // near, far
    std::int32_t port_lines_per_cycle_;
    bool slow_port_;  // a line takes several cycles, so a part takes fewer
    SectorCycles port_cycles_;
    SectorMask all_;
    PairStats& stats_;
    LineHash hash_;
    Lrc lrc_;
    Outbox outbox_;
    std::array<TmaEngine*, 2> tma_{};
    std::array<Port, 2> ports_;
    RingBuffer<IdealAnswer> ideal_;
};

}  // namespace simfa
