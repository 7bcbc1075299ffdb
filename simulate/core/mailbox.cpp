#include "mailbox.hpp"

#include <algorithm>
#include <stdexcept>

namespace simfa {

namespace {

// Pairs and slices are numbered apart; messages between slices come after those of pairs.
std::uint64_t order_of(const Message& message) {
    const std::uint64_t between_slices = message.kind >= hop_request ? 1 : 0;
    return (std::uint64_t{message.offset} << 17) | (between_slices << 16) | message.source;
}

}  // namespace

Mailbox::Mailbox(int threads, Cycle window_cycles, Cycle latency_cycles)
    : threads_(static_cast<std::size_t>(threads)),
      window_cycles_(window_cycles),
      windows_(latency_cycles / window_cycles + 3),
      window_(static_cast<std::uint64_t>(window_cycles)),
      ring_(static_cast<std::uint64_t>(windows_)),
      boxes_(static_cast<std::size_t>(windows_) * threads_),
      starts_(static_cast<std::size_t>(window_cycles)) {}

void Mailbox::begin(Box& box, Cycle window) {
    if (!box.messages.empty()) throw std::logic_error("a message arrives later than its mailbox was built for");
    box.window = window;
}

std::span<const Message> Mailbox::open(Cycle window_start) {
    const auto window = static_cast<Cycle>(window_.quotient(static_cast<std::uint64_t>(window_start)));
    const std::span<Box> boxes = boxes_of(window);
    std::size_t count = 0;
    for (const Box& box : boxes)
        if (box.window == window) count += box.messages.size();
    if (count == 0) return {};
    if (sorted_.size() < count) sorted_.resize(std::max(count, 2 * sorted_.size()));
    sort(boxes, window, count);
    return {sorted_.data(), count};
}

// A stable counting sort by offset, then an insertion sort that only moves messages of the same offset.
void Mailbox::sort(std::span<Box> boxes, Cycle window, std::size_t count) {
    std::fill(starts_.begin(), starts_.end(), 0U);
    for (const Box& box : boxes)
        if (box.window == window)
            for (const Message& message : box.messages) ++starts_[message.offset];
    std::uint32_t start = 0;
    for (std::uint32_t& entry : starts_) {
        const std::uint32_t here = entry;
        entry = start;
        start += here;
    }
    for (Box& box : boxes) {
        if (box.window != window) continue;
        for (const Message& message : box.messages) sorted_[starts_[message.offset]++] = message;
        box.messages.clear();
    }
    for (std::size_t i = 1; i < count; ++i) {
        const std::uint64_t order = order_of(sorted_[i]);
        if (order_of(sorted_[i - 1]) <= order) continue;
        const Message message = sorted_[i];
        std::size_t hole = i;
        for (; hole > 0 && order_of(sorted_[hole - 1]) > order; --hole) sorted_[hole] = sorted_[hole - 1];
        sorted_[hole] = message;
    }
}

Cycle Mailbox::next_window(Cycle window_start) const {
    const auto window = static_cast<Cycle>(window_.quotient(static_cast<std::uint64_t>(window_start)));
    Cycle first = kNever;
    for (const Box& box : boxes_)
        if (!box.messages.empty() && box.window >= window) first = std::min(first, box.window);
    return first == kNever ? kNever : first * window_cycles_;
}

}  // namespace simfa
