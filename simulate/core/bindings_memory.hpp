// Bindings of device memory, called by the module's definition.
#pragma once

#include <nanobind/nanobind.h>

#include "dram_stats.hpp"

namespace simfa {

void bind_memory(nanobind::module_& module);

// Adds the counts of all channels to a result.
void add_dram_stats(nanobind::dict& values, const DramStats& stats);

}  // namespace simfa
