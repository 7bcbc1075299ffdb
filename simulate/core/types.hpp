// Vocabulary shared by all units of the engine.
#pragma once

#include <cstdint>
#include <limits>

namespace simfa {

using Cycle = std::int64_t;

// A cycle that never comes: the next event of an idle unit.
inline constexpr Cycle kNever = std::numeric_limits<Cycle>::max();

}  // namespace simfa
