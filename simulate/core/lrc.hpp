// L2 request coalescer of an SM pair: a read joins an outstanding read from the other SM that asks for all it needs.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "config.hpp"
#include "ring_buffer.hpp"
#include "sectors.hpp"
#include "types.hpp"

namespace simfa {

// Which SM of the pair a line goes to, seen from the one whose TMA engine asked for it.
enum class Target : std::uint8_t { own, both, other };

// Who gets which sectors of a line: the TMA operation `op` of SM `owner`. It travels with the request and comes back
// with the answer.
struct Waiter {
    std::uint16_t op = 0;
    std::uint8_t owner = 0;
    Target target = Target::own;
    std::uint8_t sectors = 0;

    // The SM whose read this is, for merging.
    int reader() const { return target == Target::other ? owner ^ 1 : owner; }
};

// Finds outstanding reads by line. Multicast reads and writes only take up an entry; they are never joined.
class Lrc {
  public:
    explicit Lrc(const Config& config)
        : all_(static_cast<std::uint8_t>(all_sectors(config.sectors()))),
          merging_(config.lrc_enabled),
          limit_(config.lrc_enabled ? config.lrc_entries : 2 * config.max_lines_in_flight),
          max_merges_(config.lrc_max_merges),
          hold_cycles_(config.lrc_hold_cycles) {
        std::size_t slots = 64;
        shift_ = 26;
        while (merging_ && slots < 2 * static_cast<std::size_t>(limit_)) {
            slots *= 2;
            --shift_;
        }
        table_.assign(slots, kEmpty);
        joined_index_.assign(slots, 0);
    }

    bool merging() const { return merging_; }

    bool full(Cycle now) {
        if (!held_.empty()) expire(now);
        return outstanding_ + static_cast<int>(held_.size()) >= limit_;
    }

    // If the coalescer is full: the first cycle at which it may have room without an answer, because lines need not be
    // held any more; kNever if only an answer can help.
    Cycle next_expiry() const { return held_.empty() ? kNever : held_.front().until + 1; }

    enum class Found : std::uint8_t { none, joined, answered };

    // Lets `waiter` join an outstanding read of `line`; `answered`: its data is still held and goes out at once.
    Found join(std::uint32_t line, const Waiter& waiter, Cycle now) {
        if (!merging_ || waiter.target == Target::both) return Found::none;
        if (!held_.empty()) expire(now);
        for (std::size_t i = slot_of(line); table_[i] != kEmpty; i = next(i)) {
            const std::uint32_t slot = table_[i];
            if ((slot & kLine) != line || static_cast<int>((slot & kReader) != 0) == waiter.reader()) continue;
            if ((waiter.sectors & ~sectors_at(i)) != 0) continue;
            if ((slot & kAnswered) != 0) return Found::answered;
            if ((slot & kJoined) == 0) {
                if (max_merges_ < 2) continue;
                table_[i] |= kJoined;
                joined_index_[i] = take_list();
            }
            Joined& list = joined_[joined_index_[i]];
            if (list.count + 1 >= max_merges_) continue;
            list.waiters[list.count++] = waiter;
            return Found::joined;
        }
        return Found::none;
    }

    // Notes a request that leaves the coalescer; only valid while not `full`.
    void open(std::uint32_t line, bool write, const Waiter& waiter) {
        ++outstanding_;
        if (!merging_ || write || waiter.target == Target::both) return;
        std::size_t i = slot_of(line);
        while (table_[i] != kEmpty) i = next(i);
        table_[i] = line | (waiter.reader() != 0 ? kReader : 0);
        note_sectors(i, waiter.sectors);
    }

    // Notes requests that nobody can join.
    void open_unjoinable(int requests) { outstanding_ += requests; }

