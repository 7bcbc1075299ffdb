#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <vector>

#include "check.hpp"
#include "cuda_core.hpp"

namespace simfa {

namespace {

struct Job {
    Cycle issued;
    int role;
    std::int32_t work;
};

Config quanta(std::int32_t quantum_cycles, bool round_robin, double pressure = 0) {
    Config config;
    config.quantum_cycles = quantum_cycles;
    config.cuda_round_robin = round_robin;
    config.register_pressure_ppm = static_cast<std::int32_t>(pressure * 1e6);
    return config;
}

// Cycles at which the roles' jobs end; `pipe_busy_until` is when the tensor pipe gets free.
std::array<Cycle, kMaxRoles> ends_of(const Config& config, const std::vector<Job>& jobs, Cycle pipe_busy_until = 0) {
    TensorCore pipe(config);
    if (pipe_busy_until > 0) pipe.issue(false, 0, static_cast<std::int32_t>(pipe_busy_until));
    CudaCore server(config, pipe);
    std::array<Cycle, kMaxRoles> ends{};
    std::size_t next = 0;
    while (next < jobs.size() || server.next() != kNever) {
        // Quanta end in phase 3, jobs come in phase 4 of a cycle.
        if (next == jobs.size() || server.next() <= jobs[next].issued) {
            const Cycle now = server.next();
            const int role = server.end_quantum();
            if (role >= 0) ends[role] = now;
        } else {
            server.enqueue(jobs[next].role, jobs[next].work, jobs[next].issued);
            ++next;
        }
    }
    return ends;
}

}  // namespace

TEST(cuda_core_serves_a_lone_job_at_once) {
    CHECK_EQ(ends_of(quanta(10, true), {{7, 2, 33}})[2], 40);
    CHECK_EQ(ends_of(quanta(10, false), {{7, 2, 33}})[2], 40);
}

// Quanta of 10: role 0 0-10, role 1 10-20, role 0 20-30, role 1 30-35 (done), role 0 35-40 (done).
TEST(cuda_core_round_robin_takes_turns) {
    const auto ends = ends_of(quanta(10, true), {{0, 0, 25}, {3, 1, 15}});
    CHECK_EQ(ends[1], 35);
    CHECK_EQ(ends[0], 40);
}

TEST(cuda_core_fifo_finishes_one_job_first) {
    const auto ends = ends_of(quanta(10, false), {{0, 0, 25}, {3, 1, 15}});
    CHECK_EQ(ends[0], 25);
    CHECK_EQ(ends[1], 40);
}

// A job issued at 10 comes after the quantum that begins at 10 (phase 3 before phase 4): role 0 has 0-10 and 10-20.
TEST(cuda_core_job_at_a_boundary_waits_for_the_next) {
    const auto ends = ends_of(quanta(10, true), {{0, 0, 25}, {10, 1, 15}});
    CHECK_EQ(ends[0], 35);  // 0-20, 30-35
    CHECK_EQ(ends[1], 40);  // 20-30, 35-40
}

// 0-10 role 0; then roles 1, 2, 0 in the order in which they queued.
TEST(cuda_core_round_robin_of_three) {
    const auto ends = ends_of(quanta(10, true), {{0, 0, 20}, {1, 1, 20}, {2, 2, 20}});
    CHECK_EQ(ends[0], 40);  // 0-10, 30-40
    CHECK_EQ(ends[1], 50);  // 10-20, 40-50
    CHECK_EQ(ends[2], 60);
}

// A half more while the pipe is busy: 10 + 5 cycles; at 15 the pipe (free at 12) no longer disturbs the last 5.
TEST(cuda_core_is_slowed_down_by_the_tensor_pipe) {
    CHECK_EQ(ends_of(quanta(10, true, 0.5), {{0, 0, 15}}, 12)[0], 20);
    CHECK_EQ(ends_of(quanta(10, true, 0.5), {{0, 0, 15}}, 16)[0], 15 + 8);  // 5 + ceil(2.5) as well
    CHECK_EQ(ends_of(quanta(10, false, 0.37), {{0, 0, 3}}, 100)[0], 5);     // 3 + ceil(1.11)
    CHECK_EQ(ends_of(quanta(10, true, 0.5), {{0, 0, 15}})[0], 15);          // idle pipe
}

TEST(cuda_core_counts_its_work) {
    const Config config = quanta(10, true);
    const TensorCore pipe(config);
    CudaCore server(config, pipe);
    server.enqueue(0, 25, 0);
    server.enqueue(1, 15, 3);
    CHECK_EQ(server.busy_cycles(7), 7);  // in the middle of the first quantum
    while (server.next() != kNever) server.end_quantum();
    CHECK_EQ(server.busy_cycles(40), 40);
    CHECK_EQ(server.busy_cycles(100), 40);
    CHECK_EQ(server.served_cycles(0), 25);
    CHECK_EQ(server.served_cycles(1), 15);
}

// Random jobs against a server that looks at every quantum.
TEST(cuda_core_agrees_with_a_server_that_stops_at_every_quantum) {
    std::mt19937 random(11);
    for (int round = 0; round < 300; ++round) {
        const std::int32_t quantum = 1 + static_cast<std::int32_t>(random() % 12);
        const bool round_robin = random() % 2 != 0;
        const double pressure = random() % 2 != 0 ? 0.37 : 0;
        const Cycle busy_until = static_cast<Cycle>(random() % 80);
        std::vector<Job> jobs;  // one for each role, as a role waits for its job
        for (int role = 0; role < kMaxRoles; ++role)
            jobs.push_back({static_cast<Cycle>(random() % 60), role, 1 + static_cast<std::int32_t>(random() % 40)});
        std::stable_sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.issued < b.issued; });

        std::array<Cycle, kMaxRoles> expected{};
        std::deque<Job> queue;
        std::size_t next = 0;
        Cycle end = kNever;
        std::int32_t base = 0;
        const auto begin = [&](Cycle now) {
            base = std::min(quantum, queue.front().work);
            const auto ppm = static_cast<std::int64_t>(pressure * 1e6);
            end = now + base + (busy_until > now ? (base * ppm + 999999) / 1000000 : 0);
        };
        for (Cycle now = 0; next < jobs.size() || !queue.empty(); ++now) {
            if (!queue.empty() && end == now) {
                queue.front().work -= base;
                const Job job = queue.front();
                if (job.work == 0) {
                    expected[job.role] = now;
                    queue.pop_front();
                } else if (round_robin) {
                    queue.pop_front();
                    queue.push_back(job);
                }
                if (!queue.empty()) begin(now);
            }
            for (; next < jobs.size() && jobs[next].issued == now; ++next) {
                queue.push_back(jobs[next]);
                if (queue.size() == 1) begin(now);
            }
        }
        const auto found = ends_of(quanta(quantum, round_robin, pressure), jobs, busy_until);
        for (int role = 0; role < kMaxRoles; ++role) CHECK_EQ(found[role], expected[role]);
    }
}

// Twice the work while the tensor pipe is busy: more cycles than 32 bits hold.
TEST(cuda_core_counts_long_service) {
    constexpr std::int32_t most = 2147483647;
    const Config config = quanta(most, false, 1.0);
    TensorCore pipe(config);
    pipe.issue(false, 0, most);
    CudaCore server(config, pipe);
    server.enqueue(0, most, 0);
    CHECK_EQ(server.next(), 2 * Cycle{most});
    CHECK_EQ(server.end_quantum(), 0);
    CHECK_EQ(server.served_cycles(0), 2 * Cycle{most});
}

}  // namespace simfa
