#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "slice_bench.hpp"

namespace simfa {

using test::Answer;
using test::SliceBench;
using test::small_memory;
using test::small_slice;

namespace {

// Lines of slice 0 (modulo hash): 0, 80, 160, ...; every fourth shares a set.
std::uint32_t line(std::uint32_t local) { return 80 * local; }

std::vector<Cycle> cycles_of(const std::vector<Answer>& answers) {
    std::vector<Cycle> cycles;
    for (const Answer& answer : answers) cycles.push_back(answer.cycle);
    return cycles;
}

void check_cycles(const std::vector<Answer>& answers, const std::vector<Cycle>& expected, const char* file, int at) {
    const std::vector<Cycle> cycles = cycles_of(answers);
    test::check_equal(cycles.size(), expected.size(), "answers", file, at);
    for (std::size_t i = 0; i < cycles.size() && i < expected.size(); ++i)
        test::check_equal(cycles[i], expected[i], ("answer " + std::to_string(i)).c_str(), file, at);
}

#define CHECK_CYCLES(answers, ...) check_cycles(answers, __VA_ARGS__, __FILE__, __LINE__)

}  // namespace

// Round trips: a miss adds the memory's latency to the near (20) or far (32) hit. Pair 0 is near slice 0, pair 3 far.
TEST(slice_unloaded_round_trips) {
    SliceBench bench(small_slice());
    bench.read(1000, 0, line(0), 0);
    bench.read(2000, 0, line(0), 1);
    bench.read(3000, 3, line(0), 2);
    bench.read(4000, 3, line(1), 3);
    const auto answers = bench.run();
    CHECK_CYCLES(answers, {1000 + 20 + 100, 2000 + 20, 3000 + 32, 4000 + 32 + 100});
    for (const Answer& answer : answers) CHECK_EQ(answer.kind, static_cast<int>(read_response));
}

TEST(slice_odd_latencies_add_up) {
    SliceConfig config = small_slice();
    config.near_latency_cycles = 259;
    config.far_latency_cycles = 415;
    SliceBench bench(config);
    bench.write(0, 0, line(0), 0);
    bench.read(1000, 0, line(0), 1);
    bench.read(2000, 3, line(0), 2);
    CHECK_CYCLES(bench.run(), {259, 1259, 2415});
}

// Six hits that arrive together are served every second cycle, in order.
TEST(slice_serves_one_request_an_interval) {
    SliceBench bench(small_slice());
    bench.write(0, 0, line(0), 0);
    for (int i = 1; i <= 6; ++i) bench.send(1000, 0, 0, read_request, line(0), i);
    const auto answers = bench.run();
    CHECK_CYCLES(answers, {20, 1010, 1012, 1014, 1016, 1018, 1020});
    for (int i = 1; i <= 6; ++i) CHECK_EQ(answers[static_cast<std::size_t>(i)].tag, i);
    const SliceStats stats = bench.slice(0).stats();
    CHECK_EQ(stats.read_hits, 6);
    CHECK_EQ(stats.request_queue_peak, 4);
    CHECK_EQ(stats.requests_peak, 7);
    CHECK_EQ(stats.staging_longest_cycles, 2);
    // Waits 0, 2, 4, 6, 8, 10. Four entries: request 5 enters at 1000, when 1 leaves, request 6 at 1002.
    CHECK_EQ(stats.staging_cycles, 2);
    CHECK_EQ(stats.request_queue_cycles, 28);
}

// Three pairs wait for one line; a fourth request finds the entry full and waits for the fill at 1110.
TEST(slice_merges_reads_of_an_outstanding_line) {
    SliceBench bench(small_slice());
    for (int i = 0; i < 4; ++i) bench.send(1010, 0, 0, read_request, line(0), i);
    CHECK_CYCLES(bench.run(), {1120, 1122, 1124, 1126});
    const SliceStats stats = bench.slice(0).stats();
    CHECK_EQ(stats.read_misses, 1);
    CHECK_EQ(stats.read_merges, 2);
    CHECK_EQ(stats.read_hits, 1);
    CHECK_EQ(stats.memory_reads, 1);
    CHECK_EQ(stats.blocked_cycles[static_cast<std::size_t>(Blocked::mshr_merges)], 1110 - 1016);
    CHECK_EQ(stats.mshr_cycles, 100);
    CHECK_EQ(stats.mshr_peak, 1);
}

// Four entries, five lines: misses at 1010, 1012, 1014, 1016; the fifth at 1110, when the first entry is free. Memory
// starts a line every 5 cycles: 1010, 1015, 1020, 1025.
TEST(slice_waits_for_a_free_mshr) {
    SliceBench bench(small_slice());
    for (int i = 0; i < 5; ++i) bench.send(1010, 0, 0, read_request, line(static_cast<std::uint32_t>(i)), i);
    CHECK_CYCLES(bench.run(), {1120, 1125, 1130, 1135, 1220});
    const SliceStats stats = bench.slice(0).stats();
    CHECK_EQ(stats.blocked_cycles[static_cast<std::size_t>(Blocked::mshr_entries)], 1110 - 1018);
    CHECK_EQ(stats.mshr_peak, 4);
}

// A fill with 12 waiting requests goes out one an interval; a hit behind it waits until the response queue (8) has
// room: answers leave at 1110, 1112, ... 1132; the hit, in the queue from 1118 on (7 before it left, 8 wait), at 1134.
TEST(slice_response_queue_holds_requests_back) {
    SliceConfig config = small_slice();
    config.mshr_merges = 12;
    SliceBench bench(config);
    bench.write(0, 0, line(1), 99);
    for (int i = 0; i < 12; ++i) bench.send(1010, 0, 0, read_request, line(0), i);
    bench.send(1111, 0, 0, read_request, line(1), 12);
    bench.send(1111, 0, 0, read_request, line(2), 13);
    const auto answers = bench.run();
    CHECK_EQ(answers.size(), 15U);
    for (int i = 0; i <= 12; ++i) CHECK_EQ(answers[static_cast<std::size_t>(i) + 1].cycle, 1120 + 2 * i);
    CHECK_EQ(answers[13].tag, 12);
    const SliceStats stats = bench.slice(0).stats();
    CHECK_EQ(stats.response_queue_peak, 8);
    CHECK_EQ(stats.blocked_cycles[static_cast<std::size_t>(Blocked::response_queue)], 1118 - 1111);
    // The entry is free once its last answer (the twelfth) is in the queue, with 8 ahead of it: at 1116.
    CHECK_EQ(answers[14].cycle, 1120 + 100 + 10);
}

// Writes need no fetch; a fifth dirty line of a set replaces the first, which is written back.
TEST(slice_writes_allocate_without_a_fetch_and_are_written_back) {
    SliceBench bench(small_slice());
    for (int i = 0; i < 5; ++i) bench.write(100 * i, 0, line(4 * static_cast<std::uint32_t>(i)), i);
    const auto answers = bench.run();
    CHECK_CYCLES(answers, {20, 120, 220, 320, 420});
    for (const Answer& answer : answers) CHECK_EQ(answer.kind, static_cast<int>(write_ack));
    bench.read(1000, 0, line(4), 5);
    bench.read(2000, 0, line(0), 6);
    CHECK_CYCLES(bench.run(), {1020, 2120});
    const SliceStats stats = bench.slice(0).stats();
    CHECK_EQ(stats.memory_reads, 1);
    CHECK_EQ(stats.memory_writes, 2);  // line 0, then line 8 when line 0 came back (line 4 was just used)
    CHECK_EQ(stats.write_requests, 5);
}

// A read, a write and a read of one line in order: one fetch, answers in order, and the line is dirty.
TEST(slice_write_to_an_outstanding_line_keeps_its_turn) {
    SliceBench bench(small_slice());
    bench.send(10, 0, 0, read_request, line(0), 0);
    bench.send(20, 1, 0, write_request, line(0), 1);
    bench.send(30, 0, 0, read_request, line(0), 2);
    const auto answers = bench.run();
    CHECK_CYCLES(answers, {120, 122, 124});
    CHECK_EQ(answers[1].kind, static_cast<int>(write_ack));
    for (int i = 1; i <= 4; ++i) bench.read(1000 * i, 0, line(4 * static_cast<std::uint32_t>(i)), i);
    bench.run();
    const SliceStats stats = bench.slice(0).stats();
    CHECK_EQ(stats.memory_reads, 5);
    CHECK_EQ(stats.memory_writes, 1);
    CHECK_EQ(stats.read_merges, 1);
}

// One place in the memory's queue, 5 cycles a line: the write-back of line 0 starts at 410, that of line 4 waits for it
// until 415, and the next miss, at 414, waits with it.
TEST(slice_misses_wait_behind_write_backs) {
    SimpleChannelConfig memory = small_memory();
    memory.write_queue_entries = 1;
    SliceBench bench(small_slice(), memory);
    for (int i = 0; i < 4; ++i) bench.write(100 * i, 0, line(4 * static_cast<std::uint32_t>(i)), i);
    bench.send(410, 0, 0, write_request, line(16), 4);
    bench.send(410, 0, 0, write_request, line(20), 5);
    bench.send(410, 0, 0, read_request, line(1), 6);
    const auto answers = bench.run();
    CHECK_CYCLES(answers, {20, 120, 220, 320, 420, 422, 415 + 5 + 100 + 10});
    const SliceStats stats = bench.slice(0).stats();
    CHECK_EQ(stats.blocked_cycles[static_cast<std::size_t>(Blocked::write_backs)], 1);
}

TEST(slice_keeps_a_set_of_lines_as_large_as_itself) {
    for (const HashKind kind : {HashKind::xor_shift, HashKind::modulo, HashKind::strong}) {
        SliceConfig config = small_slice();
        config.hash = kind;
        config.slices = 8;
        config.mshr_entries = 64;
        SliceBench bench(config);
        const int lines = 8 * 4 * 4;
        for (int pass = 0; pass < 2; ++pass)
            for (int i = 0; i < lines; ++i) bench.read(10000 * pass + 20 * i, 0, static_cast<std::uint32_t>(i), i);
        bench.run();
        CHECK_EQ(bench.total().read_misses, lines);
        CHECK_EQ(bench.total().read_hits, lines);
    }
}

TEST(slice_refuses_impossible_values) {
    const auto build = [](auto change) {
        SliceConfig config = small_slice();
        change(config);
        return Slice(config, std::make_unique<SimpleChannel>(small_memory()));
    };
    CHECK_THROWS(build([](SliceConfig& c) { c.mshr_entries = 0; }), std::invalid_argument, "l2.mshr_entries");
    CHECK_THROWS(build([](SliceConfig& c) { c.mshr_merges = 0; }), std::invalid_argument, "l2.mshr_merges");
    CHECK_THROWS(build([](SliceConfig& c) { c.request_queue_entries = 0; }), std::invalid_argument, "request_queue");
    CHECK_THROWS(build([](SliceConfig& c) { c.response_queue_entries = 0; }), std::invalid_argument, "response_queue");
    CHECK_THROWS(build([](SliceConfig& c) { c.near_latency_cycles = 1; }), std::invalid_argument, "near_latency");
    CHECK_THROWS(build([](SliceConfig& c) { c.far_latency_cycles = 19; }), std::invalid_argument, "far_latency");
    CHECK_THROWS(build([](SliceConfig& c) { c.service_interval_cycles = 0; }), std::invalid_argument,
                 "bytes_per_cycle");
}

TEST(slice_refuses_lines_of_other_slices) {
    SliceBench bench(small_slice());
    bench.send(10, 0, 1, read_request, line(0), 0);
    CHECK_THROWS(bench.run(), std::logic_error, "line 0 of slice 0 was sent to slice 1");
}

}  // namespace simfa
