// Vocabulary shared by all units of the engine.
#pragma once

#include <cstdint>
#include <limits>

namespace simfa {

using Cycle = std::int64_t;

// A cycle that never comes: the next event of an idle unit.
inline constexpr Cycle kNever = std::numeric_limits<Cycle>::max();

// Runs go no further: memory channels count time in parts of a cycle, 2^24 at most, in 64 bits.
inline constexpr Cycle kMostCycles = Cycle{1} << 39;

inline constexpr int kMaxRoles = 4;       // a producer and up to three consumers
inline constexpr int kMaxRings = 8;       // K, V, Q, O and what microbenchmarks declare
inline constexpr int kMaxStages = 8;      // stages of one ring
inline constexpr int kMaxBarriers = 16;   // named barriers of a CTA, as in hardware
inline constexpr int kMaxTensorRank = 5;  // cuTensorMapEncodeTiled
inline constexpr int kMaxLrcWaiters = 8;  // requests merged into one coalescer entry

// An output tile; its kind says which programs run.
struct Tile {
    std::int32_t kind = 0;
    std::int32_t m_block = 0;
    std::int32_t head = 0;
    std::int32_t batch = 0;
};

}  // namespace simfa
