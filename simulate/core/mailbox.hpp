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
class Mailbox {
  public:
    // `latency_cycles` is the longest time between the window of a post and its arrival.
    Mailbox(int threads, Cycle window_cycles, Cycle latency_cycles);

    // Files `message` under the window of `arrival` and sets its offset. Throws `std::logic_error` if the arrival lies
    // further ahead than the latency given at construction.
    void post(int thread, Cycle arrival, const Message& message) {
        const auto window = static_cast<Cycle>(window_.quotient(static_cast<std::uint64_t>(arrival)));
        Box& box = boxes_[ring_.remainder(static_cast<std::uint64_t>(window)) * threads_ + thread];
        if (box.window != window) begin(box, window);
        box.messages.push_back(message);
        box.messages.back().offset = static_cast<std::uint32_t>(arrival - window * window_cycles_);
    }

    // Returns all messages that arrive in the window starting at `window_start`, in the order of (cycle, pairs before
    // slices, source, sequence), and forgets them. The span is valid until the next call.
    std::span<const Message> open(Cycle window_start);

    // Start of the first window from `window_start` on that has messages; `kNever` if there is none.
    Cycle next_window(Cycle window_start) const;

  private:
    struct Box {
        Cycle window = -1;
        std::vector<Message> messages;
    };

    static void begin(Box& box, Cycle window);
    std::span<Box> boxes_of(Cycle window) {
        const auto slot = ring_.remainder(static_cast<std::uint64_t>(window));
        return {boxes_.data() + slot * threads_, threads_};
    }
    void sort(std::span<Box> boxes, Cycle window, std::size_t count);

    std::size_t threads_;
    Cycle window_cycles_;
    Cycle windows_;
    Divider window_;
    Divider ring_;
    std::vector<Box> boxes_;  // [window mod windows][thread]
    std::vector<Message> sorted_;
    std::vector<std::uint32_t> starts_;
};

// Where a unit's messages go, for the thread that runs it.
struct Outbox {
    std::span<Mailbox> pairs;
    std::span<Mailbox> slices;
    int thread = 0;

    void to_pair(int pair, Cycle arrival, const Message& message) { pairs[pair].post(thread, arrival, message); }
    void to_slice(int slice, Cycle arrival, const Message& message) { slices[slice].post(thread, arrival, message); }
};

}  // namespace simfa
