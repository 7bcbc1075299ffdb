// What the engine refuses before it starts; traces are verified more closely in Python (simfa.verify).
#pragma once

#include "config.hpp"
#include "program.hpp"

namespace simfa {

// Throws std::invalid_argument naming the value that is out of range.
void check_kernel(const Config& config, const Kernel& kernel);

}  // namespace simfa
