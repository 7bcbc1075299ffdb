// Vocabulary shared by all units of the engine.
#pragma once

#include <cstdint>

namespace simfa {

using Cycle = std::int64_t;

}  // namespace simfa
