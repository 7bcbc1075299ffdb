// Python bindings of timelines and their files.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <vector>

namespace simfa {

class Engine;

// A new int64 array of shape (rows, columns) that owns its memory.
nanobind::ndarray<nanobind::numpy, std::int64_t, nanobind::ndim<2>> table_of(std::vector<std::int64_t>&& values,
                                                                             std::size_t columns);

void bind_timeline(nanobind::module_& module);
void bind_engine_timeline(nanobind::class_<Engine>& engine);

}  // namespace simfa
