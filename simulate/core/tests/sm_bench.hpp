// An SM, or the two TMA engines of a pair, between fakes that write down what happens when.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "memory_port.hpp"
#include "programs.hpp"
#include "sm.hpp"
#include "words.hpp"

namespace simfa::test {

// What an SM asks its host to do later.
struct HostEvent {
    enum class Kind : std::uint8_t { release, signal, read, complete, tile };
    Kind kind = Kind::release;
    Cycle cycle = 0;
    int sm = 0;
    int index = 0;  // ring, barrier, role or operation
    std::int64_t value = 0;

    friend bool operator==(const HostEvent&, const HostEvent&) = default;
};

class FakeHost final : public SmHost {
  public:
    void release_later(int sm, int ring, std::int64_t fill, Cycle cycle) override {
        add({HostEvent::Kind::release, cycle, sm, ring, fill});
    }
    void signal_later(int sm, int barrier, Cycle cycle) override {
        add({HostEvent::Kind::signal, cycle, sm, barrier, 0});
    }
    void read_later(int sm, int role, std::int64_t group, Cycle cycle) override {
        add({HostEvent::Kind::read, cycle, sm, role, group});
    }
    void complete_later(int sm, std::uint16_t op, Cycle cycle) override {
        add({HostEvent::Kind::complete, cycle, sm, op, 0});
    }
    void request_tile(int sm, Cycle cycle) override { add({HostEvent::Kind::tile, cycle, sm, 0, 0}); }

    // All that was asked for, in order.
    std::vector<HostEvent> asked;

    Cycle next() const {
        Cycle first = kNever;
        for (const HostEvent& event : due_) first = std::min(first, event.cycle);
        return first;
    }

    // Does what is due at `now`. Requests for tiles are left to the test.
    void run(std::array<Sm*, 2> sms, Cycle now) {
        for (std::size_t i = 0; i < due_.size();) {
            if (due_[i].cycle != now) {
                ++i;
                continue;
            }
            const HostEvent event = due_[i];
            due_.erase(due_.begin() + static_cast<std::ptrdiff_t>(i));
            Sm& sm = *sms[static_cast<std::size_t>(event.sm & 1)];
            if (event.kind == HostEvent::Kind::release) sm.release(event.index, event.value, now);
            if (event.kind == HostEvent::Kind::signal) sm.signal(event.index, now);
            if (event.kind == HostEvent::Kind::read) sm.store_read(event.index, event.value, now);
            if (event.kind == HostEvent::Kind::complete)
                sm.tma().complete(static_cast<std::uint16_t>(event.index), now);
        }
    }

  private:
    void add(const HostEvent& event) {
        asked.push_back(event);
        if (event.kind != HostEvent::Kind::tile) due_.push_back(event);
    }

    std::vector<HostEvent> due_;
};

// One SM with ideal memory.
class SmBench {
  public:
    SmBench(const Config& config, const Kernel& kernel)
        : config_(recording(config)),
          kernel_(kernel),
          timeline_({.sms = {0}}, 0, kernel.roles),
          sm_(config_, kernel_, 0, host, stats, timeline_),
          port_(config_, 0, 1, stats) {
        port_.connect({}, &sm_.tma(), &sm_.tma());
    }

    // Runs until `until`, or until nothing happens any more.
    void run(Cycle until = 1'000'000) {
        for (;;) {
            const Cycle now = std::min({host.next(), port_.next(), sm_.tma().next(), sm_.cuda_core().next(),
                                        sm_.frontend_next(), tiles_.empty() ? kNever : tiles_.front().first});
            if (now >= until) return;
            for (; !tiles_.empty() && tiles_.front().first == now; tiles_.erase(tiles_.begin()))
                sm_.grant(tiles_.front().second, now);
            host.run({&sm_, &sm_}, now);
            if (port_.next() == now) port_.run(now);
            if (sm_.tma().next() <= now) sm_.tma().run(now, port_, now + 1);
            if (sm_.cuda_core().next() <= now) sm_.run_cuda_core(now);
            if (sm_.frontend_next() <= now) sm_.run_frontend(now);
        }
    }

    // A tile that the grid hands to the CTA at `cycle`; in order of cycle.
    void grant_at(Cycle cycle, const Tile& tile) { tiles_.push_back({cycle, tile}); }

    // Cycles in which a role issued, separated by blanks.
    std::string issued(int role) const {
        std::string text;
        for (const Issue& issue : sm_.issues())
            if (issue.role == role) add_word(text, issue.cycle);
        return text;
    }

    Sm& sm() { return sm_; }
    const Timeline& timeline() const { return timeline_; }
    // What the timeline holds when the run is over.
    const std::vector<TimelineSlice>& slices() {
        timeline_.close(kNever);
        return timeline_.slices();
    }
    std::int64_t stalls(int role, Reason reason) const { return stats.stalls[role][static_cast<int>(reason)]; }

    FakeHost host;
    PairStats stats;

  private:
    static Config recording(Config config) {
        config.record_issues = true;
        return config;
    }

    Config config_;
    Kernel kernel_;
    Timeline timeline_;
    Sm sm_;
    MemoryPort port_;
    std::vector<std::pair<Cycle, Tile>> tiles_;
};

// The TMA engines of a pair without CTAs, their port, and fake slices that answer as the test says.
class PortBench {
  public:
    struct Request {
        Cycle arrival = 0;
        int slice = 0;
        Message message;
    };
    // When the answer to a request is back at the pair; kNever for none.
    using Answer = std::function<Cycle(const Request&)>;

