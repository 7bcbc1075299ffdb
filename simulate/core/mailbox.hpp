// Messages on their way to one unit, sorted into windows of arrival.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "divider.hpp"
#include "messages.hpp"
#include "types.hpp"

namespace simfa {

// Each sending thread has its own boxes, so posting takes no lock: during a window threads post to later windows only,
// while the owner opens the present one.
class alignas(64) Mailbox {
  public:
    // `latency_cycles` is the longest time between sending a message, in the window in which it is posted, and its
    // arrival.
    Mailbox(int threads, Cycle window_cycles, Cycle latency_cycles);

    // Files `message` under the window of `arrival` and sets its offset. Throws `std::logic_error` if the arrival lies
    // further ahead than the latency given at construction. The result may be changed until the next post.
    Message& post(int thread, Cycle arrival, const Message& message) {
        const std::uint64_t window = window_.quotient(static_cast<std::uint64_t>(arrival));
        Box& box = boxes_[ring_.remainder(window) * threads_ + static_cast<std::size_t>(thread)];
        if (box.window != static_cast<std::uint32_t>(window) || box.room == 0) make_room(box, window);
        Message& filed = *box.next++;
        --box.room;
        filed = message;
        filed.offset = static_cast<std::uint32_t>(static_cast<std::uint64_t>(arrival) - window * window_.divisor());
        return filed;
    }

    // Returns all messages that arrive in the window starting at `window_start`, in the order of (cycle, pairs before
    // slices, source, sequence), and forgets them; among the messages of one slice to another the kind goes before the
    // sequence. The span is valid until the thread opens another mailbox.
    std::span<const Message> open(Cycle window_start);

    // Start of the first window from `window_start` on that has messages; `kNever` if there is none.
    Cycle next_window(Cycle window_start) const;

  private:
    static constexpr std::uint32_t kNoWindow = 0xFFFFFFFF;

    // The messages of one thread for one window; small, as posting touches many of them.
    struct Box {
        Message* next = nullptr;
        std::uint32_t room = 0;
        std::uint32_t window = kNoWindow;
    };

    void make_room(Box& box, std::uint64_t window);
    std::size_t first_box(std::uint64_t window) const { return ring_.remainder(window) * threads_; }
    std::span<const Message> messages(std::size_t box) const {
        return {storage_[box].data(), storage_[box].size() - boxes_[box].room};
    }
    std::span<const Message> sort(std::size_t first, std::size_t count);

    // What posting reads, in one cache line.
    Divider window_;
    Divider ring_;
    std::size_t threads_;
    std::vector<Box> boxes_;  // [window mod ring][thread]

    std::vector<std::vector<Message>> storage_;  // of each box
};

// Where the messages of the units that run on one thread go.
struct Outbox {
    std::span<Mailbox> pairs;
    std::span<Mailbox> slices;
    int thread = 0;

    Message& to_pair(int pair, Cycle arrival, const Message& message) const {
        return pairs[pair].post(thread, arrival, message);
    }
    Message& to_slice(int slice, Cycle arrival, const Message& message) const {
        return slices[slice].post(thread, arrival, message);
    }
};

}  // namespace simfa
