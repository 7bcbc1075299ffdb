#include "mailbox.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace simfa {

namespace {

constexpr std::uint32_t kLast = std::numeric_limits<std::uint32_t>::max();

// Pairs and slices are numbered apart; messages between slices come after those of pairs. Requests and answers between
// two slices may meet at a cycle although they were sent in different ones, hence the kind. The SMs of a pair may issue
// lines ahead of time, one after the other.
std::uint64_t order_of(const Message& message) {
    const std::uint64_t order = (std::uint64_t{message.offset} << 20) | (std::uint64_t{message.source} << 3);
    return message.kind >= hop_request ? order | (1U << 19) | message.kind : order | (message.flags & 1U);
}

// Counts of one byte, for windows with few messages: eight are summed up by one multiplication.
class ByteCounts {
  public:
    static constexpr std::size_t kMost = std::endian::native == std::endian::little ? 255 : 0;

    std::uint8_t* clear(std::size_t offsets) {
        words_.assign(offsets / 8 + 1, 0);
        return reinterpret_cast<std::uint8_t*>(words_.data());
    }

    // Replaces each count by the sum of those before it.
    void sum_up() {
        constexpr std::uint64_t ones = 0x0101010101010101U;
        std::uint64_t before = 0;
        for (std::uint64_t& word : words_) {
            const std::uint64_t sums = word * ones;
            word = (sums << 8) + before * ones;
            before += sums >> 56;
        }
    }

  private:
    std::vector<std::uint64_t> words_;
};

class WordCounts {
  public:
    static constexpr std::size_t kMost = kLast;

    std::uint32_t* clear(std::size_t offsets) {
        words_.assign(offsets, 0);
        return words_.data();
    }

    void sum_up() {
        std::uint32_t before = 0;
        for (std::uint32_t& word : words_) {
            const std::uint32_t here = word;
            word = before;
            before += here;
        }
    }

  private:
    std::vector<std::uint32_t> words_;
};

// Moves messages of the same cycle that are not in order.
void sort_within_cycles(Message* sorted, std::size_t count) {
    std::uint32_t last = 0;  // offset and source of the last message; kLast: look closely
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t key = std::uint32_t{sorted[i].offset} << 16 | sorted[i].source;
        const bool hop = sorted[i].kind >= hop_request;
        if (key > last && !hop) [[likely]] {
            last = key;
            continue;
        }
        const Message message = sorted[i];
        const std::uint64_t order = order_of(message);
        std::size_t hole = i;
        for (; hole > 0 && order_of(sorted[hole - 1]) > order; --hole) sorted[hole] = sorted[hole - 1];
        sorted[hole] = message;
        const Message& highest = sorted[i];
        last = highest.kind >= hop_request ? kLast : std::uint32_t{highest.offset} << 16 | highest.source;
    }
}

}  // namespace

Mailboxes::Mailboxes(int units, int threads, Cycle window_cycles, Cycle latency_cycles)
    : window_(static_cast<std::uint64_t>(window_cycles)),
      ring_mask_(std::bit_ceil(static_cast<std::uint64_t>((latency_cycles - 1) / window_cycles + 2)) - 1),
      units_(static_cast<std::size_t>(units)),
      row_(units_ * static_cast<std::size_t>(threads)),
      boxes_((ring_mask_ + 1) * row_),
      storage_(boxes_.size()) {}

void Mailboxes::make_room(Box& box, std::uint64_t window) {
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

std::span<const Message> Mailboxes::open(int unit, Cycle window_start) {
    const std::uint64_t window = window_.quotient(static_cast<std::uint64_t>(window_start));
    const std::size_t first = first_box(window, unit);
    std::size_t count = 0;
    for (std::size_t box = first; box < first + row_; box += units_)
        if (boxes_[box].window == static_cast<std::uint32_t>(window)) count += messages(box).size();
    if (count == 0) return {};
    return count <= ByteCounts::kMost ? sort<ByteCounts>(first, count) : sort<WordCounts>(first, count);
}

// Sorts the messages of the boxes of a unit from `first` on and empties the boxes: a stable counting sort by offset,
// then an insertion sort that only moves messages of the same cycle, which mostly are in order.
template <typename Counts>
std::span<const Message> Mailboxes::sort(std::size_t first, std::size_t count) {
    // Working memory of a thread, shared by all mailboxes as they are opened one after the other.
    thread_local std::vector<Message> storage;
    thread_local Counts counts;
    if (storage.size() < count) storage.resize(2 * count);
    Message* const sorted = storage.data();
    auto* const places = counts.clear(window_.divisor());
    const std::size_t last = first + row_;
    for (std::size_t box = first; box < last; box += units_)
        for (const Message& message : messages(box)) ++places[message.offset];
    counts.sum_up();
    for (std::size_t box = first; box < last; box += units_) {
        for (const Message& message : messages(box)) sorted[places[message.offset]++] = message;
        boxes_[box] = {storage_[box].data(), static_cast<std::uint32_t>(storage_[box].size()), kNoWindow};
    }
    sort_within_cycles(sorted, count);
    return {sorted, count};
}

Cycle Mailboxes::next_window(Cycle window_start) const {
    const auto window = static_cast<std::uint32_t>(window_.quotient(static_cast<std::uint64_t>(window_start)));
    std::uint32_t first = kNoWindow;
    for (const Box& box : boxes_)
        if (box.window >= window) first = std::min(first, box.window);
    return first == kNoWindow ? kNever : static_cast<Cycle>(first * window_.divisor());
}

}  // namespace simfa
