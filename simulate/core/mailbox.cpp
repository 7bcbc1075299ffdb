#include "mailbox.hpp"

#include <algorithm>
#include <stdexcept>

namespace simfa {

namespace {

// Pairs and slices are numbered apart; messages between slices come after those of pairs. Requests and answers between
// two slices may meet at a cycle although they were sent in different ones, hence the kind.
std::uint64_t order_of(const Message& message) {
    const std::uint64_t order = (std::uint64_t{message.offset} << 20) | (std::uint64_t{message.source} << 3);
    return message.kind >= hop_request ? order | (1U << 19) | message.kind : order | (message.flags & 1U);
}

// Working memory of a thread, shared by all its mailboxes as they are opened one after the other.
struct Sorter {
    std::vector<std::uint32_t> places;  // by offset: how many messages, then where the next one goes
    std::vector<Message> sorted;
};

}  // namespace

Mailbox::Mailbox(int threads, Cycle window_cycles, Cycle latency_cycles)
    : window_(static_cast<std::uint64_t>(window_cycles)),
      ring_(static_cast<std::uint64_t>((latency_cycles - 1) / window_cycles + 2)),
      threads_(static_cast<std::size_t>(threads)),
      boxes_(ring_.divisor() * threads_),
      storage_(boxes_.size()) {}

void Mailbox::make_room(Box& box, std::uint64_t window) {
    std::vector<Message>& storage = storage_[static_cast<std::size_t>(&box - boxes_.data())];
    const std::size_t used = storage.size() - box.room;
    if (box.window != static_cast<std::uint32_t>(window)) {
        if (used > 0) throw std::logic_error("a message arrives later than its mailbox was built for");
        box.window = static_cast<std::uint32_t>(window);
    }
    if (box.room > 0) return;
    storage.resize(std::max<std::size_t>(8, 2 * used));
    box.next = storage.data() + used;
    box.room = static_cast<std::uint32_t>(storage.size() - used);
}

std::span<const Message> Mailbox::open(Cycle window_start) {
    const std::uint64_t window = window_.quotient(static_cast<std::uint64_t>(window_start));
    const std::size_t first = first_box(window);
    std::size_t count = 0;
    for (std::size_t box = first; box < first + threads_; ++box)
        if (boxes_[box].window == static_cast<std::uint32_t>(window)) count += messages(box).size();
    if (count == 0) return {};
    return sort(first, count);
}

// Sorts the messages of the boxes from `first` on and empties the boxes: a stable counting sort by offset, then an
// insertion sort that only moves messages of the same cycle, which mostly are in order.
std::span<const Message> Mailbox::sort(std::size_t first, std::size_t count) {
    thread_local Sorter sorter;
    if (sorter.sorted.size() < count) sorter.sorted.resize(2 * count);
    sorter.places.assign(window_.divisor(), 0);
    std::uint32_t* const places = sorter.places.data();
    Message* const sorted = sorter.sorted.data();
    for (std::size_t box = first; box < first + threads_; ++box)
        for (const Message& message : messages(box)) ++places[message.offset];
    std::uint32_t place = 0;
    for (std::size_t offset = 0; offset < window_.divisor(); ++offset) {
        const std::uint32_t here = places[offset];
        places[offset] = place;
        place += here;
    }
    for (std::size_t box = first; box < first + threads_; ++box) {
        for (const Message& message : messages(box)) sorted[places[message.offset]++] = message;
        boxes_[box] = {storage_[box].data(), static_cast<std::uint32_t>(storage_[box].size()), kNoWindow};
    }
    std::uint64_t highest = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t order = order_of(sorted[i]);
        if (order >= highest) {
            highest = order;
            continue;
        }
        const Message message = sorted[i];
        std::size_t hole = i;
        for (; hole > 0 && order_of(sorted[hole - 1]) > order; --hole) sorted[hole] = sorted[hole - 1];
        sorted[hole] = message;
    }
    return {sorted, count};
}

Cycle Mailbox::next_window(Cycle window_start) const {
    const auto window = static_cast<std::uint32_t>(window_.quotient(static_cast<std::uint64_t>(window_start)));
    std::uint32_t first = kNoWindow;
    for (const Box& box : boxes_)
        if (box.window >= window) first = std::min(first, box.window);
    return first == kNoWindow ? kNever : static_cast<Cycle>(first * window_.divisor());
}

}  // namespace simfa
