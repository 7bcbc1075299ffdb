// All numbers of a hardware preset as the engine uses them: integers, in SM cycles and bytes.
#pragma once

#include <cstdint>
#include <memory>

#include "box_lines.hpp"
#include "dram_channel.hpp"
#include "timeline.hpp"
#include "types.hpp"

namespace simfa {

enum class Scheduler : std::uint8_t { gto, lrr, oldest };

struct Config {
    std::int32_t sms = 132;
    // SM frontend
    std::int32_t issue_width = 1;
    std::int32_t scheduler = 0;
    // Tensor core
    std::int32_t wgmma_issue_cycles = 1;
    std::int32_t wgmma_tail_ss_cycles = 0;
    std::int32_t wgmma_tail_rs_cycles = 0;
    std::int32_t wgmma_window_ss = 16;
    std::int32_t wgmma_window_rs = 16;
    std::int32_t group_drain_cycles = 0;
    // CUDA cores
    bool cuda_shared = true;
    bool cuda_round_robin = true;
    std::int32_t quantum_cycles = 64;
    std::int32_t register_pressure_ppm = 0;
    // TMA
    std::int32_t tma_level = 1;
    std::int32_t level_0_latency_cycles = 0;
    std::int32_t tma_launch_cycles = 0;
    std::int32_t tensor_map_cycles = 0;
    std::int32_t descriptor_cache_entries = 1;
    std::int32_t descriptor_miss_cycles = 0;
    std::int32_t issue_gap_cycles = 0;
    std::int32_t lines_per_cycle = 1;  // if several lines go out in one cycle
    std::int32_t cycles_per_line = 1;  // if a line takes several cycles
    std::int32_t max_lines_in_flight = 64;
    bool deduplicate = true;
    std::int32_t request_bytes = 32;
    std::int32_t store_read_cycles = 0;
    // Barriers
    std::int32_t mbarrier_arrive_cycles = 0;
    std::int32_t mbarrier_remote_arrive_cycles = 0;
    std::int32_t mbarrier_wait_cycles = 1;
    std::int32_t mbarrier_wake_cycles = 0;
    std::int32_t named_arrive_cycles = 0;
    std::int32_t named_wait_cycles = 1;
    std::int32_t named_wake_cycles = 0;
    // L2 request coalescer and crossbar
    bool lrc_enabled = true;
    bool lrc_multicast = true;
    std::int32_t lrc_entries = 1024;
    std::int32_t lrc_max_merges = 4;
    std::int32_t lrc_hold_cycles = 0;
    std::int32_t near_latency_cycles = 258;
    std::int32_t far_latency_cycles = 414;
    std::int32_t port_lines_per_cycle = 1;
    std::int32_t port_cycles_per_line = 1;
    // L2
    std::int32_t line_bytes = 128;
    std::int32_t sector_bytes = 32;
    std::int32_t fetch_bytes = 64;  // read misses read aligned groups of so many
    std::int32_t slices = 80;
    std::int32_t sets = 256;
    std::int32_t ways = 20;
    std::int32_t hash = 0;  // 0 xor, 1 modulo, 2 strong, 3 side
    std::int32_t slice_service_cycles = 2;
    std::int32_t request_queue_entries = 32;
    std::int32_t response_queue_entries = 128;
    std::int32_t mshr_entries = 256;
    std::int32_t mshr_merges = 96;
    bool remote_copy = false;
    std::int32_t remote_copy_probability_ppm = 0;
    std::int32_t remote_copy_threshold_ppm = 0;
    // Device memory, simple channel: cycles per line as numerator / denominator
    std::int64_t channel_line_cycles_numerator = 1;
    std::int64_t channel_line_cycles_denominator = 1;
    std::int32_t channel_latency_cycles = 0;
    std::int32_t channel_write_cost_ppm = 1000000;
    std::int32_t channel_write_queue_entries = 32;
    std::shared_ptr<const DramChannelConfig> dram;  // channels with banks instead
    // Grid
    std::int32_t launch_cycles = 0;
    std::int32_t tile_fetch_cycles = 1;
    std::int32_t tile_edge_cycles = 0;
    // Run
    std::int32_t ideal_latency_cycles = 0;  // above 0: every line is answered after so many cycles, nothing else counts
    std::int32_t window_cycles = 0;         // 0: the longest that the latencies allow
    std::int32_t threads = 1;
    std::int64_t max_cycles = kNever;  // the run stops there, ended or not
    std::int64_t seed = 0;
    TimelineChoice timeline;
    bool record_issues = false;  // keep every issue, for comparison with the reference

    int sectors() const { return line_bytes / sector_bytes; }
    LineShape line_shape() const { return {line_bytes, sector_bytes, deduplicate, request_bytes}; }
};

}  // namespace simfa
