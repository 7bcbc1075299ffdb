// Perfetto traces: the few messages of Perfetto's TrackEvent format that slices and counters need, encoded directly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace simfa {

// A row of the trace viewer: a group of rows, a row of slices, or a counter.
struct PerfettoTrack {
    std::string name;
    std::int32_t parent = -1;  // the group's number in the list of tracks; -1: none
    bool counter = false;
    std::string unit;  // of a counter
};

// Parallel columns of `count` slices: numbers of a track and of a name, cycles, and an ordinal that is shown.
struct SliceColumns {
    std::size_t count = 0;
    const std::int32_t* track = nullptr;
    const std::int32_t* name = nullptr;
    const std::int64_t* start = nullptr;
    const std::int64_t* end = nullptr;
    const std::int32_t* arg = nullptr;
};

// A trace is what `perfetto_head` returns, then any parts in any order. Cycles become whole ns, as the format has them;
// the arguments of a slice keep its cycles. Children of a group are shown in the order of the list.
std::string perfetto_head(std::span<const PerfettoTrack> tracks, std::span<const std::string> names);
std::string perfetto_slices(const SliceColumns& slices, double ns_per_cycle);
std::string perfetto_counter(std::int32_t track, std::span<const std::int64_t> cycles, std::span<const double> values,
                             double ns_per_cycle);

}  // namespace simfa
