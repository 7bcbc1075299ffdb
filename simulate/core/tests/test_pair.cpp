#include <string>
#include <vector>

#include "check.hpp"
#include "grid.hpp"
#include "pair.hpp"
#include "programs.hpp"
#include "words.hpp"

namespace simfa {

namespace {

using namespace test;  // programs are written with its shorthand

// A pair with ideal memory, or with slices that never answer.
class PairBench {
  public:
    PairBench(Config config, const Kernel& kernel)
        : config_(recording(config)),
          kernel_(kernel),
          slices_(config_.slices, 1, 1, 4096),
          grid_(1, 1, 1, 4096),
          pair(config_, kernel_, 0, 1) {
        pair.connect({nullptr, &slices_, 0}, &grid_);
    }

    void run(Cycle begin, Cycle end, const std::vector<Message>& inbox = {}) { pair.run(begin, end, inbox); }

    // Cycles at which a role issued.
    std::string issued(int cta, int role) const {
        std::string text;
        for (const Issue& issue : pair.sm(cta).issues())
            if (issue.role == role) add_word(text, issue.cycle);
        return text;
    }

    // Lines that reached slices up to `end`.
    std::string requests(Cycle end) {
        std::string text;
        for (Cycle cycle = 0; cycle < end; ++cycle)
            for (int slice = 0; slice < config_.slices; ++slice)
                for (const Message& message : slices_.open(slice, cycle)) add_word(text, cycle, ':', message.line);
        return text;
    }

    std::string tile_requests(Cycle end) {
        std::string text;
        for (Cycle cycle = 0; cycle < end; ++cycle)
            for (const Message& message : grid_.open(0, cycle)) add_word(text, cycle, ':', message.source);
        return text;
    }

  private:
    static Config recording(Config config) {
        config.record_issues = true;
        return config;
    }

    Config config_;
    Kernel kernel_;
    Mailboxes slices_;
    Mailboxes grid_;

