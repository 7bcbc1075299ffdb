#include <algorithm>
#include <random>
#include <vector>

#include "check.hpp"
#include "tensor_core.hpp"

namespace simfa {

namespace {

Config small_pipe() {
    Config config;
    config.wgmma_tail_ss_cycles = 66;
    config.wgmma_tail_rs_cycles = 64;
    config.wgmma_window_ss = 3;
    config.wgmma_window_rs = 2;
    config.group_drain_cycles = 45;
    return config;
}

}  // namespace

// Work of 8 cycles each, issued at 10, 11 and 12: the pipe takes 10-18, 18-26, 26-34.
TEST(tensor_core_is_one_fifo_pipe) {
    const Config config = small_pipe();
    TensorCore pipe(config);
    const TensorCore::Slice first = pipe.issue(false, 10, 8);
    CHECK_EQ(first.start, 10);
    CHECK_EQ(first.end, 18);
    CHECK_EQ(first.done, 18 + 66);
    const TensorCore::Slice second = pipe.issue(true, 11, 8);
    CHECK_EQ(second.start, 18);
    CHECK_EQ(second.done, 26 + 64);
    CHECK_EQ(pipe.issue(false, 12, 8).start, 26);
    CHECK_EQ(pipe.free_at(), 34);
    CHECK_EQ(pipe.issue(false, 50, 8).start, 50);  // idle since 34
}

// At 13 three WGMMAs have not ended (18, 26, 34). A window of 3 has room when the first ends, one of 2 with the second.
TEST(tensor_core_window_admits_by_what_has_not_ended) {
    const Config config = small_pipe();
    TensorCore pipe(config);
    CHECK_EQ(pipe.admission(false, 10), 10);
    for (const Cycle cycle : {10, 11, 12}) {
        CHECK_EQ(pipe.admission(false, cycle), cycle);
        pipe.issue(false, cycle, 8);
    }
    CHECK_EQ(pipe.admission(false, 13), 18);
    CHECK_EQ(pipe.admission(true, 13), 26);
    CHECK_EQ(pipe.admission(false, 17), 18);
    CHECK_EQ(pipe.admission(false, 18), 18);  // ended at 18: no more than two are left
    CHECK_EQ(pipe.admission(true, 18), 26);
    CHECK_EQ(pipe.admission(true, 26), 26);
}

// A group that ends at 34 keeps the pipe idle until 79.
TEST(tensor_core_drains_after_a_group) {
    const Config config = small_pipe();
    TensorCore pipe(config);
    pipe.issue(false, 10, 8);
    pipe.issue(false, 18, 16);
    pipe.commit(34);
    CHECK_EQ(pipe.free_at(), 79);
    CHECK_EQ(pipe.issue(false, 40, 8).start, 79);
    pipe.commit(18);  // of a group that ended before what is in the pipe now
    CHECK_EQ(pipe.free_at(), 87);
}

TEST(tensor_core_counts_cycles_before_the_end_of_a_run) {
    const Config config = small_pipe();
    TensorCore pipe(config);
    pipe.issue(false, 10, 8);
    pipe.issue(false, 12, 16);  // 18 to 34
    pipe.commit(34);            // drains to 79
    pipe.issue(false, 20, 8);   // 79 to 87
    const Cycle ends[] = {10, 14, 18, 20, 34, 50, 79, 80, 87, 500};
    const std::int64_t busy[] = {0, 4, 8, 10, 24, 24, 24, 25, 32, 32};
    const std::int64_t drain[] = {0, 0, 0, 0, 0, 16, 45, 45, 45, 45};
    for (int i = 0; i < 10; ++i) {
        CHECK_EQ(pipe.busy_cycles(ends[i]), busy[i]);
        CHECK_EQ(pipe.drain_cycles(ends[i]), drain[i]);
    }
}

// Random issues against a list of all WGMMAs that ever were.
TEST(tensor_core_agrees_with_a_list) {
    std::mt19937 random(7);
    for (int round = 0; round < 50; ++round) {
        Config config = small_pipe();
        config.wgmma_window_ss = 1 + static_cast<int>(random() % TensorCore::kMaxWindow);
        config.wgmma_window_rs = 1 + static_cast<int>(random() % TensorCore::kMaxWindow);
        TensorCore pipe(config);
        std::vector<Cycle> ends;
        Cycle free = 0;
        Cycle now = 0;
        for (int i = 0; i < 400; ++i) {
            const bool register_a = random() % 2 != 0;
            const int window = register_a ? config.wgmma_window_rs : config.wgmma_window_ss;
            const auto admits = [&](Cycle cycle) {
                return std::count_if(ends.begin(), ends.end(), [&](Cycle end) { return end > cycle; }) < window;
            };
            Cycle admitted = now;
            while (!admits(admitted)) ++admitted;
            CHECK_EQ(pipe.admission(register_a, now), admitted);
            now = admitted;
            const int work = 1 + static_cast<int>(random() % 20);
            const Cycle start = std::max(now, free);
            CHECK_EQ(pipe.issue(register_a, now, work).start, start);
            free = start + work;
            ends.push_back(free);
            if (random() % 4 == 0) {
                pipe.commit(free);
                free += config.group_drain_cycles;
            }
            now += static_cast<Cycle>(random() % 12);
        }
    }
}

}  // namespace simfa
