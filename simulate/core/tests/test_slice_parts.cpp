#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "check.hpp"
#include "messages.hpp"
#include "mshr.hpp"
#include "ring_buffer.hpp"
#include "tag_array.hpp"

namespace simfa {

namespace {

bool same(const Victim& victim, std::uint32_t tag, SectorMask dirty) {
    return victim.valid && victim.tag == tag && victim.dirty == dirty;
}

constexpr SectorMask kAll = 0xF;  // sectors of a line

}  // namespace

TEST(ring_buffer_keeps_order_while_it_grows) {
    RingBuffer<int> buffer;
    int pushed = 0;
    int popped = 0;
    for (int round = 0; round < 200; ++round) {
        for (int i = 0; i < 5; ++i) buffer.push(pushed++);
        CHECK_EQ(buffer[buffer.size() - 1], pushed - 1);
        for (int i = 0; i < 3; ++i, buffer.pop()) CHECK_EQ(buffer.front(), popped++);
    }
    for (; !buffer.empty(); buffer.pop()) CHECK_EQ(buffer.front(), popped++);
    CHECK_EQ(popped, pushed);
}

TEST(tag_array_replaces_the_least_recently_used) {
    for (const std::uint32_t base : {0U, 1U << 20}) {  // entries of two and of four bytes
        TagArray tags(2, 3, 4);
        for (const std::uint32_t tag : {10U, 20U, 30U}) CHECK(!tags.insert({1, base + tag}, 0, kAll, 0).valid);
        CHECK(tags.read({1, base + 10}, 0, kAll));
        CHECK(!tags.read({0, base + 10}, 0, kAll));
        CHECK(!tags.read({1, base + 10}, kShadow, kAll));
        CHECK(tags.write({1, base + 30}, kAll));  // order is now 30, 10, 20
        CHECK(same(tags.insert({1, base + 40}, 0, kAll, 0), base + 20, 0));
        CHECK(same(tags.insert({1, base + 50}, 0, kAll, 0), base + 10, 0));
        CHECK(same(tags.insert({1, base + 60}, 0, kAll, 0), base + 30, kAll));
        CHECK(!tags.sectored());
    }
}

// A line and its sectors.
struct ListedLine {
    std::uint32_t tag = 0;
    SectorMask valid = 0;
    SectorMask dirty = 0;
};

// A plain list for each set does the same as vectors of entries: while they are narrow, after they have grown, and once
// lines are there in part.
TEST(tag_array_agrees_with_lists) {
    for (const int ways : {1, 3, 8, 20, 33}) {
        TagArray tags(2, ways, 4);
        std::array<std::vector<ListedLine>, 2> model;
        std::mt19937 random(5);
        std::size_t wrong = 0;
        for (int step = 0; step < 6000; ++step) {
            const std::uint32_t set = random() % 2;
            const std::uint32_t tag = random() % (2 * static_cast<unsigned>(ways)) + (step > 3000 ? 16383 - ways : 0);
            const SectorMask sectors = step > 4000 ? random() % kAll + 1 : kAll;
            const bool write = random() % 3 == 0;
            std::vector<ListedLine>& list = model[set];
            const auto found =
                std::find_if(list.begin(), list.end(), [&](const auto& line) { return line.tag == tag; });
            const bool there = found != list.end();
            const TagPlace place{set, tag};
            wrong += tags.valid(place) != (there ? found->valid : 0);
            ListedLine line = there ? *found : ListedLine{.tag = tag};
            const bool hit = there && (write || (sectors & ~line.valid) == 0);
            wrong += (write ? tags.write(place, sectors) : tags.read(place, 0, sectors)) != hit;
            line.valid |= sectors;
            line.dirty |= write ? sectors : 0;
            if (there) list.erase(found);
            list.insert(list.begin(), line);
            if (hit) continue;
            wrong += tags.add(place, 0, sectors, 0) != there;
            if (there) continue;
            const Victim victim = tags.insert(place, 0, sectors, write ? sectors : 0);
            const bool full = list.size() > static_cast<std::size_t>(ways);
            wrong += victim.valid != full || (full && !same(victim, list.back().tag, list.back().dirty));
            if (full) list.pop_back();
        }
        CHECK_EQ(wrong, 0U);
        CHECK(tags.sectored());
    }
}

TEST(tag_array_forgets_erased_lines) {
    TagArray tags(1, 3, 4);
    tags.insert({0, 1}, kShadow, kAll, 0);
    tags.insert({0, 2}, 0, kAll, 0);
    tags.insert({0, 3}, kShadow, kAll, 0);
    CHECK_EQ(tags.shadows(0), 2);
    CHECK(!tags.erase({0, 1}));
    CHECK(tags.erase({0, 1}, kShadow));
    CHECK(!tags.erase({0, 1}, kShadow));
    CHECK_EQ(tags.shadows(0), 1);
    CHECK(!tags.insert({0, 4}, 0, kAll, 0).valid);
    CHECK(same(tags.insert({0, 5}, 0, kAll, 0), 2, 0));
}

// A thousand random operations against a plain map.
TEST(mshr_file_agrees_with_a_map) {
    MshrFile mshr(16, 4);
    std::map<std::uint32_t, std::vector<std::uint16_t>> model;
    std::mt19937 random(3);
    std::uint16_t tag = 0;
    for (int step = 0; step < 20000; ++step) {
        const std::uint32_t line = random() % 40 * 1024;
        const int entry = mshr.find(line, kAll).entry;
        CHECK_EQ(entry >= 0, model.contains(line));
        CHECK_EQ(mshr.full(), model.size() == 16);
        const SliceRequest request{.message = {.line = line, .tag = ++tag}, .place = {line % 4, line / 4}};
        if (random() % 3 == 0 && entry >= 0) {
            mshr.filled(entry);
            CHECK_EQ(mshr.find(line, kAll).entry, -1);
            CHECK_EQ(mshr.line(entry), line);
            for (const std::uint16_t expected : model[line]) {
                CHECK_EQ(mshr.front(entry).message.tag, expected);
                mshr.pop(entry);
            }
            CHECK(mshr.empty(entry));
            mshr.release(entry);
            model.erase(line);
        } else if (entry >= 0) {
            CHECK_EQ(mshr.merge_full(entry), model[line].size() == 4);
            if (mshr.merge_full(entry)) continue;
            mshr.merge(entry, request, kAll);
            model[line].push_back(tag);
        } else if (!mshr.full()) {
            mshr.allocate(request, kAll, kAll);
            model[line] = {tag};
        }
        CHECK_EQ(mshr.used(), static_cast<int>(model.size()));
    }
}

TEST(mshr_entry_is_dirty_once_a_write_waits) {
    MshrFile mshr(2, 4);
    const int entry = mshr.allocate({.message = {.line = 1, .kind = read_request}, .place = {}}, kAll, kAll);
    CHECK_EQ(mshr.dirty(entry), 0U);
    const std::uint16_t flags = 6 << kSectorShift;
    mshr.merge(entry, {.message = {.line = 1, .kind = write_request, .flags = flags}, .place = {}}, kAll);
    CHECK_EQ(mshr.dirty(entry), 6U);
}

// Sectors 0 and 1 are on their way for request 1, sectors 2 and 3 for request 2, which lacks all four.
TEST(mshr_requests_wait_for_all_entries_of_their_line) {
    for (const bool first_comes_first : {true, false}) {
        MshrFile mshr(4, 4);
        const auto request = [](std::uint16_t tag) {
            return SliceRequest{.message = {.line = 7, .tag = tag}, .place = {}};
        };
        const int low = mshr.allocate(request(1), 0x3, 0x2);
        CHECK_EQ(mshr.find(7, 0xF).sectors, 0x3U);
        const int high = mshr.allocate(request(2), 0xC, 0xF);
        CHECK_EQ(mshr.find(7, 0x2).entry, low);
        CHECK_EQ(mshr.find(7, 0x8).entry, high);
        CHECK_EQ(mshr.find(7, 0xF).sectors, 0xFU);
        if (first_comes_first) {
            mshr.filled(low);
            mshr.settle(low);
            CHECK_EQ(mshr.front(low).message.tag, 1);
            mshr.filled(high);
            mshr.settle(high);
            CHECK_EQ(mshr.front(high).message.tag, 2);
        } else {
            mshr.filled(high);
            mshr.settle(high);
            CHECK(mshr.empty(high));
            CHECK_EQ(mshr.front(low).message.tag, 1);
            mshr.filled(low);
            mshr.settle(low);
            mshr.pop(low);
            CHECK_EQ(mshr.front(low).message.tag, 2);
        }
        CHECK_EQ(mshr.find(7, 0xF).entry, -1);
    }
}

}  // namespace simfa
