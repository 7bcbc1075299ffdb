// A small fixed run of the whole engine, whose instructions `benchmarks/instruction_count.py` counts: eight SMs that
// do what FA3 does at head dimension 128, on a quarter of an H100's L2, with the channel model of memory.
#include <cstdio>
#include <cstdlib>

#include "engine.hpp"
#include "programs.hpp"

namespace {

using namespace simfa;
using namespace simfa::test;  // programs are written with its shorthand

#ifdef __clang__
constexpr const char* kCompiler = "clang";
#else
constexpr const char* kCompiler = "gcc";
#endif

constexpr int kCtas = 8;
constexpr int kTiles = 2;
constexpr int kBlocks = 6;
constexpr int kRows = 176;  // of K or V in a block
constexpr std::uint8_t kK = 0;
constexpr std::uint8_t kV = 1;

Config quarter_chip() {
    Config config;
    config.sms = kCtas;
    config.wgmma_issue_cycles = 17;
    config.wgmma_tail_ss_cycles = 66;
    config.wgmma_tail_rs_cycles = 64;
    config.wgmma_window_ss = 6;
    config.wgmma_window_rs = 5;
    config.group_drain_cycles = 45;
    config.tma_launch_cycles = 105;
    config.tensor_map_cycles = 60;
    config.descriptor_cache_entries = 32;
    config.descriptor_miss_cycles = 400;
    config.issue_gap_cycles = 32;
    config.max_lines_in_flight = 384;
    config.store_read_cycles = 170;
    config.mbarrier_arrive_cycles = 29;
    config.mbarrier_remote_arrive_cycles = 181;
    config.mbarrier_wait_cycles = 36;
    config.mbarrier_wake_cycles = 43;
    config.named_arrive_cycles = 7;
    config.named_wait_cycles = 30;
    config.named_wake_cycles = 30;
    config.slices = 20;
    config.channel_line_cycles_numerator = 27;
    config.channel_line_cycles_denominator = 4;
    config.channel_latency_cycles = 330;
    return config;
}

// A tensor of rows of 256 bytes, moved in boxes of 64 columns; the two CTAs of a cluster load half of the rows each.
TensorMap rows_of(std::uint64_t base, int box_rows) {
    return {.base = base,
            .rank = 2,
            .element_bytes = 2,
            .dims = {128, 1 << 16, 1, 1, 1},
            .strides = {2, 256, 0, 0, 0},
            .box = {64, box_rows, 1, 1, 1}};
}

Code load_block(std::uint8_t ring) {
    Instruction copy{.op = Op::tma_tensor, .flags = kMulticast, .ring = ring, .map = ring, .index_step = 1};
    copy.y_step = kRows;
    Instruction right = copy;
    right.x = 64;
    return acquire(0, ring, 1) + Code{copy, right};
}

// QK with eight WGMMAs of N = 176, softmax, PV with eleven of N = 128; turns of two consumers by named barriers.
Code consumer(int own, int other) {
    const Code block = await_barrier(own) + await_fill(0, kK, 1) + wgmma(8, 88) + wgmma_commit() + arrive(other) +
                       wgmma_wait(0, 0, 2) + release(0, kK, 1, true) + work(1300, Work::softmax) +
                       await_fill(0, kV, 1) + wgmma(11, 64, true) + wgmma_commit() + wgmma_wait(1, 0, 2) +
                       release(0, kV, 1, true);
    const Code end = work(256, Work::epilogue) + store(2) + store_commit() + store_wait(0, true);
    return repeat(kBlocks, block) + end;
}

Kernel kernel() {
    Kernel made =
        kernel_of({repeat(kBlocks, load_block(kK) + load_block(kV)), consumer(1, 2), consumer(2, 1)}, kCtas, 2, kTiles);
    made.rings = {ring(kRows * 256, 2, 4), ring(kRows * 256, 2, 4)};
    made.maps = {rows_of(0, kRows / 2), rows_of(1 << 26, kRows / 2), rows_of(1 << 27, 64)};
    made.has_prologue = true;
    made.prologue.programs = {-1, -1, 3, -1};
    made.programs.push_back(program(arrive(1)));
    return made;
}

}  // namespace

// Usage: simfa_fixed_kernel [RUNS]
int main(int arguments, char** values) {
    Totals totals;
    for (int runs = arguments > 1 ? std::atoi(values[1]) : 1; runs > 0; --runs) {
        Engine engine(quarter_chip(), kernel());
        engine.advance(kNever / 2);
        totals = engine.totals();
    }
    std::printf("%lld cycles, %lld lines, %s %s\n", static_cast<long long>(totals.cycles),
                static_cast<long long>(totals.pairs.read_lines + totals.pairs.write_lines), kCompiler, __VERSION__);
}
