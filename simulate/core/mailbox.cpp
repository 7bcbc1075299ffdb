#include "mailbox.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace simfa {

namespace {

constexpr std::uint32_t kLast = 0xFFFFFFFF;

// Pairs and slices are numbered apart; messages between slices come after those of pairs.
std::uint64_t order_of(const Message& message) {
    const std::uint64_t between_slices = message.kind >= hop_request ? 1 : 0;
    return (std::uint64_t{message.offset} << 17) | (between_slices << 16) | message.source;
}

}  // namespace

Mailbox::Mailbox(int threads, Cycle window_cycles, Cycle latency_cycles)
    : window_(static_cast<std::uint64_t>(window_cycles)),
      ring_(static_cast<std::uint64_t>(latency_cycles / window_cycles + 3)),
      threads_(static_cast<std::size_t>(threads)),
      boxes_(ring_.divisor() * threads_),
      storage_(boxes_.size()),
      first_of_cycle_(static_cast<std::size_t>(window_cycles)),
      cycles_(static_cast<std::size_t>(window_cycles) / 64 + 1) {}

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
    gather(first, count);
    order_ties(count);
    return {sorted_.data(), count};
}

// Sorts the messages of the boxes from `first` on by cycle, keeping their order within a cycle, and empties the boxes.
// Going backwards, each message is chained in front of the later ones of its cycle.
void Mailbox::gather(std::size_t first, std::size_t count) {
    if (sorted_.size() < count) {
        sorted_.resize(2 * count);
        unsorted_.resize(2 * count);
        next_.resize(2 * count);
    }
    std::uint32_t index = 0;
    for (std::size_t box = first + threads_; box-- > first;) {
        const std::span<const Message> sent = messages(box);
        for (std::size_t i = sent.size(); i-- > 0; ++index) {
            const std::uint32_t cycle = sent[i].offset;
            const std::uint64_t bit = std::uint64_t{1} << (cycle % 64);
            std::uint64_t& word = cycles_[cycle / 64];
            unsorted_[index] = &sent[i];
            next_[index] = (word & bit) != 0 ? first_of_cycle_[cycle] : kLast;
            first_of_cycle_[cycle] = index;
            word |= bit;
        }
    }
    Message* out = sorted_.data();
    for (std::size_t i = 0; i < cycles_.size(); ++i)
        for (; cycles_[i] != 0; cycles_[i] &= cycles_[i] - 1) {
            const std::size_t cycle = 64 * i + static_cast<std::size_t>(std::countr_zero(cycles_[i]));
            for (index = first_of_cycle_[cycle]; index != kLast; index = next_[index]) *out++ = *unsorted_[index];
        }
    for (std::size_t box = first; box < first + threads_; ++box)
        boxes_[box] = {storage_[box].data(), static_cast<std::uint32_t>(storage_[box].size()), kNoWindow};
}

// An insertion sort that only moves messages of the same cycle.
void Mailbox::order_ties(std::size_t count) {
    std::uint64_t highest = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t order = order_of(sorted_[i]);
        if (order >= highest) {
            highest = order;
            continue;
        }
        const Message message = sorted_[i];
        std::size_t hole = i;
        for (; hole > 0 && order_of(sorted_[hole - 1]) > order; --hole) sorted_[hole] = sorted_[hole - 1];
        sorted_[hole] = message;
    }
}

Cycle Mailbox::next_window(Cycle window_start) const {
    const auto window = static_cast<std::uint32_t>(window_.quotient(static_cast<std::uint64_t>(window_start)));
    std::uint32_t first = kNoWindow;
    for (const Box& box : boxes_)
        if (box.window >= window) first = std::min(first, box.window);
    return first == kNoWindow ? kNever : static_cast<Cycle>(first * window_.divisor());
}

}  // namespace simfa
