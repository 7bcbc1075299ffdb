// Random traffic over all slices: conservation, bounds, and results that do not depend on the window.
#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "check.hpp"
#include "dram_channel.hpp"
#include "dram_fixture.hpp"
#include "slice_bench.hpp"

namespace simfa {

using test::Answer;
using test::SliceBench;
using test::small_memory;
using test::small_slice;

namespace {

struct Traffic {
    Cycle cycle;
    int pair;
    std::uint32_t line;
    bool write;
    int tag;
    SectorMask sectors;
};

// Bursts over a few hundred lines, so that merges, evictions and full queues are frequent.
std::vector<Traffic> random_traffic(unsigned seed, bool in_parts) {
    std::mt19937 random(seed);
    std::vector<Traffic> traffic;
    Cycle cycle = 50;
    for (int tag = 0; tag < 6000; ++tag) {
        if (random() % 50 == 0) cycle += random() % 300;
        const auto hot = static_cast<std::uint32_t>(40 * (cycle / 400));
        const std::uint32_t line = random() % 2 == 0 ? hot + random() % 6 : random() % 400;
        const int pair = static_cast<int>(random() % 4);
        const bool write = random() % 4 == 0;
        const SectorMask sectors = in_parts && random() % 4 != 0 ? random() % 15 + 1 : 15;
        traffic.push_back({cycle, pair, line, write, tag, sectors});
    }
    return traffic;
}

SliceConfig crowded(bool remote_copy) {
    SliceConfig config = small_slice();
    config.sectors = 4;
    config.fetch_sectors = 2;
    config.slices = 8;
    config.hash = HashKind::xor_shift;
    config.near_latency_cycles = 40;
    config.far_latency_cycles = 61;
    config.response_queue_entries = 3;
    config.mshr_merges = 6;
    config.remote_copy = remote_copy;
    config.remote_copy_probability_ppm = 600000;
    config.remote_copy_threshold_ppm = 600000;
    return config;
}

struct Outcome {
    std::vector<Answer> answers;
    SliceStats stats;
    DramStats dram;
};

std::unique_ptr<MemoryChannel> simple_channel(int) {
    SimpleChannelConfig memory = small_memory();
    memory.write_queue_entries = 2;
    memory.sectors = 4;
    return std::make_unique<SimpleChannel>(memory);
}

// Queues of two lines, refreshes within the run.
std::unique_ptr<MemoryChannel> dram_channel(int slice) {
    static const auto map = std::make_shared<const AddressMap>(test::g64x());
    DramChannelConfig config{.organisation = {},
                             .timing = test::hbm3_5200(),
                             .control = {.read_queue_entries = 8,
                                         .write_queue_entries = 8,
                                         .opened_entries = 4,
                                         .refresh = slice % 2 == 0 ? Refresh::all_bank : Refresh::per_bank,
                                         .channel = slice,
                                         .channels = 8},
                             .ticks_numerator = 260,
                             .ticks_denominator = 183,
                             .path_cycles = 40,
                             .map = map};
    return std::make_unique<DramChannel>(config);
}

Outcome simulate(const std::vector<Traffic>& traffic, bool remote_copy, Cycle window,
                 const SliceBench::MakeChannel& make_channel = simple_channel) {
    SliceBench bench(crowded(remote_copy), make_channel, window);
    for (const Traffic& item : traffic)
        item.write ? bench.write(item.cycle, item.pair, item.line, item.tag, item.sectors)
                   : bench.read(item.cycle, item.pair, item.line, item.tag, item.sectors);
    std::vector<Answer> answers = bench.run();
    return {std::move(answers), bench.total(), bench.dram_total()};
}

}  // namespace

TEST(slices_answer_every_request_once) {
    for (const bool remote_copy : {false, true})
        for (unsigned seed = 0; seed < 6; ++seed) {
            const bool in_parts = seed % 2 != 0;
            const std::vector<Traffic> traffic = random_traffic(seed, in_parts);
            const Outcome outcome = simulate(traffic, remote_copy, 6, seed >= 4 ? dram_channel : simple_channel);
            std::map<int, int> seen;
            for (const Answer& answer : outcome.answers) {
                ++seen[answer.tag];
                const Traffic& request = traffic[static_cast<std::size_t>(answer.tag)];
                CHECK_EQ(answer.pair, request.pair);
                CHECK_EQ(answer.kind, static_cast<int>(request.write ? write_ack : read_response));
                CHECK(answer.cycle >= request.cycle + 40);
            }
            CHECK_EQ(outcome.answers.size(), traffic.size());
            CHECK_EQ(seen.size(), traffic.size());
            const SliceStats& stats = outcome.stats;
            CHECK_EQ(stats.read_requests + stats.write_requests, static_cast<std::int64_t>(traffic.size()));
            CHECK_EQ(stats.responses, static_cast<std::int64_t>(traffic.size()));
            CHECK_EQ(stats.read_hits + stats.read_misses + stats.read_merges + stats.shadow_hits, stats.read_requests);
            CHECK_EQ(stats.memory_reads, stats.read_misses);
            CHECK(stats.memory_writes > 0);
            CHECK_EQ(stats.memory_read_sectors < 4 * stats.memory_reads, in_parts);
            CHECK_EQ(stats.memory_write_sectors < 4 * stats.memory_writes, in_parts);
            CHECK(stats.memory_read_sectors >= 2 * stats.memory_reads);
            if (seed >= 4) {
                CHECK_EQ(outcome.dram.reads + outcome.dram.forwarded_reads, stats.memory_read_sectors);
                // Some writes are still in the controllers' queues.
                CHECK(outcome.dram.writes + outcome.dram.absorbed_writes <= stats.memory_write_sectors);
            }
            CHECK_EQ(stats.shadow_hits > 0, remote_copy);
        }
}

TEST(slices_respect_their_queues) {
    const Outcome outcome = simulate(random_traffic(4, false), true, 6);
    const SliceConfig config = crowded(true);
    CHECK_EQ(outcome.stats.request_queue_peak, config.request_queue_entries);
    CHECK_EQ(outcome.stats.response_queue_peak, config.response_queue_entries);
    CHECK_EQ(outcome.stats.mshr_peak, config.mshr_entries);
    for (std::size_t reason = 1; reason < kBlockedReasons; ++reason) CHECK(outcome.stats.blocked_cycles[reason] > 0);
    CHECK(outcome.stats.staging_longest_cycles > 0);
}

TEST(slices_give_the_same_answers_for_any_window) {
    for (const auto& make_channel : {simple_channel, dram_channel})
        for (const bool remote_copy : {false, true}) {
            const std::vector<Traffic> traffic = random_traffic(5, remote_copy == (make_channel == simple_channel));
            const Outcome one = simulate(traffic, remote_copy, 1, make_channel);
            for (const Cycle window : {7, 10}) {
                const Outcome other = simulate(traffic, remote_copy, window, make_channel);
                CHECK(one.answers == other.answers);
                CHECK(one.stats == other.stats);
                CHECK(one.dram == other.dram);
            }
        }
}

}  // namespace simfa
