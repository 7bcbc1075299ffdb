#include <string>
#include <vector>

#include "check.hpp"
#include "sm_bench.hpp"

namespace simfa {

namespace {

using test::PortBench;

// Four slices, two on each side; line l belongs to slice l mod 4. Near 20 cycles, far 32: requests take 10 and 16.
Config small_crossbar() {
    Config config = test::bare();
    config.slices = 4;
    config.hash = static_cast<std::int32_t>(HashKind::modulo);
    config.near_latency_cycles = 20;
    config.far_latency_cycles = 32;
    return config;
}

// Slices answer all at once, at `cycle`.
PortBench::Answer all_at(Cycle cycle) {
    return [cycle](const PortBench::Request&) { return cycle; };
}

std::string slices_of(const PortBench& bench) {
    std::string text;
    for (const PortBench::Request& request : bench.requests) test::add_word(text, request.slice);
    return text;
}

}  // namespace

// A copy issued at 0 starts at 1 and sends a line a cycle. Slices 0 and 1 are near pair 0, 2 and 3 near pair 1.
TEST(memory_port_near_and_far_requests) {
    PortBench near(small_crossbar());
    near.copy(0, 0, 0, 4 * 128);
    near.run(100);
    CHECK_EQ(near.arrivals(), "11:0 12:1 19:2 20:3");
    CHECK_EQ(slices_of(near), "0 1 2 3");
    PortBench far(small_crossbar(), {}, 1);
    far.copy(0, 0, 0, 4 * 128);
    far.run(100);
    CHECK_EQ(far.arrivals(), "13:2 14:3 17:0 18:1");
    CHECK_EQ(far.requests[0].message.source, 1);
    CHECK_EQ(far.stats.l2_read_requests, 4);
}

// With remote copies a far read is sent to the twin of its slice on the near side. Writes go to their home.
TEST(memory_port_remote_copy_asks_the_near_twin) {
    Config config = small_crossbar();
    config.remote_copy = true;
    PortBench bench(config, {test::row_map(4)});
    bench.load(0, 0, 0);
    bench.store(0, 20, 0);
    bench.run(100);
    CHECK_EQ(slices_of(bench), "0 1 0 1 0 1 2 3");
    CHECK_EQ(bench.arrivals(), "11:0 12:1 13:2 14:3 31:0 32:1 39:2 40:3");
    CHECK_EQ(static_cast<int>(bench.requests[6].message.kind), static_cast<int>(write_request));
}

// Five lines answered at 50; two a cycle pass the port: 2 at 50, 2 at 51, 1 at 52.
TEST(memory_port_delivers_at_the_port_rate) {
    Config config = small_crossbar();
    config.port_lines_per_cycle = 2;
    PortBench bench(config);
    bench.copy(0, 0, 0, 5 * 128);
    bench.run(60, all_at(50));
    CHECK_EQ(bench.in_flight[0][49], 5);
    CHECK_EQ(bench.in_flight[0][50], 3);
    CHECK_EQ(bench.in_flight[0][51], 1);
    CHECK_EQ(bench.in_flight[0][52], 0);
    CHECK_EQ(bench.loads(0), "1-52");
}

// A port of a quarter line a cycle: 50, 54, 58; a line that comes later finds it busy until 62.
TEST(memory_port_slow_ports_take_several_cycles_a_line) {
    Config config = small_crossbar();
    config.port_cycles_per_line = 4;
    PortBench bench(config);
    bench.copy(0, 0, 0, 3 * 128);
    bench.copy(0, 1, 4096, 128);
    bench.run(100, [](const PortBench::Request& request) { return request.message.line < 3 ? Cycle{50} : Cycle{60}; });
    CHECK_EQ(bench.loads(0), "1-58 3-62");
}

// The two SMs of a pair have a port each.
TEST(memory_port_serves_each_sm_on_its_own) {
    PortBench bench(small_crossbar());
    bench.copy(0, 0, 0, 3 * 128);
    bench.copy(1, 0, 4096, 3 * 128);
    bench.run(100, all_at(50));
    CHECK_EQ(bench.loads(0), "1-52");
    CHECK_EQ(bench.loads(1), "1-52");
}

// Both SMs read line 0 in the same cycle: one request goes out, one answer serves both.
TEST(memory_port_merges_reads_of_a_pair) {
    PortBench bench(small_crossbar());
    bench.copy(0, 0, 0, 128);
    bench.copy(1, 0, 0, 128);
    bench.run(100, all_at(50));
    CHECK_EQ(bench.arrivals(), "11:0");
    CHECK_EQ(bench.stats.lrc_merges, 1);
    CHECK_EQ(bench.stats.requests, 2);
    CHECK_EQ(bench.loads(0), "1-50");
    CHECK_EQ(bench.loads(1), "1-50");
    CHECK(bench.port().quiet());
}

// Multicast is one request; the answer passes the ports of both SMs and counts in flight at the issuing one alone.
TEST(memory_port_multicast_is_one_request_for_two) {
    PortBench bench(small_crossbar(), {test::row_map(2)});
    bench.load(1, 0, 0, 0, true);
    bench.run(100, all_at(50));
    CHECK_EQ(bench.arrivals(), "11:0 12:1");
    CHECK_EQ(bench.stats.requests, 2);
    CHECK_EQ(bench.stats.read_lines, 4);
    CHECK_EQ(bench.in_flight[0][30], 0);
    CHECK_EQ(bench.in_flight[1][30], 2);
    CHECK_EQ(bench.loads(1), "1-51");
    CHECK(bench.tma(1).quiet(100));
}

// Switched off, each line is requested for the issuing SM and then for the other, at the same pace.
TEST(memory_port_split_multicast_asks_for_each_sm) {
    Config config = small_crossbar();
    config.lrc_multicast = false;
    config.lrc_enabled = false;
    PortBench bench(config, {test::row_map(2)});
    bench.load(0, 0, 0, 0, true);
    bench.run(100, all_at(50));
    CHECK_EQ(bench.arrivals(), "11:0 12:0 13:1 14:1");
    CHECK_EQ(bench.stats.requests, 4);
    CHECK_EQ(bench.stats.read_lines, 4);
    CHECK_EQ(bench.in_flight[0][30], 4);
    std::string targets;
    for (const PortBench::Request& request : bench.requests) test::add_word(targets, request.message.flags >> 1 & 3);
    CHECK_EQ(targets, "0 2 0 2");  // own, other
    CHECK_EQ(bench.loads(0), "1-51");
    CHECK(bench.tma(0).quiet(100));
}

// With the coalescer on, the second request of each line joins the first.
TEST(memory_port_split_multicast_is_merged_by_the_coalescer) {
    Config config = small_crossbar();
    config.lrc_multicast = false;
    PortBench bench(config, {test::row_map(2)});
    bench.load(0, 0, 0, 0, true);
    bench.run(100, all_at(50));
    CHECK_EQ(bench.arrivals(), "11:0 13:1");
    CHECK_EQ(bench.stats.lrc_merges, 2);
    CHECK(bench.tma(0).quiet(100));
}

// Two entries: the third line waits for the first answer (50) and goes out in the same cycle.
TEST(memory_port_full_coalescer_holds_lines_back) {
    Config config = small_crossbar();
    config.lrc_entries = 2;
    PortBench bench(config);
    bench.copy(0, 0, 0, 3 * 128);
    bench.run(100, [](const PortBench::Request& request) { return request.message.line == 0 ? Cycle{50} : Cycle{70}; });
    CHECK_EQ(bench.arrivals(), "11:0 12:1 66:2");
    CHECK_EQ(bench.stats.tma_limit_cycles, 50 - 3);
    CHECK_EQ(bench.loads(0), "1-71");  // two lines at 70, one a cycle
}

// Two entries, one of which holds its line until 70: the next line goes out at 71 although no answer comes.
TEST(memory_port_held_lines_make_room_by_themselves) {
    Config config = small_crossbar();
    config.lrc_entries = 2;
    config.lrc_hold_cycles = 20;
    PortBench bench(config);
    bench.copy(0, 0, 0, 128);
    bench.copy(0, 40, 128, 2 * 128);
    bench.run(200, [](const PortBench::Request& request) { return request.message.line == 0 ? Cycle{50} : Cycle{90}; });
    CHECK_EQ(bench.arrivals(), "11:0 51:1 87:2");
    CHECK_EQ(bench.loads(0), "1-50 41-91");
    CHECK_EQ(bench.stats.tma_limit_cycles, 71 - 42);
}

TEST(memory_port_held_lines_answer_at_once) {
    Config config = small_crossbar();
    config.lrc_hold_cycles = 20;
    PortBench bench(config);
    bench.copy(0, 0, 0, 128);
    bench.copy(1, 59, 0, 128);
    bench.copy(1, 79, 0, 128);  // too late: a request of its own
    bench.run(200, [](const PortBench::Request& request) { return request.arrival + 39; });
    CHECK_EQ(bench.in_flight[1][60], 0);  // asked for and delivered at 60
    CHECK_EQ(bench.loads(1), "80-129");
    CHECK_EQ(bench.arrivals(), "11:0 90:0");
    CHECK_EQ(bench.stats.lrc_merges, 1);
}

}  // namespace simfa
