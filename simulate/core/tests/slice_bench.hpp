// Slices between fake SM pairs: requests go in at chosen cycles, answers come out with theirs.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "mailbox.hpp"
#include "memory_channel.hpp"
#include "simple_channel.hpp"
#include "slice.hpp"

namespace simfa::test {

struct Answer {
    Cycle cycle = 0;
    int pair = 0;
    int tag = 0;
    int slice = 0;
    int kind = 0;

    friend bool operator==(const Answer&, const Answer&) = default;
    friend auto operator<=>(const Answer&, const Answer&) = default;
};

// 80 slices of 4 sets x 4 ways; near 20, far 32, one line in 2 cycles.
inline SliceConfig small_slice() {
    return {.slices = 80,
            .pairs = 4,
            .hash = HashKind::modulo,
            .sets = 4,
            .ways = 4,
            .service_interval_cycles = 2,
            .request_queue_entries = 4,
            .response_queue_entries = 8,
            .mshr_entries = 4,
            .mshr_merges = 3,
            .near_latency_cycles = 20,
            .far_latency_cycles = 32};
}

// A memory of 100 cycles latency that serves a line in 5.
inline SimpleChannelConfig small_memory() { return {.latency_cycles = 100, .line_cycles_numerator = 5}; }

class SliceBench {
  public:
    using MakeChannel = std::function<std::unique_ptr<MemoryChannel>(int slice)>;

    explicit SliceBench(const SliceConfig& config, const SimpleChannelConfig& memory = small_memory(), Cycle window = 6)
        : SliceBench(config, [memory](int) { return std::make_unique<SimpleChannel>(memory); }, window) {}

    SliceBench(SliceConfig config, const MakeChannel& make_channel, Cycle window)
        : config_(config),
          window_(window),
          pair_boxes_(config.pairs, 1, window, config.longest_message_cycles()),
          slice_boxes_(config.slices, 1, window, config.longest_message_cycles()) {
        for (int slice = 0; slice < config.slices; ++slice) {
            config.index = slice;
            slices_.emplace_back(config, make_channel(slice));
        }
    }

    // A request that arrives at `slice` at `cycle`, for `sectors` of a line or all of it.
    void send(Cycle cycle, int pair, int slice, MessageKind kind, std::uint32_t line, int tag, SectorMask sectors = 0) {
        const SectorMask asked = sectors == 0 ? all_sectors(config_.sectors) : sectors;
        posts_.push_back({cycle,
                          slice,
                          {.line = line,
                           .source = static_cast<std::uint16_t>(pair),
                           .tag = static_cast<std::uint16_t>(tag),
                           .kind = kind,
                           .flags = static_cast<std::uint16_t>(asked << kSectorShift)}});
    }

    // A read that leaves `pair` at `cycle`, by the side of its home slice or, with remote copies, of the near twin.
    void read(Cycle cycle, int pair, std::uint32_t line, int tag, SectorMask sectors = 0) {
        issue(cycle, pair, read_request, line, tag, sectors);
    }
    void write(Cycle cycle, int pair, std::uint32_t line, int tag, SectorMask sectors = 0) {
        issue(cycle, pair, write_request, line, tag, sectors);
    }

    // Runs until nothing is left to do; returns all answers in order of (cycle, pair, tag).
    std::vector<Answer> run() {
        std::stable_sort(posts_.begin(), posts_.end(), [](const Post& a, const Post& b) { return a.cycle < b.cycle; });
        Outbox out{&pair_boxes_, &slice_boxes_, 0};
        std::vector<Answer> answers;
        std::size_t next = 0;
        for (Cycle start = 0; next < posts_.size() || !quiet(); start += window_) {
            for (; next < posts_.size() && posts_[next].cycle < start + window_; ++next)
                out.to_slice(posts_[next].slice, posts_[next].cycle, posts_[next].message);
            for (std::size_t slice = 0; slice < slices_.size(); ++slice)
                slices_[slice].run(start, start + window_, slice_boxes_.open(static_cast<int>(slice), start), out);
            for (int pair = 0; pair < config_.pairs; ++pair)
                for (const Message& message : pair_boxes_.open(pair, start))
                    answers.push_back({start + message.offset, pair, message.tag, message.source, message.kind});
        }
        posts_.clear();
        std::sort(answers.begin(), answers.end());
        return answers;
    }

    const Slice& slice(int index) const { return slices_[static_cast<std::size_t>(index)]; }

    SliceStats total() const {
        SliceStats sum;
        for (const Slice& slice : slices_) sum += slice.stats();
        return sum;
    }

    DramStats dram_total() const {
        DramStats sum;
        for (const Slice& slice : slices_) sum += slice.dram_stats();
        return sum;
    }

  private:
    struct Post {
        Cycle cycle;
        int slice;
        Message message;
    };

    void issue(Cycle cycle, int pair, MessageKind kind, std::uint32_t line, int tag, SectorMask sectors) {
        const int home = static_cast<int>(LineHash(config_.hash, config_.slices).slice_of(line));
        const bool near = side_of(pair, config_.pairs) == side_of(home, config_.slices);
        if (near || !config_.remote_copy || kind == write_request)
            send(cycle + config_.request_cycles(near), pair, home, kind, line, tag, sectors);
        else
            send(cycle + config_.request_cycles(true), pair, (home + config_.slices / 2) % config_.slices, kind, line,
                 tag, sectors);
    }

    bool quiet() const {
        return std::all_of(slices_.begin(), slices_.end(), [](const Slice& slice) { return slice.idle(); }) &&
               pair_boxes_.next_window(0) == kNever && slice_boxes_.next_window(0) == kNever;
    }

    SliceConfig config_;
    Cycle window_;
    Mailboxes pair_boxes_;
    Mailboxes slice_boxes_;
    std::vector<Slice> slices_;
    std::vector<Post> posts_;
};

}  // namespace simfa::test
