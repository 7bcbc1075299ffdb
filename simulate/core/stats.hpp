// What a run counts: where each role's cycles went, traffic, occupancies.
#pragma once

#include <array>
#include <cstdint>

#include "types.hpp"

namespace simfa {

// Why a role did not go on; every cycle of a role between launch and the kernel's end has exactly one.
enum class Reason : std::uint8_t {
    issue,        // issuing, or waiting for an issue slot
    wgmma_issue,  // issuing WGMMAs back to back
    tensor_busy,  // the WGMMA window is full
    wait_k,
    wait_v,
    wait_q,
    wait_other,     // a fill of another ring
    acquire_stage,  // K or V stage not released yet
    acquire_q,      // the last tile's Q is still read
    acquire_o,      // the last tile's O is not stored yet
    acquire_other,
    barrier,  // named barrier: ping-pong turn, meeting of consumers
    wgmma_wait,
    softmax,
    epilogue,
    bubble,
    cuda_contention,  // CUDA cores busy with another warpgroup
    store,
    tile_fetch,
    tile_edge,
    launch,
    tail,  // done, others still run
    count_,
};

inline constexpr int kReasons = static_cast<int>(Reason::count_);

inline constexpr std::array<const char*, kReasons> kReasonNames = {
    "issue",      "wgmma_issue",   "tensor_busy", "wait_k",    "wait_v",          "wait_q",
    "wait_other", "acquire_stage", "acquire_q",   "acquire_o", "acquire_other",   "barrier",
    "wgmma_wait", "softmax",       "epilogue",    "bubble",    "cuda_contention", "store",
    "tile_fetch", "tile_edge",     "launch",      "tail"};

using ReasonCycles = std::array<std::int64_t, kReasons>;

// Counters of one SM pair; all units' counters are added up at the end.
struct PairStats {
    std::array<ReasonCycles, kMaxRoles> stalls{};
    ReasonCycles tensor_idle{};  // by what the warpgroup was doing that used the tensor pipe next
    std::int64_t tensor_busy_cycles = 0;
    std::int64_t tensor_drain_cycles = 0;
    std::int64_t cuda_busy_cycles = 0;
    std::int64_t requests = 0;    // line requests of the TMA engines
    std::int64_t read_lines = 0;  // lines delivered to shared memory (a multicast line counts for both SMs)
    std::int64_t write_lines = 0;
    std::int64_t read_spared_sectors = 0;  // sectors of these lines that were not asked for
    std::int64_t write_spared_sectors = 0;
    std::int64_t l2_read_requests = 0;        // reads that left the coalescer
    std::int64_t l2_read_spared_sectors = 0;  // sectors of their lines that were not asked for
    std::int64_t lrc_merges = 0;
    std::int64_t tma_limit_cycles = 0;  // a line was ready, the in-flight limit or a full coalescer held it back
    std::int64_t descriptor_misses = 0;
    std::int64_t tiles = 0;
    std::int64_t instructions = 0;

    PairStats& operator+=(const PairStats& other) {
        for (int role = 0; role < kMaxRoles; ++role)
            for (int reason = 0; reason < kReasons; ++reason) stalls[role][reason] += other.stalls[role][reason];
        for (int reason = 0; reason < kReasons; ++reason) tensor_idle[reason] += other.tensor_idle[reason];
        tensor_busy_cycles += other.tensor_busy_cycles;
        tensor_drain_cycles += other.tensor_drain_cycles;
        cuda_busy_cycles += other.cuda_busy_cycles;
        requests += other.requests;
        read_lines += other.read_lines;
        write_lines += other.write_lines;
        read_spared_sectors += other.read_spared_sectors;
        write_spared_sectors += other.write_spared_sectors;
        l2_read_requests += other.l2_read_requests;
        l2_read_spared_sectors += other.l2_read_spared_sectors;
        lrc_merges += other.lrc_merges;
        tma_limit_cycles += other.tma_limit_cycles;
        descriptor_misses += other.descriptor_misses;
        tiles += other.tiles;
        instructions += other.instructions;
        return *this;
    }
};

}  // namespace simfa
