// Messages on their way to the units of one kind, sorted into windows of arrival.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "divider.hpp"
#include "messages.hpp"
#include "types.hpp"

namespace simfa {

// One mailbox a unit. Each sending thread has its own boxes, so posting takes no lock: during a window threads post to
// later windows only, while the owner opens the present one.
class Mailboxes {
  public:
    // `latency_cycles` is the longest time between sending a message, in the window in which it is posted, and its
    // arrival.
    Mailboxes(int units, int threads, Cycle window_cycles, Cycle latency_cycles);

    // Files `message` to `unit` under the window of `arrival` and sets its offset. Throws `std::logic_error` if the
    // arrival lies further ahead than the latency given at construction. The result may be changed until the next post.
    Message& post(int thread, int unit, Cycle arrival, const Message& message) {
        const std::uint64_t window = window_.quotient(static_cast<std::uint64_t>(arrival));
        Box& box = boxes_[first_box(window, unit) + static_cast<std::size_t>(thread) * units_];
        if (box.window != static_cast<std::uint32_t>(window) || box.room == 0) [[unlikely]]
            make_room(box, window, thread);
        Message& filed = *box.next++;
        --box.room;
        filed = message;
        filed.offset = static_cast<std::uint16_t>(static_cast<std::uint64_t>(arrival) - window * window_.divisor());
        return filed;
    }

    // Returns all messages to `unit` that arrive in the window starting at `window_start`, in the order of (cycle,
    // pairs before slices, source, SM of a pair, sequence), and forgets them; among the messages of one slice to
    // another the kind goes before the sequence. The span is valid until `thread`, which calls, opens another mailbox.
    std::span<const Message> open(int unit, Cycle window_start, int thread = 0);

    // Start of the first window from `window_start` on in which a message arrives; `kNever` if there is none.
    Cycle next_window(Cycle window_start) const;

  private:
    static constexpr std::uint32_t kNoWindow = 0xFFFFFFFF;

    // Messages of one box lie in chunks, linked from the newest to the oldest. Chunks that were emptied last are used
    // first, so that the messages on their way are all that the nearer caches of the simulating machine must hold.
    struct alignas(256) Chunk {
        static constexpr std::uint32_t kMessages = 15;
        Message messages[kMessages];
        Chunk* older = nullptr;
    };

    // The messages of one thread to one unit for one window; small, as posting touches many of them.
    struct Box {
        Message* next = nullptr;
        std::uint32_t room = 0;
        std::uint32_t window = kNoWindow;

        // The newest chunk; it is full when `next` is at its end.
        Chunk* newest() const {
            return reinterpret_cast<Chunk*>((reinterpret_cast<std::uintptr_t>(next) - 1) & ~(sizeof(Chunk) - 1));
        }
    };

    // Messages that are being opened: the first `used` ones of a chunk.
    struct Part {
        Chunk* chunk;
        std::uint32_t used;
    };
    struct Opened {
        std::vector<Part> parts;
        std::vector<Message> sorted;
    };
    static Opened& opened();

    // Free chunks of one thread.
    struct alignas(64) Pool {
        std::vector<Chunk*> free;
        std::vector<std::unique_ptr<Chunk[]>> blocks;
    };

    void make_room(Box& box, std::uint64_t window, int thread);
    std::size_t first_box(std::uint64_t window, int unit) const {
        return (window & ring_mask_) * row_ + static_cast<std::size_t>(unit);
    }
    std::size_t collect(std::size_t first, std::uint64_t window);
    template <typename Counts>
    std::span<const Message> sort(std::size_t count, std::vector<Chunk*>& free);

    // What posting reads, in one cache line.
    Divider window_;
    std::uint64_t ring_mask_;
    std::size_t units_;
    std::size_t row_;         // boxes of a window: units x threads
    std::vector<Box> boxes_;  // [window mod ring][thread][unit]

    std::vector<Pool> pools_;  // by thread
};

// Where the messages of the units that run on one thread go.
struct Outbox {
    Mailboxes* pairs = nullptr;
    Mailboxes* slices = nullptr;
    int thread = 0;

    Message& to_pair(int pair, Cycle arrival, const Message& message) const {
        return pairs->post(thread, pair, arrival, message);
    }
    Message& to_slice(int slice, Cycle arrival, const Message& message) const {
        return slices->post(thread, slice, arrival, message);
    }
};

}  // namespace simfa
