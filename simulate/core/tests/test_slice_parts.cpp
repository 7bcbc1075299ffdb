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
    TagArray tags(2, 3);
    for (const std::uint32_t line : {10U, 20U, 30U}) CHECK_EQ(tags.insert(1, line, 0), TagArray::kEmpty);
    CHECK(tags.touch(1, 10) != nullptr);
    CHECK(tags.touch(0, 10) == nullptr);
    *tags.touch(1, 30) |= TagArray::kDirty;  // order is now 30, 10, 20
    CHECK_EQ(tags.insert(1, 40, 0), 20U << 2);
    CHECK_EQ(tags.insert(1, 50, 0), 10U << 2);
    CHECK_EQ(tags.insert(1, 60, 0), 30U << 2 | TagArray::kDirty);
}

TEST(tag_array_forgets_erased_lines) {
    TagArray tags(1, 3);
    tags.insert(0, 1, TagArray::kShadow);
    tags.insert(0, 2, 0);
    tags.insert(0, 3, TagArray::kShadow);
    CHECK_EQ(tags.shadows(0), 2);
    CHECK(tags.erase(0, 1));
    CHECK(!tags.erase(0, 1));
    CHECK_EQ(tags.shadows(0), 1);
    CHECK_EQ(tags.insert(0, 4, 0), TagArray::kEmpty);
    CHECK_EQ(tags.insert(0, 5, 0), 2U << 2);
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
        const SliceRequest request{.message = {.line = line, .tag = ++tag}, .set = line % 4};
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
    const int entry = mshr.allocate({.message = {.line = 1, .kind = read_request}});
    CHECK(!mshr.dirty(entry));
    mshr.merge(entry, {.message = {.line = 1, .kind = write_request}});
    CHECK(mshr.dirty(entry));
}

}  // namespace simfa