    explicit PortBench(const Config& config, const std::vector<TensorMap>& maps = {}, int pair = 0, int pairs = 2)
        : config_(config),
          kernel_(inert(maps)),
          timeline_({.sms = {0, 1}}, 0, 1),
          sms_{Sm(config_, kernel_, 0, host, stats, timeline_), Sm(config_, kernel_, 1, host, stats, timeline_)},
          port_(config_, pair, pairs, stats),
          slices_(config_.slices, 1, 1, 4096) {
        sms_[0].connect(&sms_[1]);
        sms_[1].connect(&sms_[0]);
        port_.connect({nullptr, &slices_, 0}, &sms_[0].tma(), &sms_[1].tma());
    }

    // A bulk copy that SM `sm` issues in phase 4 of `cycle`. All copies of one SM in order of cycle.
    void copy(int sm, Cycle cycle, std::int64_t address, int bytes) {
        TmaOp op;
        op.bytes = bytes;
        op.lines = BoxLines(address, bytes, config_.line_shape());
        issues_.push_back({cycle, sm, -1, op});
    }

    // A copy of the box of a map at row `y`.
    void load(int sm, Cycle cycle, int map, int y = 0, bool multicast = false) {
        TmaOp op = box(map, y);
        op.multicast = multicast;
        op.split = multicast && !config_.lrc_multicast;
        issues_.push_back({cycle, sm, map, op});
    }

    void store(int sm, Cycle cycle, int map, int y = 0) {
        TmaOp op = box(map, y);
        op.kind = TmaOp::Kind::store;
        issues_.push_back({cycle, sm, map, op});
    }

    // Runs the cycles before `until`.
    void run(Cycle until, const Answer& answer = [](const Request&) { return kNever; }) {
        for (; now_ < until; ++now_) {
            for (std::size_t i = 0; i < answers_.size();) {
                if (answers_[i].first != now_) {
                    ++i;
                    continue;
                }
                port_.answer(answers_[i].second, now_);
                answers_.erase(answers_.begin() + static_cast<std::ptrdiff_t>(i));
            }
            host.run({&sms_[0], &sms_[1]}, now_);
            if (port_.next() == now_) port_.run(now_);
            for (Sm& sm : sms_) {
                if (sm.tma().next() <= now_) sm.tma().run(now_, port_, now_ + 1);
            }
            for (; next_ < issues_.size() && issues_[next_].cycle == now_; ++next_)
                sms_[static_cast<std::size_t>(issues_[next_].sm)].tma().issue(issues_[next_].op, issues_[next_].map,
                                                                              now_);
            for (int sm = 0; sm < 2; ++sm)
                in_flight[static_cast<std::size_t>(sm)].push_back(tma(sm).in_flight(now_ + 1));
            for (int slice = 0; slice < config_.slices; ++slice)
                for (const Message& message : slices_.open(slice, now_)) {
                    const Request request{now_, slice, message};
                    requests.push_back(request);
                    Message back = message;
                    back.kind = message.kind == write_request ? write_ack : read_response;
                    if (const Cycle cycle = answer(request); cycle != kNever) answers_.push_back({cycle, back});
                }
        }
    }

    // Cycles at which requests reached a slice, each with its line: "cycle:line", separated by blanks.
    std::string arrivals() const {
        std::string text;
        for (const Request& request : requests) add_word(text, request.arrival, ':', request.message.line);
        return text;
    }

    // Start and end of the loads of an SM, in order of completion: "start-end".
    std::string loads(int sm) const {
        std::string text;
        for (const TimelineSlice& slice : timeline_.slices())
            if (slice.sm == sm && slice.track == kTmaTrack) add_word(text, slice.start, '-', slice.end);
        return text;
    }

    TmaEngine& tma(int sm) { return sms_[static_cast<std::size_t>(sm)].tma(); }
    const MemoryPort& port() const { return port_; }
    Sm& sm(int sm) { return sms_[static_cast<std::size_t>(sm)]; }

    FakeHost host;
    PairStats stats;
    std::vector<Request> requests;
    std::array<std::vector<int>, 2> in_flight;  // lines of each SM at the end of each cycle

  private:
    struct Issued {
        Cycle cycle;
        int sm;
        int map;
        TmaOp op;
    };

    static Kernel inert(const std::vector<TensorMap>& maps) {
        Kernel kernel;
        kernel.cluster = 2;
        kernel.rings = {ring(1)};
        kernel.maps = maps;
        return kernel;
    }

    TmaOp box(int map, int y) const {
        const TensorMap& shape = kernel_.maps[static_cast<std::size_t>(map)];
        TmaOp op;
        op.bytes = shape.box_bytes();
        op.lines = BoxLines(shape, {0, y, 0, 0, 0}, config_.line_shape());
        return op;
    }

    Config config_;
    Kernel kernel_;
    Timeline timeline_;
    std::array<Sm, 2> sms_;
    MemoryPort port_;
    Mailboxes slices_;
    std::vector<Issued> issues_;
    std::size_t next_ = 0;
    std::vector<std::pair<Cycle, Message>> answers_;
    Cycle now_ = 0;
};

}  // namespace simfa::test
