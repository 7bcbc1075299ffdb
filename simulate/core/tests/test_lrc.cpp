#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "check.hpp"
#include "lrc.hpp"

namespace simfa {

namespace {

using Found = Lrc::Found;

constexpr Waiter kSm0{.op = 10, .owner = 0, .target = Target::own};
constexpr Waiter kSm1{.op = 20, .owner = 1, .target = Target::own};
constexpr Waiter kToBoth{.op = 30, .owner = 0, .target = Target::both};

Config coalescer(int entries, int max_merges, int hold_cycles = 0) {
    Config config;
    config.lrc_entries = entries;
    config.lrc_max_merges = max_merges;
    config.lrc_hold_cycles = hold_cycles;
    return config;
}

bool joined(Lrc& lrc, std::uint32_t line, const Waiter& waiter, Cycle now = 0) {
    return lrc.join(line, waiter, now) == Found::joined;
}

}  // namespace

TEST(lrc_joins_a_read_of_the_other_sm) {
    Lrc lrc(coalescer(8, 4));
    CHECK(!joined(lrc, 5, kSm0));
    lrc.open(5, false, kSm0);
    CHECK(!joined(lrc, 6, kSm1));  // another line
    CHECK(!joined(lrc, 5, kSm0));  // the same SM asks on its own account
    CHECK(joined(lrc, 5, kSm1));
    CHECK_EQ(lrc.outstanding(), 1);
    const std::span<const Waiter> others = lrc.close(5, false, kSm0, 100);
    CHECK_EQ(others.size(), 1U);
    CHECK_EQ(others[0].op, 20);
    CHECK_EQ(others[0].owner, 1);
    CHECK_EQ(lrc.outstanding(), 0);
    CHECK(!joined(lrc, 5, kSm1));  // it is gone
}

// One half of a split multicast is asked for by SM 0 on behalf of SM 1: that counts as a read of SM 1.
TEST(lrc_looks_at_who_gets_the_line) {
    Lrc lrc(coalescer(8, 4));
    const Waiter for_peer{.op = 11, .owner = 0, .target = Target::other};
    CHECK_EQ(for_peer.reader(), 1);
    lrc.open(5, false, for_peer);
    CHECK(!joined(lrc, 5, kSm1));
    CHECK(joined(lrc, 5, kSm0));
}

// Three requests may share an entry: the first and two that join.
TEST(lrc_limits_merges_of_an_entry) {
    Lrc lrc(coalescer(8, 3));
    lrc.open(5, false, kSm0);
    CHECK(joined(lrc, 5, kSm1));
    CHECK(joined(lrc, 5, kSm1));
    CHECK(!joined(lrc, 5, kSm1));
    lrc.open(5, false, kSm1);  // so it goes out itself
    CHECK_EQ(lrc.outstanding(), 2);
    CHECK(joined(lrc, 5, kSm0));  // and can be joined from the other side
    CHECK_EQ(lrc.close(5, false, kSm0, 9).size(), 2U);
    CHECK_EQ(lrc.close(5, false, kSm1, 9).size(), 1U);
    Lrc alone(coalescer(8, 1));
    alone.open(5, false, kSm0);
    CHECK(!joined(alone, 5, kSm1));
}

TEST(lrc_never_joins_multicast_or_writes) {
    Lrc lrc(coalescer(8, 4));
    lrc.open(5, false, kToBoth);
    lrc.open(6, true, kSm0);
    CHECK(!joined(lrc, 5, kSm1));
    CHECK(!joined(lrc, 6, kSm1));
    lrc.open(7, false, kSm1);
    CHECK(!joined(lrc, 7, kToBoth));
    CHECK_EQ(lrc.outstanding(), 3);
    CHECK(lrc.close(5, false, kToBoth, 9).empty());
    CHECK(lrc.close(6, true, kSm0, 9).empty());
    CHECK(lrc.close(7, false, kSm1, 9).empty());
    CHECK_EQ(lrc.outstanding(), 0);
}

TEST(lrc_is_full_at_its_entries) {
    Lrc lrc(coalescer(2, 4));
    lrc.open(1, false, kSm0);
    CHECK(!lrc.full(0));
    lrc.open(2, true, kSm1);  // writes take entries, too
    CHECK(lrc.full(0));
    CHECK_EQ(lrc.next_expiry(), kNever);
    lrc.close(2, true, kSm1, 5);
    CHECK(!lrc.full(5));
}

// Switched off it neither merges nor limits.
TEST(lrc_switched_off_lets_everything_through) {
    Config config = coalescer(1, 4);
    config.lrc_enabled = false;
    config.max_lines_in_flight = 8;
    Lrc lrc(config);
    lrc.open(5, false, kSm0);
    CHECK(!joined(lrc, 5, kSm1));
    lrc.open(5, false, kSm1);
    CHECK(!lrc.full(0));
    CHECK(lrc.close(5, false, kSm0, 9).empty());
    CHECK_EQ(lrc.outstanding(), 1);
}

// Answered at 100 with 10 cycles of hold: up to 110 another read of the line is answered at once, and the entry is
// taken.
TEST(lrc_holds_answered_lines) {
    Lrc lrc(coalescer(1, 4, 10));
    lrc.open(5, false, kSm0);
    lrc.close(5, false, kSm0, 100);
    CHECK_EQ(lrc.outstanding(), 0);
    CHECK(lrc.join(5, kSm1, 105) == Found::answered);
    CHECK(lrc.join(5, kSm0, 105) == Found::none);
    CHECK(lrc.full(110));
    CHECK_EQ(lrc.next_expiry(), 111);
    CHECK(lrc.join(5, kSm1, 110) == Found::answered);
    CHECK(!lrc.full(111));
    CHECK(lrc.join(5, kSm1, 111) == Found::none);
    CHECK_EQ(lrc.next_expiry(), kNever);
}

// Random traffic against lists of outstanding and held reads.
TEST(lrc_agrees_with_lists) {
    struct Entry {
        Waiter first;
        std::vector<Waiter> joined;
    };
    std::mt19937 random(13);
    for (int round = 0; round < 60; ++round) {
        const int limit = 1 + static_cast<int>(random() % 40);
        const int merges = 1 + static_cast<int>(random() % kMaxLrcWaiters);
        const int hold = random() % 2 != 0 ? static_cast<int>(random() % 30) : 0;
        Lrc lrc(coalescer(limit, merges, hold));
        std::multimap<std::uint32_t, Entry> open;
        std::vector<std::pair<std::uint32_t, Waiter>> asked;                // in order of opening
        std::vector<std::pair<Cycle, std::pair<std::uint32_t, int>>> held;  // until, (line, reader)
        std::uint16_t op = 0;
        Cycle now = 0;
        for (int step = 0; step < 1500; ++step) {
            now += static_cast<Cycle>(random() % 3);
            std::erase_if(held, [&](const auto& item) { return item.first < now; });
            CHECK_EQ(lrc.full(now), static_cast<int>(open.size() + held.size()) >= limit);
            if (random() % 2 != 0 && !asked.empty()) {
                const std::size_t index = random() % asked.size();
                const auto [line, waiter] = asked[index];
                asked.erase(asked.begin() + static_cast<std::ptrdiff_t>(index));
                const bool mergeable = waiter.target != Target::both;
                // Of several reads of one line by one SM any may be the one that was joined.
                std::vector<std::uint16_t> found;
                for (const Waiter& other : lrc.close(line, false, waiter, now)) found.push_back(other.op);
                const auto range = open.equal_range(line);
                auto match = range.second;
                for (auto i = range.first; i != range.second; ++i) {
                    if (i->second.first.reader() != waiter.reader() ||
                        (i->second.first.target == Target::both) == mergeable)
                        continue;
                    std::vector<std::uint16_t> ops;
                    for (const Waiter& other : i->second.joined) ops.push_back(other.op);
                    if (ops == found) match = i;
                }
                CHECK(match != range.second);
                if (match == range.second) return;
                open.erase(match);
                if (mergeable && hold > 0) held.push_back({now + hold, {line, waiter.reader()}});
                continue;
            }
            const auto line = static_cast<std::uint32_t>(random() % 24);
            const auto target = static_cast<Target>(random() % 3);
            const Waiter waiter{++op, static_cast<std::uint8_t>(random() % 2), target};
            if (lrc.full(now)) continue;
            const Found found = lrc.join(line, waiter, now);
            const auto is_held = [&](const auto& item) {
                return item.second.first == line && item.second.second != waiter.reader();
            };
            if (found == Found::answered) {
                CHECK(target != Target::both && std::any_of(held.begin(), held.end(), is_held));
            } else if (found == Found::joined) {
                // Follow the coalescer's choice among equal entries: the list that has room.
                bool placed = false;
                const auto range = open.equal_range(line);
                for (auto i = range.first; i != range.second && !placed; ++i) {
                    Entry& entry = i->second;
                    if (entry.first.target == Target::both || entry.first.reader() == waiter.reader() ||
                        static_cast<int>(entry.joined.size()) + 1 >= merges)
                        continue;
                    entry.joined.push_back(waiter);
                    placed = true;
                }
                CHECK(placed && target != Target::both);
            } else {
                const auto range = open.equal_range(line);
                const bool room = std::any_of(range.first, range.second, [&](const auto& item) {
                    return item.second.first.target != Target::both && item.second.first.reader() != waiter.reader() &&
                           static_cast<int>(item.second.joined.size()) + 1 < merges;
                });
                CHECK(target == Target::both || (!room && std::none_of(held.begin(), held.end(), is_held)));
                lrc.open(line, false, waiter);
                open.insert({line, {waiter, {}}});
                asked.push_back({line, waiter});
            }
            CHECK_EQ(lrc.outstanding(), static_cast<int>(open.size()));
        }
    }
}

}  // namespace simfa
