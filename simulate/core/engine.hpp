// The window-synchronous engine: all units run a window alone, then their messages reach the next one.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "config.hpp"
#include "grid.hpp"
#include "mailbox.hpp"
#include "pair.hpp"
#include "program.hpp"
#include "slice.hpp"
#include "stats.hpp"
#include "types.hpp"

namespace simfa {

// Chip-wide totals of a run.
struct Totals {
    PairStats pairs;
    SliceStats slices;
    DramStats dram;
    Cycle cycles = 0;
    std::int64_t sms_used = 0;
};

class Engine {
  public:
    // Throws std::invalid_argument for a kernel or configuration that cannot run.
    Engine(const Config& config, Kernel kernel);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // Functional warming before the run: leaves L2 as reads of `lines` by SM `sm`, in order, would, in no time.
    // Throws std::invalid_argument for an SM or a line that does not exist, and once the run has begun.
    void warm(std::span<const std::uint32_t> lines, int sm);

    // Simulates at least `cycles` more cycles unless the run is over; returns true when it is: the kernel has ended, or
    // `max_cycles` are simulated. Throws std::runtime_error when nothing can ever happen again and roles still wait.
    bool advance(Cycle cycles);

    // The same for about so many seconds of host time.
    bool run_for(double seconds);

    Cycle now() const { return window_start_; }
    Cycle window_cycles() const { return window_cycles_; }
    // Whether the run was stopped before the kernel's end.
    bool partial() const { return over_ && !ended_; }
    // Totals so far; all accounts are closed when the run is over.
    Totals totals() const;
    std::vector<Issue> issues() const;
    std::vector<TimelineSlice> timeline() const;
    std::vector<TimelineTile> timeline_tiles() const;
    // Slices recorded so far.
    std::int64_t timeline_size() const;
    // Rows of the chip's counters, once the run is over: cycle; counts so far of reads that hit and that missed in L2,
    // and of bytes read from and written to memory; entries of MSHRs, requests and responses that wait; lines in flight
    // of the chip, and of each SM of the choice.
    std::vector<std::vector<std::int64_t>> timeline_counters() const;
    Cycle role_end(int cta, int role) const;
    // Tiles begun so far by all CTAs, for progress.
    std::int64_t tiles_begun() const;
    const Kernel& kernel() const { return kernel_; }
    const Config& config() const { return config_; }

  private:
    void run_units(int thread);
    void run_share(int thread);
    void run_window();
    void step();
    void worker(int thread);
    bool finished() const;
    bool drained() const;
    void close_accounts();
    Cycle next_event() const;
    std::string describe_hang() const;

    Config config_;
    Kernel kernel_;
    int threads_;
    Cycle window_cycles_;
    Cycle window_start_ = 0;
    Cycle window_end_ = 0;
    bool ended_ = false;  // the kernel
    bool over_ = false;   // the run
    std::int64_t windows_ = 0;
    std::unique_ptr<Mailboxes> pair_boxes_;
    std::unique_ptr<Mailboxes> slice_boxes_;
    std::unique_ptr<Mailboxes> grid_box_;
    std::vector<std::unique_ptr<Pair>> pairs_;
    std::vector<std::unique_ptr<Slice>> slices_;
    std::unique_ptr<Grid> grid_;
    std::vector<Outbox> outboxes_;
    std::vector<std::exception_ptr> failures_;  // by thread
    std::vector<std::thread> workers_;
    std::atomic<std::int64_t> epoch_{0};  // windows begun, for the workers
    std::atomic<int> running_{0};
    std::atomic<bool> stop_{false};
};

}  // namespace simfa
