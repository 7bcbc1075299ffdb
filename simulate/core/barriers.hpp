// Ring and named barriers of one CTA: counters that only grow (docs/isa.md section 3).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "program.hpp"
#include "timeline.hpp"
#include "types.hpp"

namespace simfa {

// One stage of a ring: what arrived since the kernel began.
struct Stage {
    std::int64_t credited_bytes = 0;
    std::int64_t expected = 0;  // fills acquired
    std::int64_t releases = 0;
};

class CtaBarriers {
  public:
    explicit CtaBarriers(const std::vector<Ring>& rings) : rings_(rings) {}

    bool free_for(int ring, std::int64_t fill) const {
        const Ring& r = rings_[ring];
        return stage(ring, fill).releases >= fill / r.stages * r.releases;
    }

    bool complete(int ring, std::int64_t fill) const {
        const Ring& r = rings_[ring];
        const Stage& s = stage(ring, fill);
        const std::int64_t round = fill / r.stages + 1;
        return s.expected >= round && s.credited_bytes >= round * r.bytes;
    }

    void expect(int ring, std::int64_t fill) { ++stage(ring, fill).expected; }
    void credit(int ring, std::int64_t fill, std::int64_t bytes) { stage(ring, fill).credited_bytes += bytes; }
    void release(int ring, std::int64_t fill) { ++stage(ring, fill).releases; }

    bool take_signals(int barrier, std::int32_t arrivals) {
        if (signals_[barrier] < arrivals) return false;
        signals_[barrier] -= arrivals;
        return true;
    }
    void signal(int barrier) { ++signals_[barrier]; }
    std::int32_t signals(int barrier) const { return signals_[barrier]; }

    // What the stage of a fill holds, for timelines.
    StageState state(int ring, std::int64_t fill) const {
        const Ring& r = rings_[ring];
        const Stage& s = stage(ring, fill);
        if (s.expected == 0 || s.releases >= s.expected * r.releases) return StageState::free;
        return s.credited_bytes >= s.expected * r.bytes ? StageState::full : StageState::loading;
    }

    const Ring& ring(int ring) const { return rings_[ring]; }
    const Stage& stage(int ring, std::int64_t fill) const { return stages_[ring][fill % rings_[ring].stages]; }

  private:
    Stage& stage(int ring, std::int64_t fill) { return stages_[ring][fill % rings_[ring].stages]; }

    const std::vector<Ring>& rings_;
    std::array<std::array<Stage, kMaxStages>, kMaxRings> stages_{};
    std::array<std::int32_t, kMaxBarriers> signals_{};
};

}  // namespace simfa
