#include <memory>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "dram_channel.hpp"
#include "dram_fixture.hpp"

namespace simfa {

namespace {

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
    dram.read(0, 0, 0);
    CHECK_EQ(completions(dram)[0], 80 + 100);
}

// Ticks count from the first one after the cycle: cycle 1000 is tick 1420.8, and activates start on even ticks.
TEST(dram_channel_starts_after_the_request) {
    DramChannel dram(beside_sm());
    dram.read(0, 1000, 0);
    CHECK_EQ(completions(dram)[0], (1422 + 113) * 183 / 260 + 1 + 100);
}

TEST(dram_channel_holds_lines_back_when_its_queue_is_full) {
    DramChannelConfig config = beside_sm();
    config.control.read_queue_entries = 8;
    config.control.opened_entries = 0;
    DramChannel dram(config);
    dram.read(0, 0, 0);
    CHECK_EQ(dram.earliest_read(0), 0);
    dram.read(2048, 0, 1);
    CHECK(dram.earliest_read(0) > 0);
    CHECK_EQ(dram.earliest_write(0), 0);
    Cycle now = 0;
    while (dram.earliest_read(now) > now) {
        now = dram.earliest_read(now);
        dram.advance(now);
    }
    CHECK_EQ(dram.dram_stats().reads, 4);
    dram.read(1, now, 2);
    const std::vector<Cycle> cycles = completions(dram);
    CHECK_EQ(cycles.size(), 3U);
    CHECK(cycles[2] > cycles[0]);
}

// 128 bytes in 4 bursts of 4 ticks over two pseudo channels: 8 ticks or 5.63 cycles a line when the bus is full.
TEST(dram_channel_streams_at_the_bus_rate) {
    DramChannel dram(beside_sm());
    Cycle now = 0;
    std::vector<Cycle> cycles(4000);
    for (std::uint32_t line = 0; line < cycles.size();) {
        dram.advance(now);
        for (std::uint32_t token = 0; dram.pop_completion(now, token);) cycles[token] = now;
        if (dram.earliest_read(now) <= now) {
            dram.read(line, now, line);
            ++line;
        } else {
            now = dram.earliest_read(now);
        }
    }
    const double rate = static_cast<double>(now) / static_cast<double>(cycles.size());
    CHECK(rate > 8.0 * 183 / 260 * 0.99 && rate < 8.0 * 183 / 260 * 1.01);
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
