// L2 request coalescer of an SM pair: a read joins an outstanding read of the same line from the other SM.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "config.hpp"
#include "ring_buffer.hpp"
#include "types.hpp"

namespace simfa {

// Which SM of the pair a line goes to, seen from the one whose TMA engine asked for it.
enum class Target : std::uint8_t { own, both, other };

// Who gets a line: the TMA operation `op` of SM `owner`.
struct Waiter {
    std::uint16_t op = 0;
    std::uint8_t owner = 0;
    Target target = Target::own;

    // The SM whose read this is, for merging.
    int reader() const { return target == Target::other ? owner ^ 1 : owner; }
};

// Keeps the pair's outstanding requests; an entry's number travels with the request and comes back with the answer.
// Multicast requests and writes are kept, but never joined.
class Lrc {
  public:
    // 16 bytes: these are touched twice for every line, in random order.
    struct Entry {
        std::uint32_t line = 0;
        std::uint8_t waiters = 0;
        bool write = false;
        bool answered = false;  // kept for `hold_cycles` after its answer
        bool findable = false;  // in the table of lines
        Waiter first;
        Waiter second;
    };

    explicit Lrc(const Config& config)
        : merging_(config.lrc_enabled),
          limit_(config.lrc_enabled ? config.lrc_entries : 2 * config.max_lines_in_flight),
          max_merges_(config.lrc_max_merges),
          hold_cycles_(config.lrc_hold_cycles) {
        entries_.resize(limit_);
        more_.resize(limit_);
        free_.reserve(limit_);
        for (int i = limit_ - 1; i >= 0; --i) free_.push_back(static_cast<std::uint16_t>(i));
        std::size_t slots = 16;
        shift_ = 28;
        while (slots < 2U * limit_) {
            slots *= 2;
            --shift_;
        }
        table_.assign(slots, kEmpty);
    }

    bool full(Cycle now) {
        if (free_.empty()) expire(now);
        return free_.empty();
    }

    // An outstanding (or held) read of `line` that `waiter` may join, or -1.
    int find(std::uint32_t line, const Waiter& waiter, Cycle now) {
        if (!merging_ || waiter.target == Target::both) return -1;
        if (!held_.empty()) expire(now);
        for (std::size_t i = slot_of(line); table_[i] != kEmpty; i = (i + 1) & (table_.size() - 1)) {
            const Entry& entry = entries_[table_[i]];
            if (entry.line == line && entry.first.reader() != waiter.reader() && entry.waiters < max_merges_)
                return table_[i];
        }
        return -1;
    }

    // Joins an entry; true if it was answered already and the line can be delivered at once.
    bool join(int index, const Waiter& waiter) {
        Entry& entry = entries_[index];
        if (entry.waiters == 1)
            entry.second = waiter;
        else
            more_[index][entry.waiters - 2] = waiter;
        ++entry.waiters;
        return entry.answered;
    }

    // Takes a free entry for a new request; only valid while not `full`.
    int open(std::uint32_t line, bool write, const Waiter& waiter) {
        const int index = free_.back();
        free_.pop_back();
        entries_[index] = {line, 1, write, false, merging_ && !write && waiter.target != Target::both, waiter, {}};
        if (entries_[index].findable) insert(index);
        return index;
    }

    const Entry& entry(int index) const { return entries_[index]; }

    // Entries are spread over more memory than the nearest cache holds: ask for one, or for its table slot, early.
    void prefetch(int index) const { __builtin_prefetch(&entries_[index]); }
    void prefetch_slot(int index) const { __builtin_prefetch(&table_[slot_of(entries_[index].line)]); }

    // Waiter `number` of an entry, in order of joining.
    const Waiter& waiter(int index, int number) const {
        if (number == 0) return entries_[index].first;
        return number == 1 ? entries_[index].second : more_[index][number - 2];
    }

    // The answer of entry `index` was delivered to all its waiters.
    void close(int index, Cycle now) {
        Entry& entry = entries_[index];
        if (hold_cycles_ > 0 && entry.findable) {
            entry.answered = true;
            held_.push({now + hold_cycles_, static_cast<std::uint16_t>(index)});
            return;
        }
        release(index);
    }

    int outstanding() const { return limit_ - static_cast<int>(free_.size()) - static_cast<int>(held_.size()); }

  private:
    static constexpr std::uint16_t kEmpty = 0xFFFF;
    struct Held {
        Cycle until;
        std::uint16_t index;
    };

    std::size_t slot_of(std::uint32_t line) const { return (line * 0x9E3779B1U) >> shift_; }

    void insert(int index) {
        std::size_t i = slot_of(entries_[index].line);
        while (table_[i] != kEmpty) i = (i + 1) & (table_.size() - 1);
        table_[i] = static_cast<std::uint16_t>(index);
    }

    void erase(int index) {
        const std::size_t mask = table_.size() - 1;
        std::size_t hole = slot_of(entries_[index].line);
        while (table_[hole] != index) hole = (hole + 1) & mask;
        for (std::size_t i = (hole + 1) & mask; table_[i] != kEmpty; i = (i + 1) & mask) {
            const std::size_t home = slot_of(entries_[table_[i]].line);
            if (((i - home) & mask) >= ((i - hole) & mask)) {
                table_[hole] = table_[i];
                hole = i;
            }
        }
        table_[hole] = kEmpty;
    }

    void release(int index) {
        if (entries_[index].findable) erase(index);
        free_.push_back(static_cast<std::uint16_t>(index));
    }

    // Frees held entries whose time is over; they were closed in order of time.
    void expire(Cycle now) {
        while (!held_.empty() && held_.front().until < now) {
            release(held_.front().index);
            held_.pop();
        }
    }

    bool merging_;
    int limit_;
    int max_merges_;
    int hold_cycles_;
    int shift_;
    std::vector<Entry> entries_;
    std::vector<std::array<Waiter, kMaxLrcWaiters - 2>> more_;
    std::vector<std::uint16_t> free_;
    std::vector<std::uint16_t> table_;
    RingBuffer<Held> held_;
};

}  // namespace simfa
