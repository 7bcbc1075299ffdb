#include <string>
#include <vector>

#include "check.hpp"
#include "sm_bench.hpp"

namespace simfa {

namespace {

using namespace test;  // programs are written with its shorthand

constexpr int kLatency = 20;

Config scheduled(Scheduler scheduler) {
    Config config = bare(kLatency);
    config.scheduler = static_cast<std::int32_t>(scheduler);
    return config;
}

// Cycles of both roles, as "role 0 / role 1".
std::string issued(const Config& config, const Kernel& kernel) {
    SmBench bench(config, kernel);
    bench.run();
    CHECK(bench.sm().done());
    std::string text = bench.issued(0);
    text += " / ";
    text += bench.issued(1);
    return text;
}

const Code kStep = work(0);  // takes its slot and nothing else

}  // namespace

// Role 0 works for two cycles and one, role 1 has five steps; one slot a cycle.
TEST(frontend_schedulers) {
    const Kernel kernel = kernel_of({work(2) + kStep, kStep + kStep + kStep + kStep + kStep});
    CHECK_EQ(issued(scheduled(Scheduler::oldest), kernel), "0 2 / 1 3 4 5 6");
    CHECK_EQ(issued(scheduled(Scheduler::gto), kernel), "0 6 / 1 2 3 4 5");  // role 1 goes on while it can
    CHECK_EQ(issued(scheduled(Scheduler::lrr), kernel), "0 2 / 1 3 4 5 6");
}

TEST(frontend_oldest_starves_and_lrr_takes_turns) {
    const Kernel kernel = kernel_of({kStep + kStep + kStep, kStep + kStep + kStep});
    CHECK_EQ(issued(scheduled(Scheduler::oldest), kernel), "0 1 2 / 3 4 5");
    CHECK_EQ(issued(scheduled(Scheduler::gto), kernel), "0 1 2 / 3 4 5");
    CHECK_EQ(issued(scheduled(Scheduler::lrr), kernel), "0 2 4 / 1 3 5");
}

// Two slots: both roles in each cycle, but no role twice.
TEST(frontend_issue_width) {
    Config config = scheduled(Scheduler::gto);
    config.issue_width = 2;
    CHECK_EQ(issued(config, kernel_of({kStep + kStep + kStep, kStep + kStep + kStep})), "0 1 2 / 0 1 2");
    config.issue_width = 1;
    config.launch_cycles = 100;
    CHECK_EQ(issued(config, kernel_of({kStep, kStep})), "100 / 101");
}

TEST(frontend_repeats_take_no_slots) {
    CHECK_EQ(issued(bare(kLatency), kernel_of({kStep + repeat(3, kStep + work(4)) + kStep, {}})),
             "0 1 2 6 7 11 12 16 / ");
}

// Window 1, products of 10 cycles: the second is refused until 10, and role 1 has the slots meanwhile, even under gto.
TEST(frontend_refused_wgmma_takes_no_slot) {
    Config config = scheduled(Scheduler::gto);
    config.wgmma_window_ss = 1;
    CHECK_EQ(issued(config, kernel_of({wgmma(3, 10), kStep + kStep + kStep})), "0 10 20 / 1 2 3");
    config.wgmma_window_ss = 2;
    CHECK_EQ(issued(config, kernel_of({wgmma(3, 10), kStep + kStep + kStep})), "0 1 10 / 2 3 4");
    config.wgmma_issue_cycles = 17;
    CHECK_EQ(issued(config, kernel_of({wgmma(3, 10), kStep})), "0 17 34 / 1");
}

// The product ends at 8 and is done at 8 + 5; the wait issued at 2 goes on then. RS has a tail of its own.
TEST(frontend_waits_for_wgmma_groups) {
    Config config = bare(kLatency);
    config.wgmma_tail_ss_cycles = 5;
    config.wgmma_tail_rs_cycles = 3;
    CHECK_EQ(issued(config, kernel_of({wgmma(1, 8) + wgmma_commit() + wgmma_wait(0) + kStep, {}})), "0 1 2 13 / ");
    CHECK_EQ(issued(config, kernel_of({wgmma(1, 8, true) + wgmma_commit() + wgmma_wait(0) + kStep, {}})),
             "0 1 2 11 / ");
    // One group may be outstanding: nothing to wait for; then the second, done at 16 + 5.
    CHECK_EQ(issued(config, kernel_of({wgmma(1, 8) + wgmma_commit() + wgmma_wait(0, 1) + wgmma(1, 8) + wgmma_commit() +
                                           wgmma_wait(1) + kStep,
                                       {}})),
             "0 1 2 3 4 5 21 / ");
}

// The drain of 45 counts from the group's end (8), so the next product starts at 53; an empty group drains nothing.
TEST(frontend_commit_drains_the_pipe) {
    Config config = bare(kLatency);
    config.group_drain_cycles = 45;
    const Code first = wgmma(1, 8) + wgmma_commit();
    const Code second = wgmma(1, 8) + wgmma_commit() + wgmma_wait(1) + kStep;
    CHECK_EQ(issued(config, kernel_of({first + second, {}})), "0 1 2 3 4 61 / ");
    CHECK_EQ(issued(config, kernel_of({wgmma_commit() + second, {}})), "0 1 2 3 9 / ");
}

// Acquire at 0 costs 7; the copy at 7 starts at 8 and is there at 28. The wait was blocked: it costs the wake-up of 5.
TEST(frontend_waits_that_block_and_that_do_not) {
    Config config = bare(kLatency);
    config.mbarrier_wait_cycles = 7;
    config.mbarrier_wake_cycles = 5;
    Kernel kernel = kernel_of({acquire(0) + bulk(0, 0, 128) + await_fill(0) + await_fill(0) + kStep, {}});
    kernel.rings = {ring()};
    CHECK_EQ(issued(config, kernel), "0 7 8 33 40 / ");  // blocked at 8, woken at 28; then true at once at 33
}

// Role 1 waits for what role 0 loads: a fill is complete when its bytes have come and it is expected.
TEST(frontend_wakes_other_roles) {
    Config config = bare(kLatency);
    Kernel kernel = kernel_of({acquire(0) + bulk(0, 0, 128), await_fill(0) + kStep});
    kernel.rings = {ring()};
    CHECK_EQ(issued(config, kernel), "0 1 / 2 22");  // starts at 2, there at 22
    // Without bytes the acquisition alone completes the fill; role 1 was asleep at 0 and takes part from 6 on.
    Kernel empty = kernel_of({work(5) + acquire(0) + kStep, await_fill(0) + kStep});
    empty.rings = {ring(0)};
    config.issue_width = 2;
    CHECK_EQ(issued(config, empty), "0 5 6 / 0 6");
}

// One stage. The release at 12 is seen at 12 + 6, the acquisition that waits since 1 goes on at 18 + 3.
TEST(frontend_releases_stages) {
    Config config = bare(kLatency);
    config.mbarrier_arrive_cycles = 6;
    config.mbarrier_wake_cycles = 3;
    config.named_arrive_cycles = 4;
    config.named_wake_cycles = 2;
    Kernel kernel = kernel_of({acquire(0) + acquire(1) + kStep, work(10) + release(0)});
    kernel.rings = {ring(0)};
    CHECK_EQ(issued(config, kernel), "0 1 21 / 2 12");  // oldest: role 1 begins at 2
    kernel.rings = {ring(0, 1, 1, true)};
    CHECK_EQ(issued(config, kernel), "0 1 18 / 2 12");  // named: 12 + 4, + 2
    config.mbarrier_arrive_cycles = config.mbarrier_wake_cycles = 0;
    kernel.rings = {ring(0)};
    CHECK_EQ(issued(config, kernel), "0 1 13 / 2 12");  // a cycle at least
}

// Two signals are needed: sent at 3 and 8, seen at 10 and 15; the wake-up costs 4.
TEST(frontend_named_barriers) {
    Config config = bare(kLatency);
    config.named_arrive_cycles = 7;
    config.named_wait_cycles = 9;
    config.named_wake_cycles = 4;
    const Kernel kernel = kernel_of({await_barrier(3, 2) + kStep, work(2) + arrive(3) + work(4) + arrive(3)});
    CHECK_EQ(issued(config, kernel), "0 19 / 1 3 4 8");
    // Both signals are there at 20: the wait goes through and costs 9.
    const Kernel late = kernel_of({work(20) + await_barrier(3, 2) + kStep, arrive(3) + arrive(3)});
    CHECK_EQ(issued(config, late), "0 20 29 / 1 2");
}

// Two rows: lines at 2 and 3 (issued at 1), acknowledged at 22 and 23; read 10 cycles after the last line.
TEST(frontend_waits_for_stores) {
    Config config = bare(kLatency);
    config.store_read_cycles = 10;
    const auto run = [&](bool read) {
        Kernel kernel = kernel_of({kStep + store() + store_commit() + store_wait(0, read) + kStep, {}});
        kernel.maps = {row_map(2)};
        return issued(config, kernel);
    };
    CHECK_EQ(run(true), "0 1 2 3 13 / ");
    CHECK_EQ(run(false), "0 1 2 3 23 / ");
}

TEST(frontend_cuda_cores_private_and_shared) {
    Config config = bare(kLatency);
    const Kernel kernel = kernel_of({work(10) + kStep, work(10) + kStep});
    CHECK_EQ(issued(config, kernel), "0 10 / 1 11");
    config.cuda_shared = true;
    config.quantum_cycles = 64;
    CHECK_EQ(issued(config, kernel), "0 10 / 1 20");  // one after the other
}

// Two tiles. A consumer pays 6 cycles after each, the producer none.
TEST(frontend_tile_edges) {
    Config config = bare(kLatency);
    config.tile_edge_cycles = 6;
    config.issue_width = 2;
    SmBench bench(config, kernel_of({kStep, kStep}, 1, 1, 2));
    bench.run();
    CHECK_EQ(bench.issued(0), "0 1");
    CHECK_EQ(bench.issued(1), "0 7");
    CHECK_EQ(bench.sm().role_end(0), 2);
    CHECK_EQ(bench.sm().role_end(1), 14);  // the edge after the last tile, too
    CHECK_EQ(bench.stats.tiles, 2);
}

// The prologue comes once; fills count from the first tile on, two in each.
TEST(frontend_prologue_and_fills_of_later_tiles) {
    const Config config = bare(kLatency);
    Kernel kernel =
        kernel_of({acquire(0) + acquire(1), await_fill(0) + release(0) + await_fill(1) + release(1)}, 1, 1, 2);
    kernel.rings = {ring(0, 2)};
    kernel.has_prologue = true;
    kernel.prologue.programs = {-1, 2, -1, -1};
    kernel.programs.push_back(program(kStep + kStep));
    SmBench bench(config, kernel);
    bench.run();
    CHECK(bench.sm().done());
    // Role 0 (first): fills 0 and 1 at 0 and 1, then fill 2 at 2, blocked until the release of fill 0.
    // Role 1: prologue at 3 and 4, tile 1 at 5 to 8; fill 0 is released at 7, fill 1 at 9.
    CHECK_EQ(bench.issued(0), "0 1 2 7");
    CHECK_EQ(bench.issued(1), "3 4 5 6 8 9 10 11 12 13");
}

// Role 0, which acquires nothing, asks for the next tile when it begins one, at 0. The answer comes at 40: both roles
// wait for it.
TEST(frontend_asks_the_grid_for_tiles) {
    const Config config = bare(kLatency);
    SmBench bench(config, dynamic_kernel({kStep, kStep + kStep}, 1, 5));
    bench.grant_at(40, {0, 1, 0, 0});
    bench.grant_at(60, {-1, 0, 0, 0});
    bench.run();
    CHECK(bench.sm().done());
    CHECK_EQ(bench.issued(0), "0 40");
    CHECK_EQ(bench.issued(1), "1 2 41 42");
    CHECK_EQ(bench.host.asked.size(), 2U);
    CHECK_EQ(bench.host.asked[0].cycle, 0);
    CHECK_EQ(bench.host.asked[1].cycle, 40);
    CHECK_EQ(bench.sm().role_end(0), 60);  // told that there is none left
}

// Role 0 asks at its last ACQUIRE_STAGE, be the stage free or not.
TEST(frontend_asks_at_the_last_acquire) {
    const Config config = bare(kLatency);
    for (const bool blocked : {false, true}) {
        Kernel kernel = dynamic_kernel(
            {blocked ? work(5) + acquire(0) + acquire(1) : acquire(0) + acquire(1), work(40) + release(0) + release(1)},
            1, 5);
        kernel.rings = {ring(0, blocked ? 1 : 2)};
        SmBench bench(config, kernel);
        bench.grant_at(60, {-1, 0, 0, 0});
        bench.run();
        CHECK(bench.sm().done());
        std::string requests;  // among the releases of stages
        for (const HostEvent& event : bench.host.asked)
            if (event.kind == HostEvent::Kind::tile) requests += std::to_string(event.cycle) + " ";
        CHECK_EQ(requests, blocked ? "6 " : "1 ");
    }
}

// Where each cycle goes, worked out from the programs: a producer that waits for its stage, a consumer that waits for
// the load and then works.
TEST(frontend_accounts_for_every_cycle) {
    Config config = bare(kLatency);
    config.launch_cycles = 10;
    Kernel kernel = kernel_of({acquire(0) + bulk(0, 0, 128) + acquire(1) + bulk(1, 128, 128),
                               await_fill(0) + work(30, Work::softmax) + release(0) + await_fill(1) + release(1)});
    kernel.rings = {ring()};
    SmBench bench(config, kernel);
    bench.run();
    // Role 0: 10 acquire, 11 copy (there at 32), 12 acquire, blocked until the release at 62 is seen at 63; copy at 63
    // (there at 84), ends at 64. Role 1: wait at 13 until 32, softmax 32 to 62, release 62, a slot at 64 as role 0 has
    // that of 63, wait 64 until 84, release 84, ends at 85.
    CHECK_EQ(bench.issued(0), "10 11 12 63");
    CHECK_EQ(bench.issued(1), "13 32 62 64 84");
    const Cycle end = 85;
    CHECK_EQ(bench.sm().end_cycle(), end);
    bench.sm().close_accounts(end);
    CHECK_EQ(bench.stalls(0, Reason::launch), 10);
    CHECK_EQ(bench.stalls(0, Reason::acquire_stage), 1 + (63 - 12));
    CHECK_EQ(bench.stalls(0, Reason::issue), 2);
    CHECK_EQ(bench.stalls(0, Reason::tail), end - 64);
    CHECK_EQ(bench.stalls(1, Reason::launch), 13);
    CHECK_EQ(bench.stalls(1, Reason::wait_k), (32 - 13) + (84 - 64));
    CHECK_EQ(bench.stalls(1, Reason::softmax), 30);
    CHECK_EQ(bench.stalls(1, Reason::issue), (64 - 62) + 1);
    for (int role = 0; role < 2; ++role) {
        std::int64_t sum = 0;
        for (const std::int64_t cycles : bench.stats.stalls[static_cast<std::size_t>(role)]) sum += cycles;
        CHECK_EQ(sum, end);
    }
}

TEST(frontend_says_what_roles_wait_for) {
    Kernel kernel = kernel_of({await_barrier(3, 2), acquire(0) + await_fill(0)});
    kernel.rings = {ring()};
    SmBench bench(bare(kLatency), kernel);
    bench.run();
    CHECK(!bench.sm().done());
    const std::string text = bench.sm().describe_waits();
    CHECK(text.find("role 0 at @0:0 waits for named barrier 3 (0 of 2 signals)") != std::string::npos);
    CHECK(text.find("role 1 at @1:1 waits for fill 0 of ring #0 (stage 0, 0 of 128 bytes arrived)") !=
          std::string::npos);
}

}  // namespace simfa
