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

    // Adds to each count those before it.
    void sum_up() {
        constexpr std::uint64_t ones = 0x0101010101010101U;
        std::uint64_t before = 0;
        for (std::uint64_t& word : words_) {
            const std::uint64_t sums = word * ones;
            word = sums + before * ones;
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
            before += word;
            word = before;
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
      pools_(static_cast<std::size_t>(threads)) {}

void Mailboxes::make_room(Box& box, std::uint64_t window, int thread) {
    if (box.window != static_cast<std::uint32_t>(window)) {
        if (box.next != nullptr) throw std::logic_error("a message arrives later than its mailbox was built for");
        box.window = static_cast<std::uint32_t>(window);
    }
    Pool& pool = pools_[static_cast<std::size_t>(thread)];
    if (pool.free.empty()) {
        constexpr std::size_t chunks = 64;
        pool.blocks.push_back(std::make_unique<Chunk[]>(chunks));
        for (std::size_t i = 0; i < chunks; ++i) pool.free.push_back(&pool.blocks.back()[i]);
    }
    Chunk* const chunk = pool.free.back();
    pool.free.pop_back();
    chunk->older = box.next == nullptr ? nullptr : box.newest();
    box.next = chunk->messages;
    box.room = Chunk::kMessages;
}

std::span<const Message> Mailboxes::open(int unit, Cycle window_start, int thread) {
    const std::uint64_t window = window_.quotient(static_cast<std::uint64_t>(window_start));
    const std::size_t count = collect(first_box(window, unit), window);
    if (count == 0) return {};
    std::vector<Chunk*>& free = pools_[static_cast<std::size_t>(thread)].free;
    return count <= ByteCounts::kMost ? sort<ByteCounts>(count, free) : sort<WordCounts>(count, free);
}

// Takes the messages out of the boxes of a unit from `first` on, the newest first; returns how many there are.
std::size_t Mailboxes::collect(std::size_t first, std::uint64_t window) {
    std::vector<Part>& parts = opened().parts;
    parts.clear();
    std::size_t count = 0;
    for (std::size_t end = first + row_; end > first; end -= units_) {
        Box& box = boxes_[end - units_];
        if (box.window != static_cast<std::uint32_t>(window) || box.next == nullptr) continue;
        std::uint32_t used = Chunk::kMessages - box.room;
        for (Chunk* chunk = box.newest(); chunk != nullptr; chunk = chunk->older, used = Chunk::kMessages) {
            parts.push_back({chunk, used});
            count += used;
        }
        box = {};
    }
    return count;
}

// Sorts the collected messages and frees their chunks: a stable counting sort by offset, then an insertion sort that
// only moves messages of the same cycle, which mostly are in order.
template <typename Counts>
std::span<const Message> Mailboxes::sort(std::size_t count, std::vector<Chunk*>& free) {
    thread_local Counts counts;
    Opened& all = opened();
    if (all.sorted.size() < count) all.sorted.resize(2 * count);
    Message* const sorted = all.sorted.data();
    auto* const places = counts.clear(window_.divisor());
    for (const Part& part : all.parts)
        for (std::uint32_t i = 0; i < part.used; ++i) ++places[part.chunk->messages[i].offset];
    counts.sum_up();
    for (const Part& part : all.parts) {
        for (std::uint32_t i = part.used; i > 0; --i) {
            const Message& message = part.chunk->messages[i - 1];
            sorted[--places[message.offset]] = message;
        }
        free.push_back(part.chunk);
    }
    sort_within_cycles(sorted, count);
    return {sorted, count};
}

// Working memory of a thread, shared by all mailboxes as they are opened one after the other.
Mailboxes::Opened& Mailboxes::opened() {
    thread_local Opened memory;
    return memory;
}

Cycle Mailboxes::next_window(Cycle window_start) const {
    const std::uint64_t window = window_.quotient(static_cast<std::uint64_t>(window_start));
    std::uint32_t first = kNoWindow;  // counted from `window`, as boxes keep 32 bits of a number
    for (const Box& box : boxes_)
        if (box.next != nullptr) first = std::min(first, box.window - static_cast<std::uint32_t>(window));
    return first == kNoWindow ? kNever : static_cast<Cycle>((window + first) * window_.divisor());
}

}  // namespace simfa
