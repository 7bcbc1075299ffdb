// Queues, directions, refresh and idle time of the controller; ticks are half clocks.
#include <algorithm>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "dram_bench.hpp"
#include "dram_fixture.hpp"

namespace simfa {

using test::burst_at;
using test::g64x;
using test::hbm3_5200;
using test::plain_map;
using test::Spot;

namespace {

DramControl control(Refresh refresh = Refresh::none) {
    return {.read_queue_entries = 10, .write_queue_entries = 10, .opened_entries = 0, .refresh = refresh};
}

class Bench {
  public:
    explicit Bench(const DramControl& control, const DramTiming& timing = hbm3_5200())
        : controller({}, timing, control) {}

    void push(const Spot& spot, bool write = false, std::uint32_t id = 0) {
        controller.push(map_.place(burst_at(spot)), write, now, id);
    }
    void advance(Tick to) {
        now = to;
        controller.advance(now);
    }
    // Runs until nothing is left to do; returns the last completion of each id.
    std::vector<Tick> finish() {
        while (controller.next_event() != DramController::kNeverTick) advance(std::max(now, controller.next_event()));
        std::vector<Tick> ticks;
        for (const auto& done : controller.done()) {
            if (ticks.size() <= done.id) ticks.resize(done.id + std::size_t{1});
            ticks[done.id] = std::max(ticks[done.id], done.tick);
        }
        controller.done().clear();
        return ticks;
    }

    DramController controller;
    Tick now = 0;

