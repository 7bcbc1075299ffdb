// Probe of the Sim-FA kernel logs: per-warp rows in global memory, one 128-bit store per record.
//
// One lane of a logged warp owns the warp's row, so nothing is shared: no atomics, no fences, no shared memory (a
// static shared variable would move the 1024-byte aligned dynamic buffer that the swizzled TMA tiles rely on). The host
// reads the rows after the kernel has ended. A full row drops the newest records and counts them.
#pragma once

#include <cstdint>

#include "simfa_events.cuh"

#ifndef SIMFA_LEVEL
#error "define SIMFA_LEVEL as 1 (events of Table 4) or 2 (all events)"
#endif

namespace simfa {

constexpr std::uint32_t ROW_MAGIC = 0x57524653;  // "SFRW"
constexpr std::uint16_t ROW_VERSION = 1;
constexpr unsigned ROW_HEADER_RECORDS = 64 / RECORD_BYTES;
constexpr unsigned MAX_WARPS = 16;

// Where the rows are. The host sets it before a launch; `rows` of 0 turns tracing off.
struct TraceConfig {
    std::uint64_t rows;                  // device address of row 0
    std::uint64_t cta_slots;             // device address of one int32 per CTA: its slot, or -1; 0: CTA b has slot b
    std::uint32_t row_records;           // 16-byte units per row, header included
    std::uint32_t rows_per_cta;          // rows of one slot
    std::int8_t row_of_warp[MAX_WARPS];  // row of each warp inside its slot, or -1
};

__constant__ TraceConfig trace_config;

struct ClockPair {
    std::uint64_t globaltimer_ns;
    std::uint64_t clock;
};

__device__ __forceinline__ std::uint64_t read_clock() {
    std::uint64_t value;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(value));
    return value;
}

__device__ __forceinline__ std::uint64_t read_globaltimer() {
    std::uint64_t value;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
    return value;
}

// Both clocks right after a tick of the global timer (32 ns on Hopper, 1 us where a driver slows it), so that the pair
// is good to a few cycles; gives up after 4096 cycles.
__device__ __forceinline__ ClockPair read_clock_pair() {
    ClockPair pair;
    std::uint64_t const before = read_globaltimer();
    std::uint64_t const start = read_clock();
    do {
        pair.globaltimer_ns = read_globaltimer();
        pair.clock = read_clock();
    } while (pair.globaltimer_ns == before && pair.clock - start < 4096);
    return pair;
}

__device__ __forceinline__ std::uint64_t address_of(std::uint32_t index) {
    return trace_config.rows + std::uint64_t(index) * RECORD_BYTES;
}

__device__ __forceinline__ void store_record(std::uint32_t index, std::uint32_t word0, std::uint32_t word1,
                                             std::uint32_t word2, std::uint32_t word3) {
    *reinterpret_cast<uint4*>(address_of(index)) = make_uint4(word0, word1, word2, word3);
}

__device__ __forceinline__ void store_record(std::uint32_t index, std::uint64_t low, std::uint64_t high) {
    store_record(index, std::uint32_t(low), std::uint32_t(low >> 32), std::uint32_t(high), std::uint32_t(high >> 32));
}

// Log of one warp, a data member of the kernel's collective: it lives from before the roles split to the kernel's end.
// All state is two 32-bit registers. Lanes and warps that do not log start past their limit, as does a full row.
class Probe {
  public:
    // All 32 lanes must be converged. The logging lane is the one `elect.sync` picks: the election is deterministic, so
    // it is also the lane that runs the kernel's own elected regions, where TMA is issued.
    __device__ __forceinline__ Probe() : next_(NEVER), limit_(0) {
        if (trace_config.rows == 0) {
            return;
        }
        int const row = trace_config.row_of_warp[threadIdx.x / 32];
        int slot = int(blockIdx.x);
        if (trace_config.cta_slots != 0) {
            slot = reinterpret_cast<int const*>(trace_config.cta_slots)[slot];
        }
        if (!is_elected() || row < 0 || slot < 0) {
            return;
        }
        std::uint32_t const first = (slot * trace_config.rows_per_cta + row) * trace_config.row_records;
        next_ = first + ROW_HEADER_RECORDS;
        limit_ = first + trace_config.row_records;
        std::uint32_t sm;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
        std::uint32_t const warp = threadIdx.x / 32;
        ClockPair const begin = read_clock_pair();
        store_record(first, ROW_MAGIC, ROW_VERSION | (warp / 4) << 16, sm, blockIdx.x);
        store_record(first + 2, begin.globaltimer_ns, begin.clock);
        if constexpr (SIMFA_LEVEL >= 2) {
            record(Event::KERNEL_BEGIN);
        }
    }

    __device__ __forceinline__ ~Probe() {
        if (limit_ == 0) {
            return;
        }
        if constexpr (SIMFA_LEVEL >= 2) {
            record(Event::KERNEL_END);
        }
        std::uint32_t const first = limit_ - trace_config.row_records;
        std::uint32_t const kept = next_ < limit_ ? next_ : limit_;
        ClockPair const end = read_clock_pair();
        store_record(first + 1, threadIdx.x / 32, kept - first - ROW_HEADER_RECORDS, next_ - kept, 0);
        store_record(first + 3, end.globaltimer_ns, end.clock);
    }

    Probe(Probe const&) = delete;
    Probe& operator=(Probe const&) = delete;

    __device__ __forceinline__ void record(Event event, std::uint32_t stage = 0, std::uint32_t payload = 0,
                                           std::uint32_t aux = 0) {
        put(read_clock(), event, stage, payload, aux);
    }

    // Two events of one moment: one clock read, two records.
    __device__ __forceinline__ void record_both(Event first, Event second, std::uint32_t stage, std::uint32_t payload) {
        std::uint64_t const now = read_clock();
        put(now, first, stage, payload, 0);
        put(now, second, stage, payload, 0);
    }

  private:
    static constexpr std::uint32_t NEVER = 0x80000000;

    static __device__ __forceinline__ bool is_elected() {
        std::uint32_t elected;
        asm volatile(
            "{\n"
            ".reg .pred leader;\n"
            "elect.sync _|leader, 0xffffffff;\n"
            "selp.u32 %0, 1, 0, leader;\n"
            "}\n"
            : "=r"(elected));
        return elected != 0;
    }

    // The store is predicated inside one asm block: without a branch ptxas keeps the main loop in one piece, and level
    // 2 gets by without storing spilled registers in it. No memory clobber: the kernel never reads a row, and volatile
    // alone keeps the order among clock reads, barriers and WGMMAs. Stage, payload and aux must fit 16 bits.
    __device__ __forceinline__ void put(std::uint64_t now, Event event, std::uint32_t stage, std::uint32_t payload,
                                        std::uint32_t aux) {
        std::uint32_t const index = next_++;
        asm volatile(
            "{\n"
            ".reg .pred fits;\n"
            "setp.lt.u32 fits, %0, %1;\n"
            "@fits st.global.v4.b32 [%2], {%3, %4, %5, %6};\n"
            "}\n" ::"r"(index),
            "r"(limit_), "l"(address_of(index)), "r"(std::uint32_t(now)), "r"(std::uint32_t(now >> 32)),
            "r"(std::uint32_t(event) + stage * 65536), "r"(payload + aux * 65536));
    }

    std::uint32_t next_;
    std::uint32_t limit_;
};

}  // namespace simfa
