#include <algorithm>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "mailbox.hpp"

namespace simfa {

namespace {

struct Post {
    Cycle sent;
    Cycle arrival;
    int thread;
    Message message;
};

// Two threads of two pairs and one slice each; every unit posts in the order of its own time.
std::vector<Post> some_posts() {
    std::mt19937 random(7);
    std::vector<Post> posts;
    std::uint16_t tag = 0;
    for (Cycle sent = 0; sent < 400; ++sent)
        for (int thread = 0; thread < 2; ++thread)
            for (int unit = 0; unit < 3; ++unit) {
                const Cycle latency = unit < 2 ? 50 : 70;
                const bool slice = unit == 2;
                const auto source = static_cast<std::uint16_t>(slice ? thread : 2 * thread + unit);
                for (unsigned count = random() % 3; count > 0; --count)
                    posts.push_back({sent,
                                     sent + latency,
                                     thread,
                                     {.source = source, .tag = tag++, .kind = slice ? hop_request : read_request}});
            }
    return posts;
}

std::vector<std::uint16_t> delivered(Cycle window, const std::vector<Post>& posts) {
    Mailboxes mailbox(1, 2, window, 70);
    std::vector<std::uint16_t> tags;
    std::size_t next = 0;
    for (Cycle start = 0; start < 600; start += window) {
        Cycle last = start;
        std::uint32_t last_offset = 0;
        for (const Message& message : mailbox.open(0, start)) {
            CHECK(message.offset >= last_offset);
            last_offset = message.offset;
            last = start + message.offset;
            CHECK(last < start + window);
            tags.push_back(message.tag);
        }
        for (; next < posts.size() && posts[next].sent < start + window; ++next)
            mailbox.post(posts[next].thread, 0, posts[next].arrival, posts[next].message);
    }
    CHECK_EQ(mailbox.next_window(0), kNever);
    return tags;
}

}  // namespace

TEST(mailbox_order_does_not_depend_on_the_window) {
    const std::vector<Post> posts = some_posts();
    // The order that is promised: cycle, pairs before slices, source, sequence.
    std::vector<Post> sorted = posts;
    std::stable_sort(sorted.begin(), sorted.end(), [](const Post& a, const Post& b) {
        if (a.arrival != b.arrival) return a.arrival < b.arrival;
        if (a.message.kind != b.message.kind) return a.message.kind < b.message.kind;
        return a.message.source < b.message.source;
    });
    for (const Cycle window : {1, 7, 50}) {
        const std::vector<std::uint16_t> tags = delivered(window, posts);
        CHECK_EQ(tags.size(), sorted.size());
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < tags.size() && i < sorted.size(); ++i) wrong += tags[i] != sorted[i].message.tag;
        CHECK_EQ(wrong, 0U);
    }
}

// Boxes keep 32 bits of the number of a window.
TEST(mailbox_goes_on_after_four_billion_windows) {
    const Cycle wrap = Cycle{1} << 32;
    for (const Cycle arrival : {wrap - 1, wrap, wrap + 1}) {
        Mailboxes mailbox(1, 1, 1, 10);
        CHECK(mailbox.open(0, arrival - 1).empty());
        mailbox.post(0, 0, arrival, {.tag = 9});
        CHECK_EQ(mailbox.next_window(wrap - 3), arrival);
        CHECK(mailbox.open(0, arrival - 1).empty());
        CHECK_EQ(mailbox.open(0, arrival).size(), 1U);
        CHECK_EQ(mailbox.next_window(arrival), kNever);
        CHECK(mailbox.open(0, wrap - 1).empty());
    }
}

TEST(mailbox_keeps_the_cycle_of_arrival) {
    Mailboxes mailbox(1, 1, 10, 38);
    mailbox.post(0, 0, 37, {.line = 5, .source = 2, .tag = 9});
    CHECK_EQ(mailbox.next_window(0), 30);
    CHECK(mailbox.open(0, 20).empty());
    const auto messages = mailbox.open(0, 30);
    CHECK_EQ(messages.size(), 1U);
    CHECK_EQ(messages[0].offset, 7U);
    CHECK_EQ(messages[0].line, 5U);
    CHECK(mailbox.open(0, 30).empty());
}

TEST(mailbox_refuses_what_it_cannot_hold) {
    Mailboxes mailbox(1, 1, 10, 20);
    mailbox.post(0, 0, 5, {});
    CHECK_THROWS(mailbox.post(0, 0, 5 + 10 * 4, {}), std::logic_error, "later than its mailbox");
}

}  // namespace simfa
