#include <algorithm>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "check.hpp"
#include "dram_channel.hpp"
#include "dram_fixture.hpp"

namespace simfa {

namespace {

constexpr SectorMask kLine = 0xF;

// 5200 Mb/s beside a 1830 MHz SM: 260 / 183 half clocks in a cycle.
DramChannelConfig beside_sm() {
    return {.organisation = {},
            .timing = test::hbm3_5200(),
            .control = {.refresh = Refresh::none},
            .ticks_numerator = 260,
            .ticks_denominator = 183,
            .path_cycles = 100,
            .map = std::make_shared<const AddressMap>(test::g64x())};
}

// Cycles at which the tokens 0, 1, ... come back.
std::vector<Cycle> completions(DramChannel& dram) {
    std::vector<Cycle> cycles;
    while (dram.next_event() != kNever) {
        const Cycle now = dram.next_event();
        dram.advance(now);
        for (std::uint32_t token = 0; dram.pop_completion(now, token);) {
            if (cycles.size() <= token) cycles.resize(token + std::size_t{1});
            cycles[token] = now;
        }
    }
    return cycles;
}

}  // namespace

// A line is two bursts in each of two bank groups. Last edges of the activates: ticks 2 and 10 (nRRDS). Reads: 54 and
// 62 (nCCDL), then 66 (nCCDS) and 74; data 38 later, controller 1: tick 113, cycle 79.5, and the path.
TEST(dram_channel_reads_a_line) {
    DramChannel dram(beside_sm());
    dram.read(0, kLine, 0, 0);
    CHECK_EQ(completions(dram)[0], 80 + 100);
}

// Two bursts of one bank group: activate at tick 2, reads at 54 and 62, the last data at 101, cycle 71.1.
TEST(dram_channel_reads_the_bursts_of_some_sectors) {
    for (const SectorMask sectors : {0x3U, 0xCU}) {
        DramChannel dram(beside_sm());
        dram.read(0, sectors, 0, 0);
        CHECK_EQ(completions(dram)[0], 72 + 100);
        CHECK_EQ(dram.dram_stats().reads, 2);
        dram.write(1, 0x5, 5000);
        dram.advance(10000);
        CHECK_EQ(dram.dram_stats().writes, 2);
    }
}

// Sectors that share a burst of 32 bytes cost one.
TEST(dram_channel_moves_whole_bursts) {
    DramChannelConfig config = beside_sm();
    config.sector_bytes = 16;
    DramChannel dram(config);
    dram.read(0, 0x01, 0, 0);
    dram.read(1, 0x0C, 1000, 1);
    dram.read(2, 0x81, 2000, 2);
    CHECK_EQ(completions(dram).size(), 3U);
    CHECK_EQ(dram.dram_stats().reads, 1 + 1 + 2);
}

// Ticks count from the first one after the cycle: cycle 1000 is tick 1420.8, and activates start on even ticks.
TEST(dram_channel_starts_after_the_request) {
    DramChannel dram(beside_sm());
    dram.read(0, kLine, 1000, 0);
    CHECK_EQ(completions(dram)[0], (1422 + 113) * 183 / 260 + 1 + 100);
}

// With room for one line the activates for the second start when the last read of the first goes out, at tick 74: edges
// 76 and 84, last read 148. With room for both they follow at 18 and 26, and its last read goes out at 90.
TEST(dram_channel_reads_wait_for_a_place_in_the_queue) {
    DramChannelConfig config = beside_sm();
    config.control.opened_entries = 0;
    for (const auto& [entries, last_tick] : {std::pair{4, 148}, std::pair{8, 90}}) {
        config.control.read_queue_entries = entries;
        DramChannel dram(config);
        dram.read(0, kLine, 0, 0);
        dram.read(1, kLine, 0, 1);
        const std::vector<Cycle> cycles = completions(dram);
        CHECK_EQ(cycles.size(), 2U);
        CHECK_EQ(cycles[0], 80 + 100);
        CHECK_EQ(cycles[1], (last_tick + 38 + 1) * 183 / 260 + 1 + 100);
        CHECK_EQ(dram.dram_stats().reads, 8);
    }
}

// Two places for lines; a third write waits until four bursts have left. The direction turns at once, as nothing is
// read: activates at ticks 0, 8 and 16, writes at 28, 36, 40 and 44, so there is room from tick 44, cycle 30.97, on.
TEST(dram_channel_writes_wait_for_a_place_in_the_queue) {
    DramChannelConfig config = beside_sm();
    config.control.write_queue_entries = 8;
    config.control.opened_entries = 0;
    DramChannel dram(config);
    for (const std::uint32_t line : {0U, 1U}) {
        CHECK_EQ(dram.earliest_write(0), 0);
        dram.write(line, kLine, 0);
    }
    CHECK_EQ(dram.next_event(), kNever);
    Cycle now = 0;
    while (dram.earliest_write(now) > now) now = dram.earliest_write(now);
    CHECK_EQ(dram.dram_stats().writes, 4);
    CHECK_EQ(now, 31);
}

// 128 bytes in 4 bursts of 4 ticks over two pseudo channels: 8 ticks or 5.63 cycles a line when the bus is full.
TEST(dram_channel_streams_at_the_bus_rate) {
    DramChannel dram(beside_sm());
    for (std::uint32_t line = 0; line < 4000; ++line) dram.read(line, kLine, 0, line);
    const std::vector<Cycle> cycles = completions(dram);
    CHECK_EQ(cycles.size(), 4000U);
    const double rate = static_cast<double>(cycles.back()) / 4000.0;
    CHECK(rate > 8.0 * 183 / 260 * 0.99 && rate < 8.0 * 183 / 260 * 1.01);
}

// Looking at the channel more often changes nothing.
TEST(dram_channel_catches_up_exactly) {
    DramChannelConfig config = beside_sm();
    config.control.read_queue_entries = 8;
    config.control.write_queue_entries = 8;
    config.control.refresh = Refresh::per_bank;
    for (const Cycle path : {0, 3, 250}) {
        config.path_cycles = path;
        std::vector<Cycle> found[2];
        for (const bool every_cycle : {false, true}) {
            DramChannel dram(config);
            std::mt19937 random(5);
            std::vector<Cycle>& cycles = found[every_cycle];
            std::uint32_t token = 0;
            for (Cycle now = 0; now < 30000; ++now) {
                if (every_cycle || dram.next_event() <= now) dram.advance(now);
                for (std::uint32_t done = 0; dram.pop_completion(now, done);) cycles[done] = now;
                if (now > 20000 || random() % 40 != 0) continue;
                const std::uint32_t line = random() % 4 == 0 ? random() % 1000000 : random() % 64;
                if (random() % 3 == 0) {
                    if (dram.earliest_write(now) <= now) dram.write(line, kLine, now);
                } else {
                    cycles.push_back(kNever);
                    dram.read(line, kLine, now, token++);
                }
            }
        }
        CHECK(found[0] == found[1]);
        CHECK(std::find(found[0].begin(), found[0].end(), kNever) == found[0].end());
    }
}

TEST(dram_channel_refuses_impossible_values) {
    const auto build = [](auto change) {
        DramChannelConfig config = beside_sm();
        change(config);
        return DramChannel(config);
    };
    CHECK_THROWS(build([](DramChannelConfig& c) { c.ticks_denominator = 0; }), std::invalid_argument, "DRAM clock");
    CHECK_THROWS(build([](DramChannelConfig& c) { c.line_bytes = 100; }), std::invalid_argument, "whole DRAM bursts");
    CHECK_THROWS(build([](DramChannelConfig& c) { c.control.read_queue_entries = 3; }), std::invalid_argument,
                 "bursts of a line");
    CHECK_THROWS(build([](DramChannelConfig& c) { c.path_cycles = -1; }), std::invalid_argument, "path_latency_ns");
}

}  // namespace simfa
