// Python bindings of the engine; with bindings_memory.cpp the only files of the core that include Python headers.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings_memory.hpp"
#include "bindings_timeline.hpp"
#include "engine.hpp"
#include "line_hash.hpp"
#include "tag_array.hpp"

namespace nb = nanobind;
using namespace simfa;

namespace {

using Table = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Column = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Rows of a table as pointers; checks the number of columns.
std::vector<const std::int64_t*> rows_of(const Table& table, std::size_t columns, const char* name) {
    if (table.shape(0) > 0 && table.shape(1) != columns)
        throw std::invalid_argument(std::string(name) + ": expected " + std::to_string(columns) + " columns");
    std::vector<const std::int64_t*> rows(table.shape(0));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = table.data() + i * columns;
    return rows;
}

// A number of a table in fewer bits; throws std::invalid_argument naming it rather than wrap.
template <typename Narrow>
Narrow narrow(std::int64_t value, const char* name) {
    if (!std::in_range<Narrow>(value))
        throw std::invalid_argument(std::string(name) + " is " + std::to_string(value) + "; expected " +
                                    std::to_string(std::numeric_limits<Narrow>::min()) + " to " +
                                    std::to_string(std::numeric_limits<Narrow>::max()));
    return static_cast<Narrow>(value);
}

std::int32_t int32(std::int64_t value, const char* name) { return narrow<std::int32_t>(value, name); }

Instruction instruction_of(const std::int64_t* row) {
    Instruction i;
    i.op = static_cast<Op>(narrow<std::uint8_t>(row[0], "op"));
    i.flags = narrow<std::uint8_t>(row[1], "flags");
    i.ring = narrow<std::uint8_t>(row[2], "ring or named barrier");
    i.label = narrow<std::uint8_t>(row[3], "label");
    i.map = int32(row[4], "tensor map");
    i.index = int32(row[5], "index of a fill");
    i.index_step = int32(row[6], "step of a fill's index");
    i.x = int32(row[7], "x");
    i.y = int32(row[8], "y");
    i.y_step = int32(row[9], "step of y");
    i.group = int32(row[10], "group");
    i.group_step = int32(row[11], "step of a group");
    i.count = int32(row[12], "count");
    i.work_cycles = int32(row[13], "cycles of an instruction");
    i.flat = int32(row[14], "number of an instruction");
    i.address = row[15];
    i.address_step = row[16];
    return i;
}
constexpr std::size_t kInstructionColumns = 17;

TileKind kind_of(const std::int64_t* row) {
    TileKind kind;
    for (int i = 0; i < kMaxRoles; ++i) kind.programs[i] = int32(row[i], "program");
    for (int i = 0; i < kMaxRings; ++i) kind.fills[i] = row[kMaxRoles + i];
    return kind;
}

Kernel kernel_of(int roles, std::int64_t ctas, int cluster, bool dynamic, std::int64_t tile_m, std::int64_t group_size,
                 const Table& code, const Column& program_starts, const Table& rings, const Table& maps,
                 const Table& kinds, const Table& prologue, const Table& tiles, const Column& first_tile) {
    Kernel kernel;
    kernel.roles = roles;
    kernel.ctas = int32(ctas, "CTAs");
    kernel.cluster = cluster;
    kernel.dynamic = dynamic;
    kernel.tile_m = int32(tile_m, "tile_m");
    kernel.group_size = int32(group_size, "group size");
    const auto code_rows = rows_of(code, kInstructionColumns, "code");
    for (std::size_t p = 0; p + 1 < program_starts.shape(0); ++p) {
        Program program;
        for (std::int64_t i = program_starts.data()[p]; i < program_starts.data()[p + 1]; ++i)
            program.code.push_back(instruction_of(code_rows[i]));
        kernel.programs.push_back(std::move(program));
    }
    for (const std::int64_t* row : rows_of(rings, 4, "rings"))
        kernel.rings.push_back(
            {int32(row[0], "stages of a ring"), int32(row[1], "releases of a ring"), row[2], row[3] != 0});
    for (const std::int64_t* row : rows_of(maps, 4 + 3 * kMaxTensorRank, "maps")) {
        TensorMap map;
        map.base = static_cast<std::uint64_t>(row[0]);
        map.rank = int32(row[1], "rank of a tensor map");
        map.element_bytes = int32(row[2], "element_bytes of a tensor map");
        map.origin = static_cast<Origin>(narrow<std::uint8_t>(row[3], "origin of a tensor map"));
        for (int d = 0; d < kMaxTensorRank; ++d) {
            map.dims[d] = row[4 + d];
            map.strides[d] = row[4 + kMaxTensorRank + d];
            map.box[d] = row[4 + 2 * kMaxTensorRank + d];
        }
        kernel.maps.push_back(map);
    }
    for (const std::int64_t* row : rows_of(kinds, kMaxRoles + kMaxRings, "kinds")) kernel.kinds.push_back(kind_of(row));
    for (const std::int64_t* row : rows_of(prologue, kMaxRoles + kMaxRings, "prologue")) {
        kernel.has_prologue = true;
        kernel.prologue = kind_of(row);
    }
    for (const std::int64_t* row : rows_of(tiles, 4, "tiles"))
        kernel.tiles.push_back({int32(row[0], "kind of a tile"), int32(row[1], "m_block of a tile"),
                                int32(row[2], "head of a tile"), int32(row[3], "batch of a tile")});
    kernel.first_tile.assign(first_tile.data(), first_tile.data() + first_tile.shape(0));
    return kernel;
}

nb::dict stats_of(const Engine& engine) {
    const Totals totals = engine.totals();
    const PairStats& pairs = totals.pairs;
    const SliceStats& slices = totals.slices;
    nb::dict stalls;
    for (int role = 0; role < engine.kernel().roles; ++role) {
        nb::dict reasons;
        for (int reason = 0; reason < kReasons; ++reason)
            if (pairs.stalls[role][reason] != 0) reasons[kReasonNames[reason]] = pairs.stalls[role][reason];
        stalls[nb::int_(role)] = reasons;
    }
    nb::dict idle;
    for (int reason = 0; reason < kReasons; ++reason)
        if (pairs.tensor_idle[reason] != 0) idle[kReasonNames[reason]] = pairs.tensor_idle[reason];
    nb::dict stats;
    stats["tensor_idle"] = idle;
    stats["cycles"] = totals.cycles;
    stats["sms_used"] = totals.sms_used;
    stats["stalls"] = stalls;
    stats["tensor_busy_cycles"] = pairs.tensor_busy_cycles;
    stats["tensor_drain_cycles"] = pairs.tensor_drain_cycles;
    stats["cuda_busy_cycles"] = pairs.cuda_busy_cycles;
    stats["requests"] = pairs.requests;
    stats["read_lines"] = pairs.read_lines;
    stats["write_lines"] = pairs.write_lines;
    const std::int64_t line = engine.config().line_bytes;
    const std::int64_t sector = engine.config().sector_bytes;
    stats["read_bytes"] = pairs.read_lines * line - pairs.read_spared_sectors * sector;
    stats["write_bytes"] = pairs.write_lines * line - pairs.write_spared_sectors * sector;
    stats["l2_read_requests"] = pairs.l2_read_requests;
    stats["l2_read_bytes"] = pairs.l2_read_requests * line - pairs.l2_read_spared_sectors * sector;
    stats["lrc_merges"] = pairs.lrc_merges;
    stats["tma_limit_cycles"] = pairs.tma_limit_cycles;
    stats["descriptor_misses"] = pairs.descriptor_misses;
    stats["tiles"] = pairs.tiles;
    stats["instructions"] = pairs.instructions;
    stats["l2_read_hits"] = slices.read_hits;
    stats["l2_read_misses"] = slices.read_misses;
    stats["l2_read_merges"] = slices.read_merges;
    stats["l2_shadow_hits"] = slices.shadow_hits;
    stats["l2_hops"] = slices.hops;
    stats["l2_shadow_inserts"] = slices.shadow_inserts;
    stats["l2_write_requests"] = slices.write_requests;
    stats["l2_responses"] = slices.responses;
    stats["memory_reads"] = slices.memory_reads;
    stats["memory_writes"] = slices.memory_writes;
    stats["memory_read_bytes"] = slices.memory_read_sectors * sector;
    stats["memory_write_bytes"] = slices.memory_write_sectors * sector;
    stats["blocked_response_queue_cycles"] = slices.blocked_cycles[static_cast<int>(Blocked::response_queue)];
    stats["blocked_mshr_entries_cycles"] = slices.blocked_cycles[static_cast<int>(Blocked::mshr_entries)];
    stats["blocked_mshr_merges_cycles"] = slices.blocked_cycles[static_cast<int>(Blocked::mshr_merges)];
    stats["blocked_write_backs_cycles"] = slices.blocked_cycles[static_cast<int>(Blocked::write_backs)];
    stats["staging_cycles"] = slices.staging_cycles;
    stats["request_queue_cycles"] = slices.request_queue_cycles;
    stats["response_queue_cycles"] = slices.response_queue_cycles;
    stats["mshr_cycles"] = slices.mshr_cycles;
    stats["staging_longest_cycles"] = slices.staging_longest_cycles;
    stats["slice_requests_peak"] = slices.requests_peak;
    stats["request_queue_peak"] = slices.request_queue_peak;
    stats["response_queue_peak"] = slices.response_queue_peak;
    stats["mshr_peak"] = slices.mshr_peak;
    add_dram_stats(stats, totals.dram);
    return stats;
}

auto issues_of(const Engine& engine) {
    std::vector<std::int64_t> values;
    for (const Issue& issue : engine.issues())
        values.insert(values.end(), {issue.cycle, issue.cta, issue.role, issue.program, issue.flat});
    return table_of(std::move(values), 5);
}

// Seconds that `count` look-ups of random lines take in the tags of a whole L2, and nothing else: a floor for
// benchmarks.
double tag_lookup_seconds(std::int64_t count, int slices, int sets, int ways) {
    std::vector<TagArray> tags(static_cast<std::size_t>(slices), TagArray(sets, ways, 1));
    const LineHash hash(HashKind::xor_shift, slices);
    const auto lines =
        static_cast<std::uint32_t>(slices) * static_cast<std::uint32_t>(sets) * static_cast<std::uint32_t>(ways) / 2;
    std::uint32_t state = 1;
    const auto begin = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < count; ++i) {
        state = state * 1664525U + 1013904223U;
        const std::uint32_t line = static_cast<std::uint32_t>((std::uint64_t{state} * lines) >> 32);
        const LineHash::Place place = hash.place(line);
        const TagPlace in_slice = {place.local % static_cast<std::uint32_t>(sets),
                                   place.local / static_cast<std::uint32_t>(sets)};
        if (!tags[place.slice].read(in_slice, 0, 1)) tags[place.slice].insert(in_slice, 0, 1, 0);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

NB_MODULE(_core, module) {
    module.doc() = "Cycle-level engine of Sim-FA.";
    bind_memory(module);
    bind_timeline(module);
    nb::class_<Config> config(module, "Config");
    config.def(nb::init<>());
#define FIELD(name) config.def_rw(#name, &Config::name)
    FIELD(sms);
    FIELD(issue_width);
    FIELD(scheduler);
    FIELD(wgmma_issue_cycles);
    FIELD(wgmma_tail_ss_cycles);
    FIELD(wgmma_tail_rs_cycles);
    FIELD(wgmma_window_ss);
    FIELD(wgmma_window_rs);
    FIELD(group_drain_cycles);
    FIELD(cuda_shared);
    FIELD(cuda_round_robin);
    FIELD(quantum_cycles);
    FIELD(register_pressure_ppm);
    FIELD(tma_level);
    FIELD(level_0_latency_cycles);
    FIELD(tma_launch_cycles);
    FIELD(tensor_map_cycles);
    FIELD(descriptor_cache_entries);
    FIELD(descriptor_miss_cycles);
    FIELD(issue_gap_cycles);
    FIELD(lines_per_cycle);
    FIELD(cycles_per_line);
    FIELD(max_lines_in_flight);
    FIELD(deduplicate);
    FIELD(request_bytes);
    FIELD(store_read_cycles);
    FIELD(mbarrier_arrive_cycles);
    FIELD(mbarrier_remote_arrive_cycles);
    FIELD(mbarrier_wait_cycles);
    FIELD(mbarrier_wake_cycles);
    FIELD(named_arrive_cycles);
    FIELD(named_wait_cycles);
    FIELD(named_wake_cycles);
    FIELD(lrc_enabled);
    FIELD(lrc_multicast);
    FIELD(lrc_entries);
    FIELD(lrc_max_merges);
    FIELD(lrc_hold_cycles);
    FIELD(near_latency_cycles);
    FIELD(far_latency_cycles);
    FIELD(port_lines_per_cycle);
    FIELD(port_cycles_per_line);
    FIELD(line_bytes);
    FIELD(sector_bytes);
    FIELD(fetch_bytes);
    FIELD(slices);
    FIELD(sets);
    FIELD(ways);
    FIELD(hash);
    FIELD(slice_service_cycles);
    FIELD(request_queue_entries);
    FIELD(response_queue_entries);
    FIELD(mshr_entries);
    FIELD(mshr_merges);
    FIELD(remote_copy);
    FIELD(remote_copy_probability_ppm);
    FIELD(remote_copy_threshold_ppm);
    FIELD(channel_line_cycles_numerator);
    FIELD(channel_line_cycles_denominator);
    FIELD(channel_latency_cycles);
    FIELD(channel_write_cost_ppm);
    FIELD(channel_write_queue_entries);
    config.def_rw("dram", &Config::dram, nb::for_setter(nb::arg("channel").none()),
                  "Channels with banks, or None for channels of a fixed latency and rate.");
    FIELD(launch_cycles);
    FIELD(tile_fetch_cycles);
    FIELD(tile_edge_cycles);
    FIELD(ideal_latency_cycles);
    FIELD(window_cycles);
    FIELD(threads);
    FIELD(max_cycles);
    FIELD(seed);
    FIELD(timeline);
    FIELD(record_issues);
#undef FIELD
    nb::class_<Kernel>(module, "Kernel")
        .def_static("build", &kernel_of, nb::kw_only(), nb::arg("roles"), nb::arg("ctas"), nb::arg("cluster"),
                    nb::arg("dynamic"), nb::arg("tile_m"), nb::arg("group_size"), nb::arg("code"),
                    nb::arg("program_starts"), nb::arg("rings"), nb::arg("maps"), nb::arg("kinds"), nb::arg("prologue"),
                    nb::arg("tiles"), nb::arg("first_tile"));
    nb::class_<Engine> engine(module, "Engine");
    bind_engine_timeline(engine);
    engine.def(nb::init<const Config&, Kernel>(), nb::arg("config"), nb::arg("kernel"))
        .def(
            "warm",
            [](Engine& engine,
               const nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& lines, int sm) {
                const std::span<const std::uint32_t> all(lines.data(), lines.shape(0));
                const nb::gil_scoped_release unlocked;
                engine.warm(all, sm);
            },
            nb::arg("lines"), nb::arg("sm"))
        .def("advance", &Engine::advance, nb::arg("cycles"), nb::call_guard<nb::gil_scoped_release>())
        .def("run_for", &Engine::run_for, nb::arg("seconds"), nb::call_guard<nb::gil_scoped_release>())
        .def("stats", &stats_of)
        .def("issues", &issues_of)
        .def("role_end", &Engine::role_end, nb::arg("cta"), nb::arg("role"))
        .def_prop_ro("now", &Engine::now)
        .def_prop_ro("partial", &Engine::partial)
        .def_prop_ro("window_cycles", &Engine::window_cycles)
        .def_prop_ro("tiles_begun", &Engine::tiles_begun);
    module.def("tag_lookup_seconds", &tag_lookup_seconds, nb::arg("count"), nb::arg("slices"), nb::arg("sets"),
               nb::arg("ways"));
    nb::list reasons;
    for (const char* name : kReasonNames) reasons.append(name);
    module.attr("REASONS") = reasons;
    module.attr("MAX_ROLES") = kMaxRoles;
    module.attr("MAX_RINGS") = kMaxRings;
    module.attr("MAX_ACCUMULATORS") = std::numeric_limits<decltype(Instruction::label)>::max() + 1;
}
