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

    // Requests one line for `waiter`.
    void request(std::uint32_t line, bool write, const Waiter& waiter, Cycle now);

    // A response or acknowledgement from a slice.
    void answer(const Message& message, Cycle now);

    // Asks the host's caches for what the answers of a window will touch.
    void prefetch(std::span<const Message> inbox) const {
        for (const Message& message : inbox)
            if (message.kind == read_response) lrc_.prefetch(message.line);
    }

    // Phase 1: delivers what is due at `now` at the response ports.
    void run(Cycle now);

    // First cycle at which `run` has something to do.
    Cycle next() const {
        Cycle first = kNever;
        if (!ideal_.empty()) first = ideal_.front().cycle;
        for (const Port& port : ports_)
            if (!port.queue.empty() && port.queue.front().cycle < first) first = port.queue.front().cycle;
        return first;
    }

    bool quiet() const { return ideal_.empty() && lrc_.outstanding() == 0; }

  private:
    struct Delivery {
        Cycle cycle;
        Waiter waiter;
        bool other;
    };
    struct Port {
        Cycle cycle = -1;       // of the last delivery; if a line takes several cycles, the first free one
        std::int32_t used = 0;  // deliveries in that cycle
        RingBuffer<Delivery> queue;
    };

    void deliver(int sm, const Waiter& waiter, bool other, Cycle now);
    void deliver_all(const Waiter& waiter, Cycle now);

    int pair_;
    int side_;
    int slice_count_;
    bool remote_copy_;
    Cycle ideal_latency_;
    Cycle near_request_cycles_;
    Cycle far_request_cycles_;
    std::int32_t port_lines_per_cycle_;
    std::int32_t port_cycles_per_line_;
    PairStats& stats_;
    LineHash hash_;
    Lrc lrc_;
    Outbox outbox_;
    std::array<TmaEngine*, 2> tma_{};
    std::array<Port, 2> ports_;
    RingBuffer<Delivery> ideal_;
};

}  // namespace simfa
