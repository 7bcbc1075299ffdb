// Slices and counters of a run for Gantt charts: what each track did from when to when, and samples at fixed times.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "types.hpp"

namespace simfa {

// A build without timelines, to measure what they cost (benchmarks/timeline_cost.py).
#ifdef SIMFA_NO_TIMELINE
inline constexpr bool kRecords = false;
#else
inline constexpr bool kRecords = true;
#endif

// Tracks of one SM: its roles, then these.
inline constexpr int kTensorTrack = kMaxRoles;                                // the pipe works, or drains
inline constexpr int kTmaTrack = kMaxRoles + 1;                               // loads, from start to arrival
inline constexpr int kTmaIssueTrack = kMaxRoles + 2;                          // the engine issues lines
inline constexpr int kStageTracks = kMaxRoles + 3;                            // one each ring and stage
inline constexpr int kBarrierTracks = kStageTracks + kMaxRings * kMaxStages;  // one each named barrier
inline constexpr int kTracks = kBarrierTracks + kMaxBarriers;

// Names of slices. Role tracks: Reason. Tensor: accumulator label, or kDrain. TMA: ring, or kStore.
inline constexpr int kDrain = -1;
inline constexpr int kStore = -1;
enum class StageState : std::int8_t { loading, full, free };       // the last is blank
enum class BarrierState : std::int8_t { waited, arrived, quiet };  // a role waits; signals wait; the last is blank

// Which slices to keep: of chosen SMs, that overlap a window of cycles and the time of chosen tiles.
struct TimelineChoice {
    std::vector<std::int32_t> sms;
    Cycle begin = 0;
    Cycle end = kNever;
    std::int64_t first_tile = 0;  // ordinals of a CTA's tiles
    std::int64_t last_tile = -1;  // -1: all
    std::int32_t m_block = -1;    // coordinates of one tile; -1: any
    std::int32_t head = -1;
    std::int32_t batch = -1;
    std::int32_t period_cycles = 0;  // between samples of the counters; 0: none

    bool all_tiles() const { return first_tile == 0 && last_tile < 0 && m_block < 0 && head < 0 && batch < 0; }
    bool takes(std::int64_t ordinal, const Tile& tile) const {
        return ordinal >= first_tile && (last_tile < 0 || ordinal <= last_tile) &&
               (m_block < 0 || tile.m_block == m_block) && (head < 0 || tile.head == head) &&
               (batch < 0 || tile.batch == batch);
    }
};

struct TimelineSlice {
    Cycle start;
    Cycle end;
    std::int32_t sm;
    std::int16_t track;
    std::int16_t name;
    std::int32_t arg;  // role tracks: tile ordinal; tensor: role; TMA and stages: fill; barriers: role, or signals
};

// A tile that a recorded CTA began.
struct TimelineTile {
    Cycle begin;
    std::int32_t sm;
    std::int32_t ordinal;
    Tile tile;
};

// When the counters of a unit are due: at `begin`, `begin` + period, ..., and at `end` or the end of the run.
class Sampler {
  public:
    Sampler() = default;
    explicit Sampler(const TimelineChoice& choice)
        : next_(choice.period_cycles > 0 && choice.begin < choice.end ? choice.begin : kNever),
          end_(choice.end),
          period_(choice.period_cycles) {}

    // Whether a sample is due before what happens at `now`.
    bool due(Cycle now) const { return kRecords && next_ <= now; }
    // `end`, or the next sample: nothing may be done ahead of that.
    Cycle before_next(Cycle end) const { return kRecords ? std::min(end, next_) : end; }
    // The cycle of the sample that is due; the next one is due a period later.
    Cycle take() {
        last_ = next_;
        next_ = last_ >= end_ ? kNever : std::min(last_ + period_, end_);
        return last_;
    }
    // Whether a last sample is to be taken at the end of the run.
    bool finish(Cycle end) {
        const bool wanted = last_ >= 0 && last_ < end && next_ != kNever;
        next_ = kNever;
        return wanted;
    }

  private:
    Cycle last_ = -1;
    Cycle next_ = kNever;
    Cycle end_ = kNever;
    Cycle period_ = 0;
};

// What the SMs of one pair did; does nothing for an SM that was not chosen. Every call has the cycle at which it is
// made, which never falls.
class Timeline {
  public:
    Timeline() = default;
    // For the SMs of pair `pair`, whose CTAs have `roles` roles.
    Timeline(const TimelineChoice& choice, int pair, int roles);

    bool wants(int sm) const { return kRecords && (wanted_ >> (sm & 1) & 1) != 0; }

    // What a track did from `start` to `end`.
    void add(int sm, int track, int name, Cycle start, Cycle end, std::int64_t arg) {
        if (wants(sm)) push(sm, track, name, start, end, arg);
    }
    // The same, joined with what `extend` was told of the track before if that is of the same kind and ended at
    // `start`.
    void extend(int sm, int track, int name, Cycle start, Cycle end, std::int64_t arg);
    // Ends what `extend` goes on with.
    void separate(int sm, int track) { flush(sm, track); }
    // What a track is in from `now` on, `blank` for nothing; one slice for each state.
    void enter(int sm, int track, int name, int blank, std::int64_t arg, Cycle now);

    void begin_tile(int sm, int role, std::int64_t ordinal, const Tile& tile, Cycle now);
    void end_role(int sm, int role, Cycle now);
    // Ends all states at the end of the run, and cuts off what lies behind it.
    void close(Cycle end);

    const std::vector<TimelineSlice>& slices() const { return slices_; }
    const std::vector<TimelineTile>& tiles() const { return tiles_; }

  private:
    // What a track is in, or the slice that `extend` may go on with.
    struct State {
        Cycle since = 0;
        Cycle until = 0;
        std::int64_t arg = 0;
        std::int16_t name = 0;
        bool open = false;
    };
    // One SM: its tracks, and which of its tiles were chosen.
    struct Recorder {
        Cycle begin = kNever;  // of the first chosen tile
        Cycle end = kNever;    // of the last one
        std::int64_t first_tile = std::numeric_limits<std::int64_t>::max();
        std::int64_t last_tile = -1;
        std::uint32_t entered = 0;  // roles that have begun a chosen tile
        std::uint32_t left = 0;     // and those that are done with all of them
        std::array<State, kTracks> states{};
    };

    void flush(int sm, int track);
    void push(int sm, int track, int name, Cycle start, Cycle end, std::int64_t arg);
    void leave_tiles(Recorder& recorder, int role, Cycle now);

    TimelineChoice choice_;
    int pair_ = 0;
    int wanted_ = 0;  // bit 0 and 1: the SMs of the pair
    int roles_ = 0;
    std::array<std::unique_ptr<Recorder>, 2> recorders_;
    std::vector<TimelineSlice> slices_;
    std::vector<TimelineTile> tiles_;
};

}  // namespace simfa
