#include <string>
#include <vector>

#include "check.hpp"
#include "sm_bench.hpp"

namespace simfa {

namespace {

using test::HostEvent;
using test::PortBench;
using test::row_map;

// All lines near, so that one sent at t reaches its slice at t + 10.
Config near_only() {
    Config config = test::bare();
    config.slices = 2;
    config.near_latency_cycles = config.far_latency_cycles = 20;
    return config;
}

Cycle after_90(const PortBench::Request& request) { return request.arrival + 90; }  // 100 after it was sent

std::string reads_asked(const PortBench& bench) {
    std::string text;
    for (const HostEvent& event : bench.host.asked)
        if (event.kind == HostEvent::Kind::read) test::add_word(text, event.cycle);
    return text;
}

}  // namespace

TEST(tma_launch_and_tensor_map_latencies) {
    Config config = near_only();
    config.tma_launch_cycles = 105;
    config.tensor_map_cycles = 60;
    config.descriptor_miss_cycles = 400;
    config.descriptor_cache_entries = 1;
    PortBench bench(config, {row_map(), row_map(1, 4096)});
    bench.copy(0, 10, 0, 128);  // 10 + 105
    bench.load(0, 1000, 0);     // 1000 + 105 + 60 + 400
    bench.load(0, 2000, 0);     // 2000 + 105 + 60: the map is known
    bench.load(0, 3000, 1);     // another map: + 400
    bench.load(0, 4000, 0);     // and the first one is forgotten
    bench.load(1, 4000, 0);     // the other engine has a cache of its own
    bench.run(6000, after_90);
    CHECK_EQ(bench.loads(0), "115-215 1565-1665 2165-2265 3565-3665 4565-4665");
    CHECK_EQ(bench.loads(1), "4565-4665");
    CHECK_EQ(bench.stats.descriptor_misses, 4);
}

// Maps 0 and 1 fit; using 0 again makes 1 the oldest, which map 2 drives out.
TEST(tma_descriptor_cache_forgets_the_least_recently_used) {
    Config config = near_only();
    config.descriptor_cache_entries = 2;
    config.descriptor_miss_cycles = 50;
    PortBench bench(config, {row_map(), row_map(), row_map()});
    Cycle cycle = 0;
    for (const int map : {0, 1, 0, 2, 0, 1}) bench.load(0, cycle += 1000, map);
    bench.run(8000, after_90);
    CHECK_EQ(bench.loads(0), "1050-1150 2050-2150 3001-3101 4050-4150 5001-5101 6050-6150");
}

// The cycle after the issue at the earliest.
TEST(tma_starts_in_the_next_cycle) {
    PortBench bench(near_only());
    bench.copy(0, 7, 0, 128);
    bench.run(200, after_90);
    CHECK_EQ(bench.loads(0), "8-108");
}

// Ten cycles between starts; a copy that is late anyway does not wait.
TEST(tma_gap_between_operations) {
    Config config = near_only();
    config.issue_gap_cycles = 10;
    PortBench bench(config);
    for (const Cycle cycle : {0, 1, 2, 50}) bench.copy(0, cycle, 128 * cycle, 128);
    bench.run(200, after_90);
    CHECK_EQ(bench.loads(0), "1-101 11-111 21-121 51-151");
}

// Operation 2 starts when operation 1 has sent its third and last line (cycle 3) and has the pacer's next turn.
TEST(tma_operations_send_their_lines_in_order) {
    PortBench bench(near_only());
    bench.copy(0, 0, 0, 3 * 128);
    bench.copy(0, 1, 1280, 2 * 128);
    bench.run(200, after_90);
    CHECK_EQ(bench.arrivals(), "11:0 12:1 13:2 14:10 15:11");
    CHECK_EQ(bench.loads(0), "1-103 3-105");
}

TEST(tma_sends_several_lines_a_cycle) {
    Config config = near_only();
    config.lines_per_cycle = 2;
    config.port_lines_per_cycle = 2;
    PortBench bench(config);
    bench.copy(0, 0, 0, 3 * 128);
    bench.copy(0, 0, 1280, 2 * 128);
    bench.run(200, after_90);
    CHECK_EQ(bench.arrivals(), "11:0 11:1 12:2 12:10 13:11");
    CHECK_EQ(bench.loads(0), "1-102 2-103");
}

TEST(tma_sends_a_line_every_few_cycles) {
    Config config = near_only();
    config.cycles_per_line = 4;
    PortBench bench(config);
    bench.copy(0, 0, 0, 2 * 128);
    bench.copy(0, 1, 1280, 128);
    bench.run(200, after_90);
    CHECK_EQ(bench.arrivals(), "11:0 15:1 19:10");
}

// Three lines may be under way; each takes 100 cycles. Lines at 1, 2, 3; then 101, 102, 103; then 201.
TEST(tma_limits_lines_in_flight) {
    Config config = near_only();
    config.max_lines_in_flight = 3;
    PortBench bench(config);
    bench.copy(0, 0, 0, 7 * 128);
    bench.run(400, after_90);
    CHECK_EQ(bench.arrivals(), "11:0 12:1 13:2 111:3 112:4 113:5 211:6");
    CHECK_EQ(bench.loads(0), "1-301");
    CHECK_EQ(bench.stats.tma_limit_cycles, (101 - 4) + (201 - 104));
    for (const int lines : bench.in_flight[0]) CHECK(lines >= 0 && lines <= 3);
}

// A copy of nothing inside the tensor is done when it starts.
TEST(tma_boxes_outside_the_tensor_complete_without_lines) {
    PortBench bench(near_only(), {row_map(4, 0, 8)});
    bench.load(0, 0, 0, 6);   // rows 6 and 7
    bench.load(0, 1, 0, 20);  // none
    bench.run(200, after_90);
    CHECK_EQ(bench.arrivals(), "11:6 12:7");
    CHECK_EQ(bench.loads(0), "1-102");
    CHECK(bench.tma(0).quiet(1000));
    CHECK_EQ(bench.stats.requests, 2);
}

// Level 0: 50 cycles from its start, one copy after the other without a line.
TEST(tma_level_0_has_a_fixed_latency) {
    Config config = near_only();
    config.tma_level = 0;
    config.level_0_latency_cycles = 50;
    config.issue_gap_cycles = 6;
    PortBench bench(config);
    bench.copy(0, 0, 0, 1 << 20);
    bench.copy(0, 0, 0, 128);
    bench.run(200);
    CHECK_EQ(bench.loads(0), "1-51 7-57");
    CHECK_EQ(bench.stats.requests, 0);
    CHECK(bench.tma(0).quiet(1000));
}

// The source of a store is read 15 cycles after its last line (3), whatever the answers do; at level 0 after its start.
TEST(tma_stores_read_shared_memory) {
    Config config = near_only();
    config.store_read_cycles = 15;
    PortBench bench(config, {row_map(3)});
    bench.store(0, 0, 0);
    bench.run(10);
    CHECK_EQ(reads_asked(bench), "18");
    CHECK_EQ(bench.stats.write_lines, 3);
    CHECK_EQ(bench.stats.read_lines, 0);
    config.tma_level = 0;
    PortBench level_0(config, {row_map(3)});
    level_0.store(0, 0, 0);
    level_0.run(10);
    CHECK_EQ(reads_asked(level_0), "16");
}

// Acknowledgements do not pass the response port: all at once at 50 end the store at 50.
TEST(tma_stores_end_with_the_last_acknowledgement) {
    PortBench bench(near_only(), {row_map(4)});
    bench.store(0, 0, 0);
    bench.run(45, [](const PortBench::Request& request) { return request.message.line == 2 ? Cycle{50} : Cycle{40}; });
    CHECK_EQ(bench.in_flight[0][44], 1);
    CHECK_EQ(bench.sm(0).end_cycle(), 0);
    bench.run(60);
    CHECK_EQ(bench.in_flight[0][50], 0);
    CHECK_EQ(bench.sm(0).end_cycle(), 50);
}

// 100 copies of 1 line, issued all at once, ten cycles apart.
TEST(tma_queue_grows) {
    Config config = near_only();
    config.issue_gap_cycles = 10;
    PortBench bench(config);
    for (int i = 0; i < 100; ++i) bench.copy(0, 0, 128 * i, 128);
    bench.run(1200, after_90);
    CHECK_EQ(bench.requests.size(), 100U);
    for (std::size_t i = 0; i < 100; ++i) {
        CHECK_EQ(bench.requests[i].message.line, i);
        CHECK_EQ(bench.requests[i].arrival, 11 + 10 * static_cast<Cycle>(i));
    }
    CHECK(bench.tma(0).quiet(1000));
}

TEST(tma_refuses_more_operations_than_it_can_number) {
    Config config = near_only();
    PortBench bench(config);
    for (int i = 0; i <= 65536; ++i) bench.copy(0, 0, 0, 128);
    CHECK_THROWS(bench.run(2), std::runtime_error, "65536 TMA operations");
}

}  // namespace simfa