    // The request of `first` is answered: returns who joined it, valid until the next call.
    std::span<const Waiter> close(std::uint32_t line, bool write, const Waiter& first, Cycle now) {
        --outstanding_;
        if (!merging_ || write || first.target == Target::both) return {};
        const std::uint32_t reader = first.reader() != 0 ? kReader : 0;
        std::size_t i = slot_of(line);
        while ((table_[i] & ~kJoined) != (line | reader) || sectors_at(i) != first.sectors) i = next(i);
        std::span<const Waiter> joined;
        if ((table_[i] & kJoined) != 0) {
            const Joined& list = joined_[joined_index_[i]];
            joined = {list.waiters.data(), static_cast<std::size_t>(list.count)};
            free_lists_.push_back(joined_index_[i]);
        }
        if (hold_cycles_ > 0) {
            table_[i] = line | reader | kAnswered;
            held_.push({now + hold_cycles_, line | reader | kAnswered, first.sectors});
        } else {
            erase(i);
        }
        return joined;
    }

    // Tables of all pairs are more memory than the nearest cache holds: ask for a line's slot early.
    void prefetch(std::uint32_t line) const { __builtin_prefetch(&table_[slot_of(line)]); }

    int outstanding() const { return outstanding_; }

  private:
    // A slot is a line number below kLineLimit and three flags.
    static constexpr std::uint32_t kEmpty = 0xFFFFFFFF;
    static constexpr std::uint32_t kReader = 1U << 31;
    static constexpr std::uint32_t kJoined = 1U << 30;
    static constexpr std::uint32_t kAnswered = 1U << 29;
    static constexpr std::uint32_t kLine = kAnswered - 1;

    struct Joined {
        std::int32_t count = 0;
        std::array<Waiter, kMaxLrcWaiters> waiters{};
    };
    struct Held {
        Cycle until = 0;
        std::uint32_t slot = 0;
        std::uint8_t sectors = 0;
    };

    // What the request in a slot asks for; kept from the first request on that does not ask for a whole line.
    std::uint8_t sectors_at(std::size_t i) const { return in_parts_ ? sectors_[i] : all_; }
    void note_sectors(std::size_t i, std::uint8_t sectors) {
        if (sectors == all_ && !in_parts_) [[likely]]
            return;
        if (!in_parts_) sectors_.assign(table_.size(), all_);
        in_parts_ = true;
        sectors_[i] = sectors;
    }

    std::size_t slot_of(std::uint32_t line) const { return (line * 0x9E3779B1U) >> shift_; }
    std::size_t next(std::size_t i) const { return (i + 1) & (table_.size() - 1); }

    std::uint16_t take_list() {
        if (free_lists_.empty()) {
            joined_.emplace_back();
            return static_cast<std::uint16_t>(joined_.size() - 1);
        }
        const std::uint16_t index = free_lists_.back();
        free_lists_.pop_back();
        joined_[index].count = 0;
        return index;
    }

    // Linear probing without tombstones: later slots of the run move up.
    void erase(std::size_t hole) {
        const std::size_t mask = table_.size() - 1;
        for (std::size_t i = next(hole); table_[i] != kEmpty; i = next(i)) {
            const std::size_t home = slot_of(table_[i] & kLine);
            if (((i - home) & mask) < ((i - hole) & mask)) continue;
            table_[hole] = table_[i];
            if ((table_[i] & kJoined) != 0) joined_index_[hole] = joined_index_[i];
            if (in_parts_) sectors_[hole] = sectors_[i];
            hole = i;
        }
        table_[hole] = kEmpty;
    }

    // Drops held lines whose time is over; they were closed in order of time.
    void expire(Cycle now) {
        while (!held_.empty() && held_.front().until < now) {
            std::size_t i = slot_of(held_.front().slot & kLine);
            while (table_[i] != held_.front().slot || sectors_at(i) != held_.front().sectors) i = next(i);
            erase(i);
            held_.pop();
        }
    }

    std::uint8_t all_;       // sectors of a line
    bool in_parts_ = false;  // not all requests were for all of them
    bool merging_;
    int limit_;
    int max_merges_;
    int hold_cycles_;
    int shift_;
    int outstanding_ = 0;
    std::vector<std::uint32_t> table_;
    std::vector<std::uint16_t> joined_index_;  // of slots that were joined: their list
    std::vector<std::uint8_t> sectors_;        // by slot, once `in_parts_`
    std::vector<Joined> joined_;
    std::vector<std::uint16_t> free_lists_;
    RingBuffer<Held> held_;
};

}  // namespace simfa
