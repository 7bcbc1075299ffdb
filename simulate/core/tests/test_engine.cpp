#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "engine.hpp"
#include "line_hash.hpp"
#include "programs.hpp"
#include "words.hpp"

namespace simfa {

namespace {

using namespace test;  // programs are written with its shorthand

constexpr Cycle kLong = Cycle{1} << 40;

// A chip of four SMs and four slices of 16 KiB, with memory that serves a line in two cycles.
Config small_chip() {
    Config config = bare();
    config.sms = 4;
    config.slices = 4;
    config.sets = 8;
    config.ways = 16;
    config.near_latency_cycles = 40;
    config.far_latency_cycles = 64;
    config.request_queue_entries = 4;
    config.response_queue_entries = 8;
    config.mshr_entries = 8;
    config.mshr_merges = 4;
    config.channel_latency_cycles = 100;
    config.channel_line_cycles_numerator = 2;
    return config;
}

// Producers stream `blocks` blocks of 1 KiB through two stages, all CTAs the same ones; consumers work on each and
// store a row at the end.
Kernel streams(int ctas, int tiles, int blocks, bool dynamic) {
    const std::vector<Code> roles = {
        repeat(blocks, acquire(0, 0, 1) + bulk(0, 0, 1024, 1, 1024)),
        repeat(blocks, await_fill(0, 0, 1) + wgmma(2, 11) + wgmma_commit() + wgmma_wait(0, 0, 1) + release(0, 0, 1)) +
            work(40, Work::epilogue) + store() + store_commit() + store_wait(0)};
    Kernel kernel = dynamic ? dynamic_kernel(roles, ctas, tiles) : kernel_of(roles, ctas, 1, tiles);
    kernel.rings = {ring(1024, 2)};
    kernel.maps = {row_map(4, 1 << 20)};
    return kernel;
}

std::string all_counts(const Engine& engine) {
    const Totals totals = engine.totals();
    std::string text;
    add_word(text, totals.cycles, ' ', totals.pairs.instructions, ' ', totals.pairs.tiles);
    for (int role = 0; role < kMaxRoles; ++role)
        for (const std::int64_t cycles : totals.pairs.stalls[static_cast<std::size_t>(role)]) add_word(text, cycles);
    for (const std::int64_t cycles : totals.pairs.tensor_idle) add_word(text, cycles);
    add_word(text, totals.pairs.tensor_busy_cycles, ' ', totals.pairs.tensor_drain_cycles, ' ',
             totals.pairs.cuda_busy_cycles, ' ', totals.pairs.requests, ' ', totals.pairs.read_lines, ' ',
             totals.pairs.write_lines, ' ', totals.pairs.l2_read_requests, ' ', totals.pairs.lrc_merges, ' ',
             totals.pairs.tma_limit_cycles, ' ', totals.pairs.descriptor_misses);
    const SliceStats& slices = totals.slices;
    add_word(text, slices.read_hits, ' ', slices.read_misses, ' ', slices.read_merges, ' ', slices.shadow_hits, ' ',
             slices.hops, ' ', slices.shadow_inserts, ' ', slices.responses, ' ', slices.memory_reads, ' ',
             slices.memory_writes, ' ', slices.staging_cycles, ' ', slices.request_queue_cycles, ' ',
             slices.response_queue_cycles, ' ', slices.mshr_cycles, ' ', slices.staging_longest_cycles);
    for (const std::int64_t cycles : slices.blocked_cycles) add_word(text, cycles);
    for (const TimelineSlice& slice : engine.timeline())
        add_word(text, slice.sm, '/', slice.track, '/', slice.name, '/', slice.start, '/', slice.end, '/', slice.arg);
    for (const std::vector<std::int64_t>& row : engine.timeline_counters())
        for (const std::int64_t value : row) add_word(text, value);
    return text;
}

std::int64_t sum_of_stalls(const Totals& totals, int role) {
    std::int64_t sum = 0;
    for (const std::int64_t cycles : totals.pairs.stalls[static_cast<std::size_t>(role)]) sum += cycles;
    return sum;
}

}  // namespace

// One SM, 100 cycles of launch, work of 30.
TEST(engine_runs_to_the_end) {
    Config config = bare(20);
    config.launch_cycles = 100;
    Engine engine(config, kernel_of({work(30)}));
    CHECK(engine.advance(kLong));
    CHECK(!engine.partial());
    CHECK_EQ(engine.totals().cycles, 130);
    CHECK_EQ(engine.totals().sms_used, 1);
    CHECK_EQ(engine.role_end(0, 0), 130);
    const std::string counts = all_counts(engine);
    CHECK(engine.advance(kLong));  // once more changes nothing
    CHECK_EQ(all_counts(engine), counts);
}

// Two jobs of a million cycles in windows of 7: the engine looks for the next event every 256 windows and goes there.
TEST(engine_skips_windows_without_events) {
    Config config = bare(20);
    config.window_cycles = 7;
    Engine engine(config, kernel_of({work(1000000) + work(1000000)}));
    int steps = 1;
    for (; !engine.advance(1); ++steps) {
    }
    CHECK_EQ(engine.totals().cycles, 2000000);
    CHECK(steps < 3 * 256);
}

TEST(engine_names_who_hangs) {
    Kernel kernel = kernel_of({acquire(0) + bulk(0, 0, 64), work(0) + await_fill(0)}, 3);
    kernel.rings = {ring(128)};
    Config config = bare(20);
    config.sms = 4;
    Engine engine(config, kernel);
    CHECK_THROWS(engine.advance(kLong), std::runtime_error,
                 "CTA 0 role 1 at @1:1 waits for fill 0 of ring #0 (stage 0, 64 of 128 bytes arrived)");
    Engine again(config, kernel);
    CHECK_THROWS(again.advance(kLong), std::runtime_error, "and 1 more CTAs");
}

TEST(engine_stops_at_its_limit) {
    Config config = small_chip();
    config.launch_cycles = 50;
    Engine whole(config, streams(4, 2, 10, false));
    CHECK(whole.advance(kLong));
    const Cycle end = whole.totals().cycles;
    for (const Cycle limit : {Cycle{1}, Cycle{50}, Cycle{51}, Cycle{137}, Cycle{500}, end - 1}) {
        config.max_cycles = limit;
        Engine engine(config, streams(4, 2, 10, false));
        CHECK(engine.advance(kLong));
        CHECK(engine.partial());
        const Totals totals = engine.totals();
        CHECK_EQ(totals.cycles, limit);
        for (int role = 0; role < 2; ++role) CHECK_EQ(sum_of_stalls(totals, role), 4 * limit);
        std::int64_t pipe = totals.pairs.tensor_busy_cycles + totals.pairs.tensor_drain_cycles;
        for (const std::int64_t cycles : totals.pairs.tensor_idle) pipe += cycles;
        CHECK_EQ(pipe, 4 * limit);
    }
    config.max_cycles = end + 100000;
    Engine engine(config, streams(4, 2, 10, false));
    CHECK(engine.advance(kLong));
    CHECK(!engine.partial());
    CHECK_EQ(all_counts(engine), all_counts(whole));
}

// What is counted does not depend on threads, windows or on how often the caller looks, also of a stopped run.
TEST(engine_threads_and_windows_change_nothing) {
    for (const bool dynamic : {false, true})
        for (const bool remote_copy : {false, true})
            for (const Cycle limit : {kNever, Cycle{613}}) {
                Config config = small_chip();
                config.tile_fetch_cycles = 30;
                config.remote_copy = remote_copy;
                config.remote_copy_probability_ppm = 500000;
                config.remote_copy_threshold_ppm = 500000;
                config.timeline.sms = {0, 1, 2, 3};
                config.timeline.period_cycles = 50;
                config.max_cycles = limit;
                std::string first;
                for (const int threads : {1, 2, 3})
                    for (const int window : {0, 1, 7}) {
                        config.threads = threads;
                        config.window_cycles = window;
                        Engine engine(config, streams(4, dynamic ? 11 : 3, 12, dynamic));
                        while (!engine.advance(window == 1 ? 100 : kLong)) {
                        }
                        if (first.empty()) first = all_counts(engine);
                        CHECK_EQ(all_counts(engine), first);
                    }
            }
}

// A tile fetch of one cycle leaves no cycle for the request: the engine then runs on one thread.
TEST(engine_fetches_tiles_in_one_cycle) {
    Config config = bare(20);
    config.sms = 8;
    config.tile_fetch_cycles = 1;
    std::string first;
    for (const int threads : {1, 4}) {
        config.threads = threads;
        Engine engine(config, dynamic_kernel({work(3)}, 8, 100));
        CHECK(engine.advance(kLong));
        // 100 tiles of 3 cycles on 8 CTAs: four have 13, four 12. The next tile is known before the last one ends.
        CHECK_EQ(engine.totals().cycles, 39);
        if (first.empty()) first = all_counts(engine);
        CHECK_EQ(all_counts(engine), first);
    }
}

// An exception inside a thread reaches the caller, whichever thread it is.
TEST(engine_hands_on_exceptions_of_threads) {
    Config config = bare(1000000);
    config.sms = 8;
    config.max_lines_in_flight = 1;
    Kernel kernel = kernel_of({repeat(70000, bulk(0, 0, 128))}, 8);
    kernel.rings = {ring()};
    // Only the last CTA, on the last thread, has a tile.
    kernel.tiles.resize(1);
    kernel.first_tile = {0, 0, 0, 0, 0, 0, 0, 0, 1};
    for (const int threads : {1, 2, 4}) {
        config.threads = threads;
        Engine engine(config, kernel);
        CHECK_THROWS(engine.advance(kLong), std::runtime_error, "65536 TMA operations");
    }
}

// The counts of a run hang together.
TEST(engine_conserves_requests) {
    Config config = small_chip();
    Engine engine(config, streams(4, 3, 50, false));
    CHECK(engine.advance(kLong));
    const Totals totals = engine.totals();
    // 4 CTAs x 3 tiles x (50 blocks of 8 lines, and a store of 4 lines).
    CHECK_EQ(totals.pairs.read_lines, 4 * 3 * 50 * 8);
    CHECK_EQ(totals.pairs.write_lines, 4 * 3 * 4);
    CHECK_EQ(totals.pairs.requests, totals.pairs.read_lines + totals.pairs.write_lines);
    CHECK_EQ(totals.pairs.requests, totals.slices.responses + totals.pairs.lrc_merges);
    CHECK_EQ(totals.pairs.l2_read_requests + totals.pairs.lrc_merges, totals.pairs.read_lines);
    CHECK_EQ(totals.slices.read_requests, totals.pairs.l2_read_requests);
    CHECK_EQ(totals.slices.write_requests, totals.pairs.write_lines);
    CHECK_EQ(totals.slices.read_hits + totals.slices.read_misses + totals.slices.read_merges,
             totals.slices.read_requests);
    CHECK_EQ(totals.slices.memory_reads, totals.slices.read_misses);
    CHECK(totals.pairs.lrc_merges > 0);
    CHECK_EQ(totals.pairs.tensor_busy_cycles, 4 * 3 * 50 * 2 * 11);
}

TEST(engine_refuses_what_it_has_no_room_for) {
    const Kernel kernel = kernel_of({work(1)}, 2);
    const auto refuses = [&](auto change, const char* words) {
        Config config = bare(20);
        Kernel changed = kernel;
        change(config, changed);
        CHECK_THROWS(Engine(config, changed), std::invalid_argument, words);
    };
    refuses([](Config& c, Kernel&) { c.sms = 3; }, "gpu.sm_count is odd");
    refuses([](Config& c, Kernel&) { c.sms = 4098; }, "gpu.sm_count is 4098; expected 2 to 4096");
    refuses([](Config& c, Kernel&) { c.slices = 1026; }, "l2.slices is 1026; expected 2 to 1024");
    refuses([](Config& c, Kernel&) { c.wgmma_window_ss = 65; }, "tensor_core.wgmma_window_ss is 65; expected 1 to 64");
    refuses([](Config& c, Kernel&) { c.wgmma_window_rs = 0; }, "tensor_core.wgmma_window_rs is 0; expected 1 to 64");
    refuses([](Config& c, Kernel&) { c.lrc_max_merges = 9; }, "lrc.max_merges is 9; expected 1 to 8");
    refuses([](Config& c, Kernel&) { c.lrc_entries = 32768; }, "lrc.entries is 32768; expected 1 to 32767");
    refuses([](Config& c, Kernel&) { c.max_lines_in_flight = 16384; }, "tma.max_lines_in_flight is 16384");
    refuses([](Config& c, Kernel&) { c.line_bytes = 96; }, "l2.line_bytes is not a power of two");
    refuses([](Config& c, Kernel&) { c.line_bytes = 16; }, "l2.line_bytes is 16; expected 32 to 4096");
    refuses([](Config& c, Kernel&) { c.request_bytes = 256; }, "tma.request_bytes is not a power of two up to a line");
    refuses([](Config& c, Kernel&) { c.issue_width = 0; }, "sm.issue_width is 0; expected 1 to 4");
    refuses([](Config& c, Kernel&) { c.descriptor_cache_entries = 5000; }, "tma.descriptor_cache_entries is 5000");
    refuses([](Config&, Kernel& k) { k.ctas = 3; }, "CTAs (one a SM) is 3; expected 1 to 2");
    refuses([](Config&, Kernel& k) { k.roles = 5; }, "roles of a CTA is 5; expected 1 to 4");
    refuses([](Config&, Kernel& k) { k.cluster = 4; }, "cluster size is 4; expected 1 to 2");
    refuses([](Config&, Kernel& k) { k.rings.resize(9); }, "rings is 9; expected 0 to 8");
    refuses([](Config&, Kernel& k) { k.rings = {ring(1, 9)}; }, "stages of a ring is 9; expected 1 to 8");
    refuses([](Config&, Kernel& k) { k.programs[0] = program(arrive(16)); }, "named barrier is 16; expected 0 to 15");
    refuses([](Config&, Kernel& k) { k.programs[0] = program(await_fill(0)); }, "ring is 0; expected 0 to -1");
    refuses([](Config&, Kernel& k) { k.maps = {row_map(1, std::uint64_t{1} << 36)}; }, "is out of reach");
    // 2^31 rows of 2^33 bytes: 2^64 bytes, which 64 bits would call none.
    refuses(
        [](Config&, Kernel& k) {
            k.maps = {{.rank = 2, .dims = {1, (1LL << 31) + 1, 1, 1, 1}, .strides = {1, 1LL << 33, 0, 0, 0}}};
        },
        "tensor map #0 ends at byte address 2^62 or later");
    refuses([](Config&, Kernel& k) { k.rings = {ring(128)}, k.programs[0] = program(bulk(0, 1LL << 60, 128)); },
            "the copy of @0:0 ends at byte address 1152921504606847104");
    refuses([](Config&,
               Kernel& k) { k.rings = {ring(128)}, k.programs[0] = program(repeat(9, bulk(0, 0, 128, 1, 1LL << 33))); },
            "the copy of @0:0 ends at byte address 68719476864");
    refuses([](Config&, Kernel& k) { k.dynamic = true, k.cluster = 2; }, "dynamic schedules with clusters of 2");
    refuses([](Config&, Kernel& k) { k.programs[0].code.pop_back(); }, "a program has no end");
    refuses([](Config& c, Kernel&) { c.mshr_entries = 0; }, "l2.mshr_entries is 0; expected 1 to 65536");
    refuses([](Config& c, Kernel&) { c.ways = 2000; }, "l2.ways is 2000; expected 1 to 1024");
    refuses([](Config& c, Kernel&) { c.sets = 1 << 24; }, "lines in l2.capacity_bytes is");
    refuses([](Config& c, Kernel&) { c.ideal_latency_cycles = 0, c.near_latency_cycles = 1; },
            "crossbar.near_latency_cycles");
}

// Two SMs a side; a kernel on SM 0 reads two lines of which modulo 4 puts one on either side.
TEST(engine_reads_what_warming_left) {
    const auto read_two = [](const Config& config, const std::vector<std::uint32_t>& lines, int sm) {
        Kernel kernel = kernel_of(
            {acquire(0) + bulk(0, 0, 128) + await_fill(0) + acquire(1) + bulk(1, 2 * 128, 128) + await_fill(1)});
        kernel.rings = {ring(128, 2)};
        Engine engine(config, kernel);
        engine.warm(lines, sm);
        CHECK(engine.advance(kLong));
        return engine.totals();
    };
    Config config = small_chip();
    config.hash = static_cast<std::int32_t>(HashKind::modulo);
    config.line_bytes = 128;
    const Totals cold = read_two(config, {}, 0);
    CHECK_EQ(cold.slices.read_misses, 2);
    const Totals warm = read_two(config, {0, 2}, 0);
    CHECK_EQ(warm.slices.read_hits, 2);
    CHECK(warm.cycles + 2 * config.channel_latency_cycles <= cold.cycles);

    // With RemoteCopy the far line is found near after a read from this side, and far after one from the other.
    config.remote_copy = true;
    config.remote_copy_probability_ppm = 1000000;
    config.remote_copy_threshold_ppm = 1000000;
    const Totals copied = read_two(config, {0, 2}, 0);
    CHECK_EQ(copied.slices.shadow_hits, 1);
    CHECK_EQ(copied.slices.shadow_inserts, 0);  // of the run: warming is not counted
    const Totals other = read_two(config, {0, 2}, 3);
    CHECK_EQ(other.slices.shadow_hits, 0);
    CHECK_EQ(other.slices.hops, 1);
    CHECK_EQ(other.slices.read_hits, 2);
    CHECK_EQ(other.cycles - copied.cycles, config.far_latency_cycles - config.near_latency_cycles);
}

TEST(engine_refuses_to_warm_what_is_not_there) {
    const std::vector<std::uint32_t> line = {0};
    const std::vector<std::uint32_t> beyond = {kLineLimit};
    Engine engine(small_chip(), kernel_of({work(30)}));
    CHECK_THROWS(engine.warm(line, 4), std::invalid_argument, "no SM 4 to warm L2 for");
    CHECK_THROWS(engine.warm(beyond, 0), std::invalid_argument, "is out of reach");
    CHECK(engine.advance(kLong));
    CHECK_THROWS(engine.warm(line, 0), std::invalid_argument, "before the run only");
    Engine ideal(bare(20), kernel_of({work(30)}));
    CHECK_THROWS(ideal.warm(line, 0), std::invalid_argument, "ideal memory has no L2");
}

}  // namespace simfa