  private:
    AddressMap map_ = plain_map();
};

double fraction_of_peak(const DramBenchResult& result) {
    return static_cast<double>(result.stats.reads + result.stats.writes) * 2.0 / static_cast<double>(result.ticks);
}

DramBenchResult stream(const DramControl& control, std::uint32_t count = 100000) {
    std::vector<std::uint32_t> bursts;
    for (std::uint32_t i = 0; i < count; ++i) bursts.push_back(i);
    return run_dram_bench({}, hbm3_5200(), control, g64x(), bursts, std::vector<std::uint8_t>(count, 0));
}

}  // namespace

// Three rows of a bank: the burst of the open row goes before an older one of another row.
TEST(dram_hits_go_first) {
    Bench bench(control());
    bench.push({.row = 1, .column = 0}, false, 0);
    bench.push({.row = 2, .column = 0}, false, 1);
    bench.push({.row = 1, .column = 1}, false, 2);
    const std::vector<Tick> ticks = bench.finish();
    // Row 1: first edge 0, last edge 2, reads at 2 + 52 and 4 clocks later; data 34 + 4 ticks after, controller 1.
    CHECK_EQ(ticks[0], 54 + 38 + 1);
    CHECK_EQ(ticks[2], 62 + 38 + 1);
    // Precharge at 78 (nRTP after the read at 62; nRAS after 2 is 76), activate at 78 + 44, read at 122 + 52.
    CHECK_EQ(ticks[1], 174 + 38 + 1);
    CHECK_EQ(bench.controller.stats().activates, 2);
}

// With a cap of one burst the older row is served second.
TEST(dram_row_hit_cap_limits_reordering) {
    DramControl capped = control();
    capped.row_hit_cap = 1;
    Bench bench(capped);
    bench.push({.row = 1, .column = 0}, false, 0);
    bench.push({.row = 2, .column = 0}, false, 1);
    bench.push({.row = 1, .column = 1}, false, 2);
    const std::vector<Tick> ticks = bench.finish();
    CHECK(ticks[0] < ticks[1]);
    CHECK(ticks[1] < ticks[2]);
    CHECK_EQ(bench.controller.stats().activates, 3);
}

// A row closed early costs no precharge later: 46.5 instead of 67.5 clocks.
TEST(dram_closed_policy_closes_rows_nobody_waits_for) {
    DramControl closed = control();
    closed.row_policy = RowPolicy::closed;
    Bench bench(closed);
    bench.push({.row = 1});
    bench.finish();
    bench.advance(2000);
    bench.push({.row = 2});
    CHECK_EQ(bench.finish()[0], 2000 + 93);
}

TEST(dram_queues_are_bounded) {
    Bench bench(control());
    CHECK(bench.controller.accepts(false, 10));
    CHECK(!bench.controller.accepts(false, 11));
    for (std::uint32_t i = 0; i < 10; ++i) bench.push({.row = i, .bank = 1});
    CHECK(!bench.controller.accepts(false, 1));
    CHECK(bench.controller.accepts(true, 10));
    bench.finish();
    CHECK(bench.controller.accepts(false, 10));
}

// A burst for which a row was opened waits apart and gives its place back.
TEST(dram_opened_bursts_leave_the_queue) {
    DramControl apart = control();
    apart.read_queue_entries = 1;
    apart.opened_entries = 1;
    Bench bench(apart);
    bench.push({.row = 1});
    CHECK(!bench.controller.accepts(false, 1));
    bench.advance(0);
    CHECK(bench.controller.accepts(false, 1));
    bench.push({.row = 1, .bank = 1}, false, 1);
    bench.advance(40);
    CHECK(!bench.controller.accepts(false, 1));
    CHECK_EQ(bench.finish().size(), 2U);
}

TEST(dram_reads_find_waiting_writes) {
    Bench bench(control());
    bench.push({.row = 7}, false, 0);  // keeps the direction at reads
    bench.push({.row = 3, .column = 5}, true);
    bench.push({.row = 3, .column = 5}, true);
    bench.push({.row = 3, .column = 5}, false, 1);
    bench.push({.row = 3, .column = 6}, false, 2);
    const std::vector<Tick> ticks = bench.finish();
    CHECK_EQ(ticks[1], 1);
    CHECK(ticks[2] > 100);
    CHECK_EQ(bench.controller.stats().forwarded_reads, 1);
    CHECK_EQ(bench.controller.stats().absorbed_writes, 1);
    CHECK_EQ(bench.controller.stats().reads, 2);
    CHECK_EQ(bench.controller.stats().writes, 1);
}

// Ten places: nine writes turn the direction, one is left when reads go on (below two).
TEST(dram_writes_drain_between_two_marks) {
    Bench bench(control());
    for (std::uint32_t i = 0; i < 9; ++i) bench.push({.row = 5, .column = i}, false, 0);
    for (std::uint32_t i = 0; i < 8; ++i) bench.push({.row = 6, .bank = 1, .column = i}, true);
    bench.advance(60);
    CHECK_EQ(bench.controller.stats().drains, 0);
    bench.push({.row = 6, .bank = 1, .column = 8}, true);
    CHECK_EQ(bench.controller.stats().drains, 1);
    const std::int64_t reads = bench.controller.stats().reads;
    while (bench.controller.stats().writes < 8) bench.advance(bench.controller.next_event());
    CHECK_EQ(bench.controller.stats().reads, reads);
    while (bench.controller.stats().reads < 9) bench.advance(bench.controller.next_event());
    CHECK_EQ(bench.controller.stats().writes, 8);
    bench.finish();
    CHECK_EQ(bench.controller.stats().writes, 9);
    CHECK_EQ(bench.controller.stats().drains, 2);
}

// Write to read: the read waits for the write's data and nWTRL; read to write: nRTW.
TEST(dram_bus_turnaround) {
    Bench bench(control());
    bench.push({.row = 1}, true);
    bench.advance(28);
    bench.push({.row = 1, .column = 1}, false, 0);
    // Activate last edge 2; write at 2 + 26; read at 28 + 18 + 4 + 18; data 38 later, controller 1.
    CHECK_EQ(bench.finish()[0], 68 + 38 + 1);
    Bench other(control());
    other.push({.row = 1}, false, 0);
    other.push({.row = 1, .column = 1}, true);
    other.finish();
    // Read at 54, write 34 later, data until 88 + 18 + 4.
    CHECK_EQ(other.controller.last_data(), 110);
}

// All banks closed, refreshed, reopened. The refresh due at 10140 starts at once, as the row was open for long.
TEST(dram_all_bank_refresh_stops_its_pseudo_channel) {
    Bench bench(control(Refresh::all_bank));
    bench.push({.row = 1});
    bench.finish();
    bench.advance(10145);
    bench.push({.row = 1});
    // Precharge at 10140, refresh 44 later, 910 long: last edge of the activate at 11094; read 52, data 38,
    // controller 1.
    CHECK_EQ(bench.finish()[0], 11094 + 52 + 38 + 1);
    CHECK_EQ(bench.controller.stats().refreshes, 2);  // both pseudo channels
}

// Per-bank refresh (nRFCpb 260, every 159 clocks) leaves a stream nearly all of the bus.
TEST(dram_per_bank_refresh_does_not_stall_the_channel) {
    DramControl deep = control(Refresh::per_bank);
    deep.read_queue_entries = 256;
    deep.opened_entries = 32;
    CHECK(fraction_of_peak(stream(deep)) > 0.96);
    Bench bench(control(Refresh::per_bank));
    bench.advance(318);  // the first bank is refreshed
    bench.push({.row = 1, .bank = 1}, false, 0);
    bench.push({.row = 1, .bank = 0}, false, 1);
    const std::vector<Tick> ticks = bench.finish();
    CHECK(ticks[0] < 318 + 110);
    CHECK_EQ(ticks[1], 318 + 520 + 52 + 38 + 1);
}

// Idle time is skipped: after it, everything is as if each refresh had been issued at its time.
TEST(dram_idle_time_leaves_the_same_state) {
    for (const Refresh refresh : {Refresh::all_bank, Refresh::per_bank})
        for (const Tick pause : {5000, 30000, 123456, 1000003}) {
            Bench skipping(control(refresh));
            Bench stepping(control(refresh));
            for (Bench* bench : {&skipping, &stepping}) {
                bench->push({.row = 1});
                bench->finish();
            }
            for (Tick tick = stepping.now; tick < pause; tick += 97) stepping.advance(tick);
            for (Bench* bench : {&skipping, &stepping}) {
                bench->advance(pause);
                for (std::uint32_t i = 0; i < 8; ++i)
                    bench->push({.row = 1, .bank = i / 4, .bank_group = i % 4}, false, i);
            }
            CHECK(skipping.finish() == stepping.finish());
            CHECK(skipping.controller.stats() == stepping.controller.stats());
        }
}

// One burst in ten belongs to ECC: the full bus moves 1 / 1.1 of the data.
TEST(dram_ecc_takes_bus_time) {
    DramControl ecc = control();
    ecc.read_queue_entries = 128;
    const double without = fraction_of_peak(stream(ecc));
    ecc.ecc_overhead_ppm = 100000;
    const double with = fraction_of_peak(stream(ecc));
    CHECK(with < without / 1.09 && with > without / 1.12);
}

TEST(dram_serves_every_burst_once) {
    std::mt19937 random(11);
    for (const Refresh refresh : {Refresh::none, Refresh::all_bank, Refresh::per_bank})
        for (const RowPolicy policy : {RowPolicy::open, RowPolicy::closed})
            for (const int cap : {0, 4}) {
                DramControl settings = control(refresh);
                settings.row_policy = policy;
                settings.row_hit_cap = cap;
                settings.opened_entries = 5;
                std::vector<std::uint32_t> bursts;
                std::vector<std::uint8_t> writes;
                std::int64_t reads = 0;
                for (int i = 0; i < 4000; ++i) {
                    bursts.push_back(random() % 4 == 0 ? random() % (1U << 25) : random() % 20000);
                    writes.push_back(random() % 3 == 0);
                    reads += writes.back() == 0 ? 1 : 0;
                }
                const DramBenchResult result = run_dram_bench({}, hbm3_5200(), settings, g64x(), bursts, writes);
                CHECK_EQ(result.reads, reads);
                CHECK_EQ(result.stats.reads + result.stats.forwarded_reads, reads);
                CHECK_EQ(result.stats.writes + result.stats.absorbed_writes, 4000 - reads);
                CHECK(result.stats.activates > 0);
                CHECK_EQ(result.stats.refreshes > 0, refresh != Refresh::none);
            }
}

TEST(dram_refuses_impossible_values) {
    const auto build = [](auto change) {
        DramControl settings = control(Refresh::all_bank);
        change(settings);
        return DramController({}, hbm3_5200(), settings);
    };
    CHECK_THROWS(build([](DramControl& c) { c.read_queue_entries = 0; }), std::invalid_argument, "queue entries");
    CHECK_THROWS(build([](DramControl& c) { c.drain_below_percent = 90; }), std::invalid_argument, "drain_below");
    CHECK_THROWS(build([](DramControl& c) { c.ecc_overhead_ppm = -1; }), std::invalid_argument, "ecc_overhead");
    DramTiming timing = hbm3_5200();
    timing.refresh_interval = timing.refresh_all;
    CHECK_THROWS(DramController({}, timing, control(Refresh::all_bank)), std::invalid_argument, "nREFI");
}

}  // namespace simfa
