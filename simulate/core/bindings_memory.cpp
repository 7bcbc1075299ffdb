// Python bindings of device memory: a description of bank-level channels, and the benchmark of one of them.
#include "bindings_memory.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "dram_bench.hpp"
#include "dram_channel.hpp"

namespace nb = nanobind;

namespace simfa {

namespace {

using Values = std::map<std::string, std::int64_t>;
using Segments = std::vector<std::pair<std::string, int>>;
using Mixes = std::vector<std::tuple<std::string, std::string, int>>;
template <typename T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename Group>
using Fields = std::map<std::string, std::int32_t Group::*>;

const Fields<DramOrganisation> kOrganisation = {{"pseudo_channels", &DramOrganisation::pseudo_channels},
                                                {"sids", &DramOrganisation::sids},
                                                {"bank_groups", &DramOrganisation::bank_groups},
                                                {"banks", &DramOrganisation::banks},
                                                {"rows", &DramOrganisation::rows},
                                                {"columns", &DramOrganisation::columns},
                                                {"burst_bytes", &DramOrganisation::burst_bytes}};

const Fields<DramTiming> kTiming = {{"burst", &DramTiming::burst},
                                    {"read_latency", &DramTiming::read_latency},
                                    {"write_latency", &DramTiming::write_latency},
                                    {"activate_to_read", &DramTiming::activate_to_read},
                                    {"activate_to_write", &DramTiming::activate_to_write},
                                    {"precharge_to_activate", &DramTiming::precharge_to_activate},
                                    {"activate_to_precharge", &DramTiming::activate_to_precharge},
                                    {"activate_to_activate", &DramTiming::activate_to_activate},
                                    {"write_recovery", &DramTiming::write_recovery},
                                    {"read_to_precharge", &DramTiming::read_to_precharge},
                                    {"column_short", &DramTiming::column_short},
                                    {"column_long", &DramTiming::column_long},
                                    {"column_sid", &DramTiming::column_sid},
                                    {"activate_short", &DramTiming::activate_short},
                                    {"activate_long", &DramTiming::activate_long},
                                    {"four_activates", &DramTiming::four_activates},
                                    {"write_to_read_short", &DramTiming::write_to_read_short},
                                    {"write_to_read_long", &DramTiming::write_to_read_long},
                                    {"read_to_write", &DramTiming::read_to_write},
                                    {"precharge_to_precharge", &DramTiming::precharge_to_precharge},
                                    {"refresh_all", &DramTiming::refresh_all},
                                    {"refresh_bank", &DramTiming::refresh_bank},
                                    {"refresh_to_activate", &DramTiming::refresh_to_activate},
                                    {"refresh_interval", &DramTiming::refresh_interval},
                                    {"refresh_bank_interval", &DramTiming::refresh_bank_interval},
                                    {"activate_bus_ticks", &DramTiming::activate_bus_ticks},
                                    {"column_bus_ticks", &DramTiming::column_bus_ticks},
                                    {"precharge_bus_ticks", &DramTiming::precharge_bus_ticks},
                                    {"controller_ticks", &DramTiming::controller_ticks}};

const Fields<DramControl> kControl = {{"read_queue_entries", &DramControl::read_queue_entries},
                                      {"write_queue_entries", &DramControl::write_queue_entries},
                                      {"opened_entries", &DramControl::opened_entries},
                                      {"drain_above_percent", &DramControl::drain_above_percent},
                                      {"drain_below_percent", &DramControl::drain_below_percent},
                                      {"row_hit_cap", &DramControl::row_hit_cap},
                                      {"ecc_overhead_ppm", &DramControl::ecc_overhead_ppm}};

// Sets each field of a group; every field must be given.
template <typename Group>
Group group_of(const Fields<Group>& fields, const Values& values, const char* name) {
    Group group;
    for (const auto& [key, member] : fields) {
        const auto value = values.find(key);
        if (value == values.end()) throw std::invalid_argument(std::string(name) + ": " + key + " is missing");
        group.*member = static_cast<std::int32_t>(value->second);
    }
    for (const auto& [key, value] : values)
        if (!fields.contains(key)) throw std::invalid_argument(std::string(name) + ": nothing is called " + key);
    return group;
}

std::shared_ptr<DramChannelConfig> channel_of(const Values& organisation, const Values& timing, const Values& control,
                                              bool closed_rows, int refresh, const Segments& segments,
                                              const Mixes& mixes, std::int64_t ticks_numerator,
                                              std::int64_t ticks_denominator, int line_bytes, Cycle path_cycles) {
    if (refresh < 0 || refresh > 2) throw std::invalid_argument("refresh: expected 0 none, 1 all-bank or 2 per-bank");
    auto channel = std::make_shared<DramChannelConfig>();
    channel->organisation = group_of(kOrganisation, organisation, "organisation");
    channel->timing = group_of(kTiming, timing, "timing");
    channel->control = group_of(kControl, control, "control");
    channel->control.row_policy = closed_rows ? RowPolicy::closed : RowPolicy::open;
    channel->control.refresh = static_cast<Refresh>(refresh);
    channel->ticks_numerator = ticks_numerator;
    channel->ticks_denominator = ticks_denominator;
    channel->line_bytes = line_bytes;
    channel->path_cycles = path_cycles;
    std::vector<AddressMap::Segment> parts;
    for (const auto& [field, bits] : segments) parts.push_back({dram_field(field), bits});
    std::vector<AddressMap::Mix> xors;
    for (const auto& [target, source, shift] : mixes) xors.push_back({dram_field(target), dram_field(source), shift});
    channel->map = std::make_shared<const AddressMap>(channel->organisation, parts, xors);
    return channel;
}

nb::dict bench_of(const DramChannelConfig& channel, const Column<std::uint32_t>& bursts,
                  const Column<std::uint8_t>& writes) {
    DramBenchResult result;
    {
        const nb::gil_scoped_release release;
        result = run_dram_bench(channel.organisation, channel.timing, channel.control, *channel.map,
                                {bursts.data(), bursts.shape(0)}, {writes.data(), writes.shape(0)});
    }
    nb::dict values;
    values["ticks"] = result.ticks;
    values["completed_reads"] = result.reads;
    values["read_latency_ticks"] = result.read_latency_ticks;
    values["read_wait_ticks"] = result.read_wait_ticks;
    add_dram_stats(values, result.stats);
    return values;
}

}  // namespace

void add_dram_stats(nb::dict& values, const DramStats& stats) {
    values["dram_reads"] = stats.reads;
    values["dram_writes"] = stats.writes;
    values["dram_activates"] = stats.activates;
    values["dram_refreshes"] = stats.refreshes;
    values["dram_forwarded_reads"] = stats.forwarded_reads;
    values["dram_absorbed_writes"] = stats.absorbed_writes;
    values["dram_drains"] = stats.drains;
}

void bind_memory(nb::module_& module) {
    nb::class_<DramChannelConfig>(module, "DramChannel",
                                  "A DRAM channel with banks: integers of simfa.dram and of a preset.")
        .def(nb::new_(&channel_of), nb::kw_only(), nb::arg("organisation"), nb::arg("timing"), nb::arg("control"),
             nb::arg("closed_rows"), nb::arg("refresh"), nb::arg("segments"), nb::arg("xor"),
             nb::arg("ticks_numerator"), nb::arg("ticks_denominator"), nb::arg("line_bytes"), nb::arg("path_cycles"));
    module.def("run_dram_bench", &bench_of, nb::arg("channel"), nb::arg("bursts"), nb::arg("writes"),
               "Offers bursts to one channel as fast as its queues accept; times are in half clocks.");
}

}  // namespace simfa
