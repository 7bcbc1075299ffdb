#include "bindings_timeline.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine.hpp"
#include "perfetto.hpp"
#include "timeline.hpp"

namespace nb = nanobind;

namespace simfa {

nb::ndarray<nb::numpy, std::int64_t, nb::ndim<2>> table_of(std::vector<std::int64_t>&& values, std::size_t columns) {
    auto* owned = new std::vector<std::int64_t>(std::move(values));
    nb::capsule owner(owned, [](void* pointer) noexcept { delete static_cast<std::vector<std::int64_t>*>(pointer); });
    return {owned->data(), {owned->size() / columns, columns}, owner};
}

namespace {

template <typename T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

auto slices_of(const Engine& engine) {
    std::vector<std::int64_t> values;
    values.reserve(static_cast<std::size_t>(engine.timeline_size()) * 6);
    for (const TimelineSlice& slice : engine.timeline())
        values.insert(values.end(), {slice.sm, slice.track, slice.name, slice.start, slice.end, slice.arg});
    return table_of(std::move(values), 6);
}

auto tiles_of(const Engine& engine) {
    std::vector<std::int64_t> values;
    for (const TimelineTile& tile : engine.timeline_tiles())
        values.insert(values.end(),
                      {tile.sm, tile.ordinal, tile.tile.m_block, tile.tile.head, tile.tile.batch, tile.begin});
    return table_of(std::move(values), 6);
}

auto counters_of(const Engine& engine) {
    std::vector<std::int64_t> values;
    const auto rows = engine.timeline_counters();
    for (const auto& row : rows) values.insert(values.end(), row.begin(), row.end());
    return table_of(std::move(values), rows.empty() ? 1 : rows.front().size());
}

nb::bytes bytes_of(const std::string& text) { return nb::bytes(text.data(), text.size()); }

nb::bytes head_of(const std::vector<std::string>& tracks, const std::vector<std::int32_t>& parents,
                  const std::vector<std::string>& units, const std::vector<bool>& counters,
                  const std::vector<std::string>& names) {
    if (parents.size() != tracks.size() || units.size() != tracks.size() || counters.size() != tracks.size())
        throw std::invalid_argument("tracks, parents, units and counters: expected lists of one length");
    std::vector<PerfettoTrack> list;
    for (std::size_t i = 0; i < tracks.size(); ++i) list.push_back({tracks[i], parents[i], counters[i], units[i]});
    return bytes_of(perfetto_head(list, names));
}

nb::bytes slice_bytes_of(const Column<std::int32_t>& track, const Column<std::int32_t>& name,
                         const Column<std::int64_t>& start, const Column<std::int64_t>& end,
                         const Column<std::int32_t>& arg, double ns_per_cycle) {
    SliceColumns columns{track.shape(0), track.data(), name.data(), start.data(), end.data(), arg.data()};
    for (const std::size_t rows : {name.shape(0), start.shape(0), end.shape(0), arg.shape(0)})
        if (rows != columns.count) throw std::invalid_argument("columns of slices: expected arrays of one length");
    return bytes_of(perfetto_slices(columns, ns_per_cycle));
}

nb::bytes counter_bytes_of(std::int32_t track, const Column<std::int64_t>& cycles, const Column<double>& values,
                           double ns_per_cycle) {
    if (cycles.shape(0) != values.shape(0)) throw std::invalid_argument("counter: expected arrays of one length");
    return bytes_of(
        perfetto_counter(track, {cycles.data(), cycles.shape(0)}, {values.data(), values.shape(0)}, ns_per_cycle));
}

}  // namespace

void bind_timeline(nb::module_& module) {
    nb::class_<TimelineChoice>(module, "TimelineChoice", "Which slices a run keeps, and how often it samples counters.")
        .def(nb::init<>())
        .def_rw("sms", &TimelineChoice::sms)
        .def_rw("begin", &TimelineChoice::begin)
        .def_rw("end", &TimelineChoice::end)
        .def_rw("first_tile", &TimelineChoice::first_tile)
        .def_rw("last_tile", &TimelineChoice::last_tile)
        .def_rw("m_block", &TimelineChoice::m_block)
        .def_rw("head", &TimelineChoice::head)
        .def_rw("batch", &TimelineChoice::batch)
        .def_rw("period_cycles", &TimelineChoice::period_cycles);
    module.def("perfetto_head", &head_of, nb::kw_only(), nb::arg("tracks"), nb::arg("parents"), nb::arg("units"),
               nb::arg("counters"), nb::arg("names"), "The begin of a Perfetto trace: its tracks and names.");
    module.def("perfetto_slices", &slice_bytes_of, nb::arg("track"), nb::arg("name"), nb::arg("start"), nb::arg("end"),
               nb::arg("arg"), nb::arg("ns_per_cycle"));
    module.def("perfetto_counter", &counter_bytes_of, nb::arg("track"), nb::arg("cycles"), nb::arg("values"),
               nb::arg("ns_per_cycle"));
    nb::dict tracks;
    tracks["tensor"] = kTensorTrack;
    tracks["tma"] = kTmaTrack;
    tracks["tma_issue"] = kTmaIssueTrack;
    tracks["stages"] = kStageTracks;
    tracks["barriers"] = kBarrierTracks;
    tracks["end"] = kTracks;
    module.attr("TRACKS") = tracks;
    module.attr("MAX_STAGES") = kMaxStages;
}

void bind_engine_timeline(nb::class_<Engine>& engine) {
    engine.def("timeline", &slices_of)
        .def("timeline_tiles", &tiles_of)
        .def("timeline_counters", &counters_of)
        .def_prop_ro("timeline_size", &Engine::timeline_size);
}

}  // namespace simfa
