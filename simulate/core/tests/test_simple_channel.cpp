#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "simple_channel.hpp"

namespace simfa {

namespace {

std::vector<Cycle> completions(SimpleChannel& channel) {
    std::vector<Cycle> cycles;
    for (std::uint32_t token = 0; channel.next_event() != kNever;) {
        const Cycle now = channel.next_event();
        channel.advance(now);
        while (channel.pop_completion(now, token)) {
            CHECK_EQ(token, cycles.size());
            cycles.push_back(now);
        }
    }
    return cycles;
}

}  // namespace

TEST(simple_channel_unloaded_read_takes_its_latency) {
    SimpleChannel channel({.latency_cycles = 330, .line_cycles_numerator = 27, .line_cycles_denominator = 4});
    channel.read(0, 1, 1000, 0);
    channel.read(1, 1, 2000, 1);
    const std::vector<Cycle> cycles = completions(channel);
    CHECK_EQ(cycles.size(), 2U);
    CHECK_EQ(cycles[0], 1330);
    CHECK_EQ(cycles[1], 2330);
}

// 27/4 cycles a line: starts at 0, 6.75, 13.5, 20.25, 27; a line is there in the cycle after its start plus latency.
TEST(simple_channel_serves_lines_at_the_exact_rate) {
    SimpleChannel channel({.latency_cycles = 100, .line_cycles_numerator = 27, .line_cycles_denominator = 4});
    for (std::uint32_t token = 0; token < 401; ++token) channel.read(token, 1, 0, token);
    const std::vector<Cycle> cycles = completions(channel);
    const Cycle expected[] = {100, 107, 114, 121, 127};
    for (std::size_t i = 0; i < 5; ++i) CHECK_EQ(cycles[i], expected[i]);
    CHECK_EQ(cycles[400], 100 + 2700);
}

// A line takes 6.75 cycles, half of it 3.375: starts at 0, 3.375, 6.75, 13.5.
TEST(simple_channel_parts_take_their_share) {
    SimpleChannel channel(
        {.latency_cycles = 100, .line_cycles_numerator = 27, .line_cycles_denominator = 4, .sectors = 4});
    channel.read(0, 0x3, 0, 0);
    channel.read(0, 0xA, 0, 1);
    channel.read(1, 0xF, 0, 2);
    channel.read(2, 0x8, 0, 3);
    const std::vector<Cycle> cycles = completions(channel);
    CHECK_EQ(cycles.size(), 4U);
    const Cycle expected[] = {100, 104, 107, 114};
    for (std::size_t i = 0; i < cycles.size(); ++i) CHECK_EQ(cycles[i], expected[i]);
}

// Writes take the server 1.5 x 4 cycles; a third waits for the first of two places.
TEST(simple_channel_writes_take_server_time_and_queue_places) {
    SimpleChannel channel({.latency_cycles = 10,
                           .line_cycles_numerator = 4,
                           .line_cycles_denominator = 1,
                           .write_cost_ppm = 1500000,
                           .write_queue_entries = 2});
    CHECK_EQ(channel.earliest_write(0), 0);
    channel.write(0, 1, 0);
    CHECK_EQ(channel.earliest_write(0), 0);
    channel.write(1, 1, 0);
    CHECK_EQ(channel.earliest_write(0), 6);
    CHECK_EQ(channel.earliest_write(6), 6);
    channel.write(2, 1, 6);
    channel.read(3, 1, 6, 0);
    CHECK_EQ(completions(channel)[0], 18 + 10);
}

TEST(simple_channel_refuses_impossible_values) {
    CHECK_THROWS(SimpleChannel({.latency_cycles = -1}), std::invalid_argument, "latency");
    CHECK_THROWS(SimpleChannel({.line_cycles_numerator = 0}), std::invalid_argument, "cycles per line");
    CHECK_THROWS(SimpleChannel({.line_cycles_denominator = 1 << 25}), std::invalid_argument, "2^24");
    CHECK_THROWS(SimpleChannel({.write_cost_ppm = 0}), std::invalid_argument, "write cost");
    CHECK_THROWS(SimpleChannel({.write_queue_entries = 0}), std::invalid_argument, "write queue");
}

}  // namespace simfa