  public:
    Pair pair;
};

}  // namespace

// Rank 0 loads row 0 and rank 1 row 1 (box rows times rank), both for both: a fill of 256 bytes. Both copies start at
// 2 (issued at 1) and take 20 cycles.
TEST(pair_multicast_fills_both_ctas) {
    Kernel kernel = kernel_of({acquire(0) + load(0, 0, 0, true), await_fill(0) + work(0)}, 2, 2);
    kernel.rings = {ring(256)};
    kernel.maps = {row_map()};
    PairBench bench(bare(20), kernel);
    bench.run(0, 1000);
    CHECK(bench.pair.done());
    for (const int cta : {0, 1}) CHECK_EQ(bench.issued(cta, 1), "2 22");
    CHECK_EQ(bench.pair.stats().requests, 2);
    CHECK_EQ(bench.pair.stats().read_lines, 4);
}

// Without clusters the same program loads for its own CTA alone, half of what the ring expects: nobody wakes up.
TEST(pair_multicast_needs_a_cluster) {
    Kernel kernel = kernel_of({acquire(0) + load(0, 0, 0, true), await_fill(0) + work(0)}, 2, 1);
    kernel.rings = {ring(256)};
    kernel.maps = {row_map()};
    PairBench bench(bare(20), kernel);
    bench.run(0, 1000);
    CHECK(!bench.pair.done());
    CHECK_EQ(bench.pair.next_event(), kNever);
    CHECK_EQ(bench.issued(0, 1), "2");
}

// Each CTA's stage needs the release of both. Role 1 of CTA 0 releases at 2, that of CTA 1 at 102: seen in the own CTA
// 29 cycles later, in the other 181.
TEST(pair_remote_releases_take_their_latency) {
    Config config = bare(20);
    config.mbarrier_arrive_cycles = 29;
    config.mbarrier_remote_arrive_cycles = 181;
    Kernel kernel = kernel_of({acquire(0) + acquire(1), work(0)}, 2, 2);
    kernel.rings = {ring(0, 1, 2)};
    // CTA 1 has a kind of its own, whose role 1 is slow.
    kernel.programs.push_back(program(work(100) + release(0, 0, 0, true)));
    kernel.programs[1] = program(release(0, 0, 0, true));
    kernel.kinds.push_back({{0, 2, 0, 0}, {2}});
    kernel.tiles[1].kind = 1;
    PairBench bench(config, kernel);
    bench.run(0, 1000);
    CHECK(bench.pair.done());
    CHECK_EQ(bench.issued(0, 1), "2");
    CHECK_EQ(bench.issued(1, 1), "2 102");
    // CTA 0: own at 31, CTA 1's at 102 + 181. CTA 1: own at 131, CTA 0's at 2 + 181. Both end with the wake-up.
    CHECK_EQ(bench.pair.sm(0).role_end(0), 283);
    CHECK_EQ(bench.pair.sm(1).role_end(0), 183);
}

// One SM has no CTA: nothing happens on it, and nothing is said about it.
TEST(pair_with_one_cta) {
    PairBench bench(bare(20), kernel_of({work(5)}, 1));
    bench.run(0, 100);
    CHECK(bench.pair.done());
    CHECK_EQ(bench.pair.end_cycle(), 5);
    CHECK(!bench.pair.sm(1).has_cta());
    bench.pair.close_accounts(5);
    CHECK_EQ(bench.pair.stats().stalls[0][static_cast<int>(Reason::bubble)], 5);
}

// Both SMs ask for line 0 in cycle 2. The response at 50 completes both fills, and is one of one request.
TEST(pair_coalesces_and_delivers_responses) {
    Config config = bare();
    config.near_latency_cycles = config.far_latency_cycles = 20;
    config.slices = 2;
    Kernel kernel = kernel_of({acquire(0) + bulk(0, 0, 128), await_fill(0) + work(0)}, 2);
    kernel.rings = {ring()};
    PairBench bench(config, kernel);
    bench.run(0, 40);
    CHECK_EQ(bench.requests(40), "12:0");
    bench.run(40, 100, {{.line = 0, .source = 0, .offset = 10, .tag = 0, .kind = read_response, .flags = 0xF00}});
    CHECK(bench.pair.done());
    for (const int cta : {0, 1}) CHECK_EQ(bench.issued(cta, 1), "2 50");
    CHECK_EQ(bench.pair.stats().lrc_merges, 1);
}

// CTAs 0 and 1 begin their first tiles at 0 and ask; the request's half of a fetch of 41 is 20. Grants come at the
// offsets of their messages.
TEST(pair_asks_the_grid_and_takes_its_grants) {
    Config config = bare(20);
    config.tile_fetch_cycles = 41;
    PairBench bench(config, dynamic_kernel({work(3)}, 2, 3));
    bench.run(0, 41);
    CHECK_EQ(bench.tile_requests(41), "20:0 20:1");
    Message first{.line = 2, .offset = 0, .tag = 0, .kind = tile_grant};
    Message none{.line = kNoTile, .offset = 4, .tag = 1, .kind = tile_grant};
    bench.run(41, 80, {first, none});
    CHECK_EQ(bench.issued(0, 0), "0 41");
    CHECK_EQ(bench.issued(1, 0), "0");
    CHECK_EQ(bench.pair.sm(1).role_end(0), 45);
    CHECK_EQ(bench.tile_requests(100), "61:0");
    CHECK(!bench.pair.done());  // CTA 0 waits for its third tile
}

// Time is cut into windows without a trace of it.
TEST(pair_runs_the_same_in_any_windows) {
    Kernel kernel = kernel_of({repeat(20, acquire(0, 0, 1) + bulk(0, 0, 256, 1, 256)),
                               repeat(20, await_fill(0, 0, 1) + work(7) + release(0, 0, 1))},
                              2);
    kernel.rings = {ring(256, 2)};
    std::string whole;
    for (const Cycle window : {100000, 1, 7, 129}) {
        PairBench bench(bare(50), kernel);
        for (Cycle begin = 0; !bench.pair.done() && begin < 100000; begin += window) bench.run(begin, begin + window);
        CHECK(bench.pair.done());
        std::string all = bench.issued(0, 0);
        all += bench.issued(1, 1);
        if (whole.empty()) whole = all;
        CHECK_EQ(all, whole);
    }
}

}  // namespace simfa
