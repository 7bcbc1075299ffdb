// One SM pair as a unit of the window-synchronous engine: two SMs, their way to memory, and the asynchronous event
// queue (AEQ) of what they have set off for later cycles.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "config.hpp"
#include "mailbox.hpp"
#include "memory_port.hpp"
#include "messages.hpp"
#include "sm.hpp"
#include "stats.hpp"
#include "timeline.hpp"
#include "types.hpp"

namespace simfa {

// Lines in flight of either SM at a cycle.
struct PairSample {
    Cycle cycle;
    std::array<std::int32_t, 2> lines_in_flight;
};

class Pair final : public SmHost {
  public:
    Pair(const Config& config, const Kernel& kernel, int index, int pairs);

    // `grid` takes tile requests of dynamic schedules; its messages carry the CTA in `source`.
    void connect(const Outbox& outbox, Mailboxes* grid);

    // Simulates cycles [begin, end) with the messages of that window.
    void run(Cycle begin, Cycle end, std::span<const Message> inbox);

    bool done() const { return sms_[0].done() && sms_[1].done() && quiet(); }
    Cycle end_cycle() const { return std::max(sms_[0].end_cycle(), sms_[1].end_cycle()); }
    // First cycle at which something happens without a message; kNever if nothing does.
    Cycle next_event() const { return next_internal(); }

    Sm& sm(int index) { return sms_[index]; }
    const Sm& sm(int index) const { return sms_[index]; }
    const PairStats& stats() const { return stats_; }
    const Timeline& timeline() const { return timeline_; }
    const std::vector<PairSample>& samples() const { return samples_; }
    void close_accounts(Cycle end);

    void release_later(int sm, int ring, std::int64_t fill, Cycle cycle) override;
    void signal_later(int sm, int barrier, Cycle cycle) override;
    void read_later(int sm, int role, std::int64_t group, Cycle cycle) override;
    void complete_later(int sm, std::uint16_t op, Cycle cycle) override;
    void request_tile(int sm, Cycle cycle) override;

  private:
    enum class Kind : std::uint8_t { release, signal, read, complete };
    // Something one SM has set off for a later cycle.
    struct Pending {
        Cycle cycle;
        std::uint64_t sequence;
        std::int64_t value;
        Kind kind;
        std::uint8_t sm;
        std::uint16_t index;
        bool operator>(const Pending& other) const {
            return cycle != other.cycle ? cycle > other.cycle : sequence > other.sequence;
        }
    };

    void push(Kind kind, int sm, int index, std::int64_t value, Cycle cycle);
    // Returns true if something may happen sooner than `next_internal` said.
    bool on_message(const Message& message, Cycle now);
    void on_pending(const Pending& pending);
    Cycle next_internal() const;
    bool quiet() const;
    void sample(Cycle now);
    void sample_at(Cycle cycle);

    const Config& config_;
    const Kernel& kernel_;
    int index_;
    PairStats stats_;
    Timeline timeline_;
    Sampler sampler_;
    std::vector<PairSample> samples_;
    MemoryPort port_;
    std::array<Sm, 2> sms_;
    std::vector<Pending> pending_;  // the AEQ: a heap, earliest first
    std::uint64_t sequence_ = 0;
    Outbox outbox_;
    Mailboxes* grid_ = nullptr;
    Cycle end_ = 0;  // of the last window
};

}  // namespace simfa
