#include "check_kernel.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "line_hash.hpp"
#include "tensor_core.hpp"

namespace simfa {

namespace {

void demand(bool good, const std::string& what) {
    if (!good) throw std::invalid_argument(what);
}

void within(std::int64_t value, std::int64_t low, std::int64_t high, const char* name) {
    demand(value >= low && value <= high, std::string(name) + " is " + std::to_string(value) + "; expected " +
                                              std::to_string(low) + " to " + std::to_string(high));
}

void check_instruction(const Instruction& instruction, const Kernel& kernel) {
    const bool barrier = instruction.op == Op::bar_arrive || instruction.op == Op::bar_wait;
    const std::size_t rings = kernel.rings.size();
    if (barrier) within(instruction.ring, 0, kMaxBarriers - 1, "named barrier");
    if (instruction.op == Op::tma_tensor || instruction.op == Op::tma_store)
        within(instruction.map, 0, static_cast<std::int64_t>(kernel.maps.size()) - 1, "tensor map");
    if (instruction.op == Op::tma_tensor || instruction.op == Op::tma_bulk || instruction.op == Op::mb_wait ||
        instruction.op == Op::acquire_stage || instruction.op == Op::release_stage)
        within(instruction.ring, 0, static_cast<std::int64_t>(rings) - 1, "ring");
}

// Sums and products of addresses, which end at this value instead of wrapping.
constexpr std::uint64_t kBeyond = std::uint64_t{1} << 62;

std::uint64_t product(std::uint64_t a, std::uint64_t b) { return a != 0 && b > kBeyond / a ? kBeyond : a * b; }

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
    return std::min(kBeyond, std::min(kBeyond, a) + std::min(kBeyond, b));
}

std::uint64_t last_byte(const TensorMap& map) {
    std::uint64_t last = sum(map.base, product(static_cast<std::uint64_t>(map.dims[0]), map.element_bytes));
    for (int d = 1; d < kMaxTensorRank; ++d)
        last =
            sum(last, product(static_cast<std::uint64_t>(map.dims[d] - 1), static_cast<std::uint64_t>(map.strides[d])));
    return last;
}

void demand_reach(std::uint64_t last, const Config& config, const std::string& what) {
    const std::uint64_t most = std::uint64_t{kLineLimit} * static_cast<std::uint64_t>(config.line_bytes);
    demand(last < most, what + " ends at byte address " + (last == kBeyond ? "2^62 or later" : std::to_string(last)) +
                            ", which is out of reach; expected addresses below " + std::to_string(most));
}

// The longest way of a TMA_BULK is its last iteration, or its first one if the step is negative.
void check_bulk_copies(const Program& program, int number, const Config& config) {
    std::int64_t times = 1;
    for (const Instruction& instruction : program.code) {
        if (instruction.op == Op::repeat) times = instruction.count;
        if (instruction.op == Op::end) times = 1;
        if (instruction.op != Op::tma_bulk) continue;
        const std::uint64_t way =
            instruction.address_step < 0
                ? 0
                : product(static_cast<std::uint64_t>(instruction.address_step), static_cast<std::uint64_t>(times - 1));
        demand_reach(sum(static_cast<std::uint64_t>(instruction.address),
                         sum(way, static_cast<std::uint64_t>(instruction.count))),
                     config, "the copy of @" + std::to_string(number) + ":" + std::to_string(instruction.flat));
    }
}

}  // namespace

void check_kernel(const Config& config, const Kernel& kernel) {
    within(config.sms, 2, 4096, "gpu.sm_count");
    demand(config.sms % 2 == 0, "gpu.sm_count is odd; SMs come in pairs");
    for (const std::int32_t sm : config.timeline.sms) within(sm, 0, config.sms - 1, "SM of the timeline");
    demand(config.timeline.begin >= 0 && config.timeline.begin < config.timeline.end,
           "timeline window: expected a begin of 0 or more and an end after it");
    demand(config.timeline.period_cycles >= 0, "timeline period: expected 0 cycles or more");
    within(config.slices, 2, 1024, "l2.slices");
    within(kernel.ctas, 1, config.sms, "CTAs (one a SM)");
    within(kernel.cluster, 1, 2, "cluster size");
    within(kernel.roles, 1, kMaxRoles, "roles of a CTA");
    within(static_cast<std::int64_t>(kernel.rings.size()), 0, kMaxRings, "rings");
    within(config.issue_width, 1, kMaxRoles, "sm.issue_width");
    within(config.descriptor_cache_entries, 1, 4096, "tma.descriptor_cache_entries");
    within(config.wgmma_window_ss, 1, TensorCore::kMaxWindow, "tensor_core.wgmma_window_ss");
    within(config.wgmma_window_rs, 1, TensorCore::kMaxWindow, "tensor_core.wgmma_window_rs");
    within(config.lrc_max_merges, 1, kMaxLrcWaiters, "lrc.max_merges");
    within(config.lrc_entries, 1, 32767, "lrc.entries");
    within(config.max_lines_in_flight, 1, 16383, "tma.max_lines_in_flight");
    within(config.line_bytes, 32, 4096, "l2.line_bytes");
    within(config.ways, 1, 1024, "l2.ways");
    within(std::int64_t{config.slices} * config.sets * config.ways, 1, std::int64_t{1} << 27,
           "lines in l2.capacity_bytes");
    within(config.request_queue_entries, 1, 65536, "l2.request_queue_entries");
    within(config.response_queue_entries, 1, 65536, "l2.response_queue_entries");
    within(config.mshr_entries, 1, 65536, "l2.mshr_entries");
    within(config.mshr_merges, 1, 65536, "l2.mshr_merges");
    demand(std::has_single_bit(static_cast<std::uint32_t>(config.line_bytes)), "l2.line_bytes is not a power of two");
    demand(std::has_single_bit(static_cast<std::uint32_t>(config.sector_bytes)) &&
               config.sector_bytes <= config.line_bytes && config.sectors() <= kMostSectors,
           "l2.sector_bytes is not a line divided by 1, 2, 4 or 8");
    demand(std::has_single_bit(static_cast<std::uint32_t>(config.fetch_bytes)) &&
               config.fetch_bytes >= config.sector_bytes && config.fetch_bytes <= config.line_bytes,
           "l2.fetch_bytes is not a power of two from a sector to a line");
    demand(std::has_single_bit(static_cast<std::uint32_t>(config.request_bytes)) &&
               config.request_bytes <= config.line_bytes,
           "tma.request_bytes is not a power of two up to a line");
    demand(!(kernel.dynamic && kernel.cluster == 2), "dynamic schedules with clusters of 2 are not supported");
    demand(kernel.cluster == 1 || kernel.ctas % 2 == 0, "an odd number of CTAs cannot form clusters of 2");
    for (const Ring& ring : kernel.rings) within(ring.stages, 1, kMaxStages, "stages of a ring");
    for (const Program& program : kernel.programs) {
        demand(!program.code.empty() && program.code.back().op == Op::finish, "a program has no end");
        for (const Instruction& instruction : program.code) check_instruction(instruction, kernel);
        check_bulk_copies(program, static_cast<int>(&program - kernel.programs.data()), config);
    }
    for (std::size_t i = 0; i < kernel.maps.size(); ++i)
        demand_reach(last_byte(kernel.maps[i]), config, "tensor map #" + std::to_string(i));
}

}  // namespace simfa
