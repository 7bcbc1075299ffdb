#include <string>
#include <vector>

#include "check.hpp"
#include "engine.hpp"
#include "sm_bench.hpp"
#include "timeline.hpp"
#include "words.hpp"

namespace simfa {

namespace {

using namespace test;  // programs are written with its shorthand

// Slices of one track as "name:start-end/arg", in order of their ends.
std::string slices(const std::vector<TimelineSlice>& all, int track, int sm = 0) {
    std::string text;
    for (const TimelineSlice& slice : all)
        if (slice.sm == sm && slice.track == track)
            add_word(text, slice.name, ':', slice.start, '-', slice.end, '/', slice.arg);
    return text;
}

std::string reasons(const std::vector<TimelineSlice>& all, int role) {
    std::string text;
    for (const TimelineSlice& slice : all)
        if (slice.track == role)
            add_word(text, kReasonNames[static_cast<std::size_t>(slice.name)], ':', slice.start, '-', slice.end);
    return text;
}

// A producer that loads two lines into one stage, and a consumer that multiplies them.
Kernel load_and_multiply(int tiles = 1) {
    const Code producer = acquire(0) + bulk(0, 0, 256);
    const Code consumer = await_fill(0) + wgmma(2, 10) + wgmma_commit() + wgmma_wait(0) + release(0);
    Kernel kernel = kernel_of({producer, consumer}, 1, 1, tiles);
    kernel.rings = {ring(256)};
    return kernel;
}

Config two_slots() {
    Config config = bare(50);
    config.issue_width = 2;
    config.group_drain_cycles = 5;
    return config;
}

std::vector<TimelineSlice> recorded(Config config, const Kernel& kernel, const TimelineChoice& choice) {
    config.timeline = choice;
    Engine engine(config, kernel);
    while (!engine.advance(1000)) {
    }
    return engine.timeline();
}

}  // namespace

// The load is issued in cycle 1 and starts in 2, its lines leave in 2 and 3 and are back in 52 and 53. The two WGMMAs
// are issued in 53 and 54 and run until 73, then the pipe drains for 5 cycles. Their commit takes cycle 55, the
// release 73.
TEST(timeline_of_a_load_and_two_wgmmas) {
    SmBench bench(two_slots(), load_and_multiply());
    bench.run();
    const std::vector<TimelineSlice>& all = bench.slices();
    CHECK_EQ(reasons(all, 0), "acquire_stage:0-1 issue:1-2");
    CHECK_EQ(reasons(all, 1), "wait_k:0-53 wgmma_issue:53-55 issue:55-56 wgmma_wait:56-73 issue:73-74");
    CHECK_EQ(slices(all, kTensorTrack), "0:53-73/1 -1:73-78/1");
    CHECK_EQ(slices(all, kTmaTrack), "0:2-53/0");
    CHECK_EQ(slices(all, kTmaIssueTrack), "0:2-4/0");
    CHECK_EQ(slices(all, kStageTracks), "0:0-53/0 1:53-74/0");
    CHECK_EQ(bench.timeline().tiles().size(), 1U);
}

// The signal of cycle 0 is there from 1 on and taken in 10; the other way round a role waits from 0 to 11.
TEST(timeline_of_named_barriers) {
    SmBench early(two_slots(), kernel_of({arrive(3), work(10) + await_barrier(3)}));
    early.run();
    CHECK_EQ(slices(early.slices(), kBarrierTracks + 3), "1:1-10/1");
    SmBench late(two_slots(), kernel_of({work(10) + arrive(3), await_barrier(3)}));
    late.run();
    CHECK_EQ(slices(late.slices(), kBarrierTracks + 3), "0:0-11/1");
}

// Two roles share the pipe, one WGMMA of 10 cycles each in turn: a slice for each change.
TEST(timeline_tensor_slices_of_two_roles_do_not_overlap) {
    SmBench bench(two_slots(), kernel_of({wgmma(2, 10) + wgmma_commit(), wgmma(2, 10) + wgmma_commit()}));
    bench.run();
    CHECK_EQ(slices(bench.slices(), kTensorTrack), "0:0-10/0 0:10-20/1 0:20-30/0 0:30-40/1 -1:40-45/1");
}

TEST(timeline_of_a_store) {
    Config config = two_slots();
    Kernel kernel = kernel_of({store() + store_commit() + store_wait(0)});
    kernel.maps = {row_map(3)};
    SmBench bench(config, kernel);
    bench.run();
    CHECK_EQ(slices(bench.slices(), kTmaIssueTrack), "-1:1-4/0");  // three lines, from cycle 1 on
}

// All of a run, then parts of it: by SM, window and tile. A tile of this kernel takes 74 cycles of the consumer.
TEST(timeline_choices) {
    const Kernel kernel = load_and_multiply(3);
    const std::vector<TimelineSlice> all = recorded(two_slots(), kernel, {.sms = {0}});
    const std::string consumer = reasons(all, 1);
    CHECK(consumer.starts_with("wait_k:0-53 wgmma_issue:53-55 issue:55-56 wgmma_wait:56-73 issue:73-74 wait_k:74-"));
    CHECK(recorded(two_slots(), kernel, {.sms = {}}).empty());
    CHECK(recorded(two_slots(), kernel, {.sms = {1}}).empty());  // has no CTA
    // Slices are kept at their full length.
    CHECK_EQ(reasons(recorded(two_slots(), kernel, {.sms = {0}, .begin = 54, .end = 56}), 1),
             "wgmma_issue:53-55 issue:55-56");
    CHECK_EQ(reasons(recorded(two_slots(), kernel, {.sms = {0}, .begin = 55, .end = 56}), 1), "issue:55-56");
    std::string second;
    for (const TimelineSlice& slice : all)
        if (slice.track == 1 && slice.arg == 1)
            add_word(second, kReasonNames[static_cast<std::size_t>(slice.name)], ':', slice.start, '-', slice.end);
    const TimelineChoice second_tile = {.sms = {0}, .first_tile = 1, .last_tile = 1};
    const std::vector<TimelineSlice> tile = recorded(two_slots(), kernel, second_tile);
    CHECK_EQ(reasons(tile, 1), second);
    CHECK(second.starts_with("wait_k:74-126 "));
    // The stage is free from the release in 74 on; the producer waits for that from the begin of the tile in 2.
    CHECK_EQ(reasons(tile, 0), "acquire_stage:2-74 issue:74-75");
    CHECK(recorded(two_slots(), kernel, {.sms = {0}, .m_block = 9}).empty());
}

// What lies behind the end of a stopped run is cut off.
TEST(timeline_of_a_stopped_run) {
    Config config = two_slots();
    config.max_cycles = 60;
    const std::vector<TimelineSlice> all = recorded(config, load_and_multiply(), {.sms = {0}});
    CHECK_EQ(slices(all, kTensorTrack), "0:53-60/1");
    CHECK_EQ(reasons(all, 1), "wait_k:0-53 wgmma_issue:53-55 issue:55-56 wgmma_wait:56-60");
    CHECK_EQ(slices(all, kStageTracks), "0:0-53/0 1:53-60/0");
}

// Two lines are in flight from 3 to 52, one in cycle 2 and until 53; the run ends at 74.
TEST(timeline_samples_lines_in_flight) {
    Config config = two_slots();
    config.timeline = {.sms = {0}, .begin = 2, .period_cycles = 1};
    config.timeline.end = 5;
    Engine engine(config, load_and_multiply());
    while (!engine.advance(1000)) {
    }
    std::string text;
    for (const std::vector<std::int64_t>& row : engine.timeline_counters()) add_word(text, row[0], ':', row[8]);
    CHECK_EQ(text, "2:0 3:1 4:2 5:2");  // before what happens in the cycle
}

TEST(timeline_sampler_ends_with_the_window_or_the_run) {
    Sampler window({.sms = {}, .begin = 10, .end = 25, .period_cycles = 10});
    CHECK(!window.due(9));
    CHECK(window.due(10));
    CHECK_EQ(window.take(), 10);
    CHECK_EQ(window.before_next(100), 20);
    CHECK_EQ(window.take(), 20);
    CHECK_EQ(window.take(), 25);
    CHECK(!window.due(1000));
    CHECK(!window.finish(1000));
    Sampler run({.sms = {}, .begin = 0, .period_cycles = 10});
    CHECK_EQ(run.take(), 0);
    CHECK(run.finish(7));
    CHECK(!run.due(1000));
    CHECK(!Sampler(TimelineChoice{}).due(1000));
}

}  // namespace simfa
