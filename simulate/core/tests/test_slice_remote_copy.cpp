#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "slice_bench.hpp"

namespace simfa {

using test::Answer;
using test::SliceBench;
using test::small_slice;

namespace {

// Line 0 lives in slice 0; pair 3 is far from it and near slice 40, its twin.
SliceConfig copying() {
    SliceConfig config = small_slice();
    config.remote_copy = true;
    config.remote_copy_probability_ppm = 1000000;
    config.remote_copy_threshold_ppm = 500000;
    return config;
}

}  // namespace

// Far miss 32 + 100, then a shadow hit at near latency; the near pair is not concerned.
TEST(remote_copy_answers_from_the_near_twin) {
    SliceBench bench(copying());
    bench.read(1000, 3, 0, 0);
    bench.read(2000, 3, 0, 1);
    bench.read(3000, 0, 0, 2);
    const auto answers = bench.run();
    CHECK_EQ(answers[0].cycle, 1000 + 32 + 100);
    CHECK_EQ(answers[1].cycle, 2000 + 20);
    CHECK_EQ(answers[2].cycle, 3000 + 20);
    CHECK_EQ(answers[1].slice, 40);
    CHECK_EQ(answers[2].slice, 0);
    CHECK_EQ(bench.slice(40).stats().hops, 1);
    CHECK_EQ(bench.slice(40).stats().shadow_hits, 1);
    CHECK_EQ(bench.slice(40).stats().shadow_inserts, 1);
    CHECK_EQ(bench.slice(0).stats().read_misses, 1);
    CHECK_EQ(bench.slice(0).stats().read_hits, 1);
    CHECK_EQ(bench.total().read_requests, 3);
}

TEST(remote_copy_far_hit_without_a_shadow_keeps_its_latency) {
    SliceConfig config = copying();
    config.remote_copy_probability_ppm = 0;
    config.near_latency_cycles = 258;
    config.far_latency_cycles = 415;
    SliceBench bench(config);
    bench.write(0, 0, 0, 0);
    bench.read(1000, 3, 0, 1);
    bench.read(2000, 3, 0, 2);
    const auto answers = bench.run();
    CHECK_EQ(answers[1].cycle, 1415);
    CHECK_EQ(answers[2].cycle, 2415);
    CHECK_EQ(bench.total().shadow_inserts, 0);
}

TEST(remote_copy_write_drops_the_shadow) {
    SliceBench bench(copying());
    bench.read(1000, 3, 0, 0);
    bench.write(2000, 3, 0, 1);  // straight to the home slice: far latency
    bench.read(3000, 3, 0, 2);
    const auto answers = bench.run();
    CHECK_EQ(answers[1].cycle, 2000 + 32);
    CHECK_EQ(answers[2].cycle, 3000 + 32);
    CHECK_EQ(bench.total().shadow_hits, 0);
    CHECK_EQ(bench.total().hops, 2);
}

// Four ways, threshold one half: two shadows in a set at most, and a third far line finds no place.
TEST(remote_copy_stops_at_the_occupancy_threshold) {
    SliceBench bench(copying());
    const std::uint32_t same_set = 80 * 4;
    for (std::uint32_t i = 0; i < 3; ++i) bench.read(1000 * (i + 1), 3, same_set * i, static_cast<int>(i));
    for (std::uint32_t i = 0; i < 3; ++i) bench.read(5000 + 1000 * i, 3, same_set * i, static_cast<int>(i) + 3);
    const auto answers = bench.run();
    CHECK_EQ(answers[3].cycle, 5000 + 20);
    CHECK_EQ(answers[4].cycle, 6000 + 20);
    CHECK_EQ(answers[5].cycle, 7000 + 32);
    CHECK_EQ(bench.total().shadow_inserts, 2);
}

// Shadows compete with the twin's own lines: four of those push a shadow out, without a write to memory.
TEST(remote_copy_shadows_are_replaced_like_lines) {
    SliceBench bench(copying());
    bench.read(1000, 3, 0, 0);
    for (std::uint32_t i = 0; i < 4; ++i) bench.read(2000 + 1000 * i, 3, 40 + 80 * 4 * i, 1);
    bench.read(9000, 3, 0, 2);
    const auto answers = bench.run();
    CHECK_EQ(answers.back().cycle, 9000 + 32);
    CHECK_EQ(bench.total().memory_writes, 0);
    CHECK_EQ(bench.total().hops, 2);
}

TEST(remote_copy_inserts_with_the_given_probability) {
    SliceConfig config = copying();
    config.remote_copy_probability_ppm = 300000;
    config.remote_copy_threshold_ppm = 1000000;
    config.sets = 2000;
    SliceBench bench(config);
    for (std::uint32_t i = 0; i < 2000; ++i) bench.read(1000 + 50 * i, 3, 80 * i, 0);
    bench.run();
    const auto inserted = bench.total().shadow_inserts;
    CHECK(inserted > 600 - 62 && inserted < 600 + 62);  // three standard deviations of 20.5
    SliceBench again(config);
    for (std::uint32_t i = 0; i < 2000; ++i) again.read(1000 + 50 * i, 3, 80 * i, 0);
    again.run();
    CHECK_EQ(again.total().shadow_inserts, inserted);
    config.seed = 1;
    SliceBench other(config);
    for (std::uint32_t i = 0; i < 2000; ++i) other.read(1000 + 50 * i, 3, 80 * i, 0);
    other.run();
    CHECK(other.total().shadow_inserts != inserted);
}

TEST(remote_copy_needs_two_sides_and_time_between_them) {
    SliceConfig config = copying();
    config.far_latency_cycles = config.near_latency_cycles + 1;
    CHECK_THROWS(config.check(), std::invalid_argument, "far_latency_cycles 2 or more above");
    config = copying();
    config.slices = 81;
    CHECK_THROWS(config.check(), std::invalid_argument, "even count of slices");
}

}  // namespace simfa
