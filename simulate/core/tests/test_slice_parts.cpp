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

bool same(const Victim& victim, std::uint32_t tag, bool dirty) {
    return victim.valid && victim.tag == tag && victim.dirty == dirty;
}

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
        TagArray tags(2, 3);
        for (const std::uint32_t tag : {10U, 20U, 30U}) CHECK(!tags.insert({1, base + tag}, 0).valid);
        CHECK(tags.touch({1, base + 10}));
        CHECK(!tags.touch({0, base + 10}));
        CHECK(!tags.touch({1, base + 10}, kShadow));
        CHECK(tags.touch({1, base + 30}, 0, kDirty));  // order is now 30, 10, 20
        CHECK(same(tags.insert({1, base + 40}, 0), base + 20, false));
        CHECK(same(tags.insert({1, base + 50}, 0), base + 10, false));
        CHECK(same(tags.insert({1, base + 60}, 0), base + 30, true));
    }
}

// A plain list for each set does the same as vectors of entries, while they are narrow and after they have grown.
TEST(tag_array_agrees_with_lists) {
    for (const int ways : {1, 3, 8, 20, 33}) {
        TagArray tags(2, ways);
        std::array<std::vector<std::uint32_t>, 2> model;
        std::mt19937 random(5);
        std::size_t wrong = 0;
        for (int step = 0; step < 6000; ++step) {
            const std::uint32_t set = random() % 2;
            const std::uint32_t tag = random() % (2 * static_cast<unsigned>(ways)) + (step > 3000 ? 16383 - ways : 0);
            std::vector<std::uint32_t>& list = model[set];
            const auto found = std::find(list.begin(), list.end(), tag);
            const bool hit = found != list.end();
            wrong += tags.touch({set, tag}) != hit;
            if (hit) list.erase(found);
            list.insert(list.begin(), tag);
            if (hit) continue;
            const Victim victim = tags.insert({set, tag}, 0);
            const bool full = list.size() > static_cast<std::size_t>(ways);
            wrong += victim.valid != full || (full && victim.tag != list.back());
            if (full) list.pop_back();
        }
        CHECK_EQ(wrong, 0U);
    }
}

TEST(tag_array_forgets_erased_lines) {
    TagArray tags(1, 3);
    tags.insert({0, 1}, kShadow);
    tags.insert({0, 2}, 0);
    tags.insert({0, 3}, kShadow);
    CHECK_EQ(tags.shadows(0), 2);
    CHECK(!tags.erase({0, 1}));
    CHECK(tags.erase({0, 1}, kShadow));
    CHECK(!tags.erase({0, 1}, kShadow));
    CHECK_EQ(tags.shadows(0), 1);
    CHECK(!tags.insert({0, 4}, 0).valid);
    CHECK(same(tags.insert({0, 5}, 0), 2, false));
}

// A thousand random operations against a plain map.
TEST(mshr_file_agrees_with_a_map) {
    MshrFile mshr(16, 4);
    std::map<std::uint32_t, std::vector<std::uint16_t>> model;
    std::mt19937 random(3);
    std::uint16_t tag = 0;
    for (int step = 0; step < 20000; ++step) {
        const std::uint32_t line = random() % 40 * 1024;
        const int entry = mshr.find(line);
        CHECK_EQ(entry >= 0, model.contains(line));
        CHECK_EQ(mshr.full(), model.size() == 16);
        const SliceRequest request{.message = {.line = line, .tag = ++tag}, .place = {line % 4, line / 4}};
        if (random() % 3 == 0 && entry >= 0) {
            mshr.filled(entry);
            CHECK_EQ(mshr.find(line), -1);
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
            mshr.merge(entry, request);
            model[line].push_back(tag);
        } else if (!mshr.full()) {
            mshr.allocate(request);
            model[line] = {tag};
        }
        CHECK_EQ(mshr.used(), static_cast<int>(model.size()));
    }
}

TEST(mshr_entry_is_dirty_once_a_write_waits) {
    MshrFile mshr(2, 4);
    const int entry = mshr.allocate({.message = {.line = 1, .kind = read_request}, .place = {}});
    CHECK(!mshr.dirty(entry));
    mshr.merge(entry, {.message = {.line = 1, .kind = write_request}, .place = {}});
    CHECK(mshr.dirty(entry));
}

}  // namespace simfa
