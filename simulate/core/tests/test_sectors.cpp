// Parts of lines in a slice, its response port and the coalescer, by cycles computed by hand.
#include <deque>
#include <random>
#include <vector>

#include "check.hpp"
#include "lrc.hpp"
#include "response_port.hpp"
#include "slice_bench.hpp"

namespace simfa {

using test::Answer;
using test::SliceBench;
using test::small_memory;
using test::small_slice;

namespace {

// Lines of slice 0 (modulo hash); every fourth shares a set.
std::uint32_t line(std::uint32_t local) { return 80 * local; }

// Lines of four sectors, two of which are read from memory at least. A line passes in two cycles, up to half of it in
// one; memory serves it in five cycles.
SliceConfig four_sectors() {
    SliceConfig config = small_slice();
    config.sectors = 4;
    config.fetch_sectors = 2;
    return config;
}

SimpleChannelConfig memory_of_sectors() {
    SimpleChannelConfig memory = small_memory();
    memory.sectors = 4;
    return memory;
}

void check_cycles(const std::vector<Answer>& answers, const std::vector<Cycle>& expected, int at) {
    test::check_equal(answers.size(), expected.size(), "answers", __FILE__, at);
    for (std::size_t i = 0; i < answers.size() && i < expected.size(); ++i)
        test::check_equal(answers[i].cycle, expected[i], ("answer " + std::to_string(i)).c_str(), __FILE__, at);
}
#define CHECK_CYCLES(answers, ...) check_cycles(answers, __VA_ARGS__, __LINE__)

}  // namespace

TEST(sectors_group_and_count) {
    CHECK_EQ(sector_run(1, 3), 0xEU);
    CHECK_EQ(sector_count(0xB), 3);
    CHECK_EQ(whole_groups(0x5, 1), 0x5U);
    CHECK_EQ(whole_groups(0x4, 2), 0xCU);
    CHECK_EQ(whole_groups(0x9, 2), 0xFU);
    CHECK_EQ(whole_groups(0x20, 8), 0xFFU);
    CHECK_EQ(SectorCycles(4, 4).of(0x8), 1);
    CHECK_EQ(SectorCycles(3, 4).of(0x6), 2);  // 1.5
    CHECK_EQ(SectorCycles(1, 4).of(0x1), 1);
}

// A miss reads the pair of sectors it needs one of; what lies beside it is then there, the rest of the line is not.
TEST(slice_reads_from_memory_what_is_missing) {
    SliceBench bench(four_sectors(), memory_of_sectors());
    bench.read(1000, 0, line(0), 0, 0x1);
    bench.read(2000, 0, line(0), 1, 0x2);
    bench.read(3000, 0, line(0), 2, 0xF);
    bench.read(4000, 0, line(0), 3, 0xF);
    CHECK_CYCLES(bench.run(), {1120, 2020, 3120, 4020});
    const SliceStats stats = bench.slice(0).stats();
    CHECK_EQ(stats.read_misses, 2);
    CHECK_EQ(stats.read_hits, 2);
    CHECK_EQ(stats.memory_reads, 2);
    CHECK_EQ(stats.memory_read_sectors, 4);
}

// Hits for two sectors or fewer are served and sent every cycle, for three or four every second one.
TEST(slice_serves_parts_at_the_rate_of_their_bytes) {
    SliceBench bench(four_sectors(), memory_of_sectors());
    bench.write(0, 0, line(0), 0);
    const SectorMask asked[] = {0x1, 0x6, 0xF, 0x7, 0x8, 0xF};
    for (int i = 0; i < 6; ++i) bench.send(1000, 0, 0, read_request, line(0), i + 1, asked[i]);
    // Served at 1000, 1001, 1002, 1004, 1006, 1007; each goes out when it is served.
    CHECK_CYCLES(bench.run(), {20, 1010, 1011, 1012, 1014, 1016, 1017});
    CHECK_EQ(bench.slice(0).stats().response_queue_cycles, 0);
}

// 1010: sectors 0 and 1 leave memory's server at 1012.5. 1011: sector 1 is on its way. 1012: of a whole line two
// sectors are on their way, the others are read from 1012.5 on and come at 1113.
TEST(slice_merges_what_an_entry_covers_and_reads_the_rest) {
    SliceBench bench(four_sectors(), memory_of_sectors());
    bench.send(1010, 0, 0, read_request, line(0), 0, 0x1);
    bench.send(1010, 0, 0, read_request, line(0), 1, 0x2);
    bench.send(1010, 0, 0, read_request, line(0), 2, 0xF);
    bench.send(1010, 0, 0, read_request, line(0), 3, 0xC);
    CHECK_CYCLES(bench.run(), {1120, 1121, 1123, 1125});
    const SliceStats stats = bench.slice(0).stats();
    CHECK_EQ(stats.read_misses, 2);
    CHECK_EQ(stats.read_merges, 2);
    CHECK_EQ(stats.mshr_peak, 2);
    CHECK_EQ(stats.memory_read_sectors, 4);
}

// Sectors written are there and dirty; they alone are written back.
TEST(slice_writes_back_dirty_sectors) {
    SliceBench bench(four_sectors(), memory_of_sectors());
    bench.write(0, 0, line(0), 0, 0x4);
    bench.read(1000, 0, line(0), 1, 0x4);
    bench.read(2000, 0, line(0), 2, 0x1);
    bench.write(3000, 0, line(0), 3, 0x1);
    CHECK_CYCLES(bench.run(), {20, 1020, 2120, 3020});
    for (std::uint32_t i = 1; i <= 4; ++i) bench.read(10000 + 1000 * i, 0, line(4 * i), 3 + static_cast<int>(i));
    bench.run();
    const SliceStats stats = bench.slice(0).stats();
    CHECK_EQ(stats.memory_writes, 1);
    CHECK_EQ(stats.memory_write_sectors, 2);
    CHECK_EQ(stats.memory_read_sectors, 2 + 4 * 4);
}

// A write that finds sectors of an absent line on their way waits for them, and what it writes is dirty then.
TEST(slice_write_of_a_part_waits_for_an_outstanding_line) {
    SliceBench bench(four_sectors(), memory_of_sectors());
    bench.send(10, 0, 0, read_request, line(0), 0, 0x1);
    bench.send(20, 0, 0, write_request, line(0), 1, 0x8);
    CHECK_CYCLES(bench.run(), {120, 121});
    bench.read(1000, 0, line(0), 2, 0x9);
    CHECK_CYCLES(bench.run(), {1020});
    for (std::uint32_t i = 1; i <= 4; ++i) bench.read(10000 + 1000 * i, 0, line(4 * i), 2 + static_cast<int>(i));
    bench.run();
    CHECK_EQ(bench.slice(0).stats().memory_write_sectors, 1);
}

// The near twin keeps the sectors that came through it; another one of the line goes to the home slice.
TEST(slice_shadows_hold_the_sectors_that_came) {
    SliceConfig config = four_sectors();
    config.remote_copy = true;
    config.remote_copy_probability_ppm = 1000000;
    config.remote_copy_threshold_ppm = 1000000;
    SliceBench bench(config, memory_of_sectors());
    bench.write(0, 0, line(0), 0);
    bench.read(1000, 3, line(0), 1, 0x1);
    bench.read(2000, 3, line(0), 2, 0x1);
    bench.read(3000, 3, line(0), 3, 0x2);
    bench.read(4000, 3, line(0), 4, 0x3);
    CHECK_CYCLES(bench.run(), {20, 1032, 2020, 3032, 4020});
    CHECK_EQ(bench.total().shadow_hits, 2);
    CHECK_EQ(bench.total().shadow_inserts, 1);
}

// A plain list of departures does the same.
TEST(response_port_agrees_with_a_list) {
    std::mt19937 random(7);
    for (int round = 0; round < 20; ++round) {
        ResponsePort port(5, 4);
        std::deque<Cycle> waiting;
        Cycle free = 0;
        std::int64_t peak = 0;
        Cycle now = 100;
        for (int step = 0; step < 300; ++step) {
            now += random() % 8;
            while (!waiting.empty() && waiting.front() <= now) waiting.pop_front();
            CHECK_EQ(port.room_cycle() <= now, waiting.size() < 5);
            if (waiting.size() >= 5) {
                CHECK_EQ(port.room_cycle(), waiting.front());
                continue;
            }
            const Cycle cycles = step < 100 || random() % 2 == 0 ? 4 : 1 + random() % 3;
            const Cycle departure = std::max(now, free);
            free = departure + cycles;
            CHECK_EQ(port.send(now, cycles), departure);
            if (departure > now) waiting.push_back(departure);
            peak = std::max(peak, static_cast<std::int64_t>(waiting.size()));
            const Cycle later = now + 1 + random() % 6;
            std::int64_t left = 0;
            for (const Cycle cycle : waiting) left += cycle >= later;
            CHECK_EQ(port.waiting(later), left);
            CHECK_EQ(port.peak(), peak);
        }
    }
}

// A read joins one that asks for all it needs, and is found again by what it asked for.
TEST(lrc_joins_reads_that_are_covered) {
    Config config;
    config.lrc_entries = 8;
    Lrc lrc(config);
    const Waiter low{.op = 1, .owner = 0, .target = Target::own, .sectors = 0x3};
    const Waiter high{.op = 2, .owner = 0, .target = Target::own, .sectors = 0xC};
    lrc.open(5, false, low);
    lrc.open(5, false, high);
    const auto peer = [](std::uint16_t op, std::uint8_t sectors) {
        return Waiter{.op = op, .owner = 1, .target = Target::own, .sectors = sectors};
    };
    CHECK(lrc.join(5, peer(10, 0x8), 0) == Lrc::Found::joined);
    CHECK(lrc.join(5, peer(11, 0x6), 0) == Lrc::Found::none);
    CHECK(lrc.join(5, peer(12, 0x1), 0) == Lrc::Found::joined);
    const auto first = lrc.close(5, false, high, 10);
    CHECK_EQ(first.size(), 1U);
    CHECK_EQ(first[0].op, 10);
    const auto second = lrc.close(5, false, low, 20);
    CHECK_EQ(second.size(), 1U);
    CHECK_EQ(second[0].op, 12);
    CHECK_EQ(lrc.outstanding(), 0);
}

}  // namespace simfa
