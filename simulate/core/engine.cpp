#include "engine.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "check_kernel.hpp"
#include "simple_channel.hpp"

namespace simfa {

namespace {

// No message takes effect sooner than this after it was sent, so units can run that long without looking at each other.
Cycle shortest_latency(const Config& config, const Kernel& kernel) {
    Cycle shortest = 4096;
    if (config.ideal_latency_cycles == 0) {
        shortest = std::min<Cycle>(shortest, config.near_latency_cycles / 2);
        if (config.remote_copy)
            shortest = std::min<Cycle>(shortest, (config.far_latency_cycles - config.near_latency_cycles) / 2);
    }
    if (kernel.dynamic) shortest = std::min<Cycle>(shortest, config.tile_fetch_cycles / 2);
    return std::max<Cycle>(1, shortest);
}

SliceConfig slice_config(const Config& config, int index) {
    SliceConfig slice;
    slice.index = index;
    slice.slices = config.slices;
    slice.pairs = config.sms / 2;
    slice.hash = static_cast<HashKind>(config.hash);
    slice.sets = config.sets;
    slice.ways = config.ways;
    slice.sectors = config.sectors();
    slice.fetch_sectors = config.fetch_bytes / config.sector_bytes;
    slice.service_interval_cycles = config.slice_service_cycles;
    slice.request_queue_entries = config.request_queue_entries;
    slice.response_queue_entries = config.response_queue_entries;
    slice.mshr_entries = config.mshr_entries;
    slice.mshr_merges = config.mshr_merges;
    slice.near_latency_cycles = config.near_latency_cycles;
    slice.far_latency_cycles = config.far_latency_cycles;
    slice.remote_copy = config.remote_copy;
    slice.remote_copy_probability_ppm = config.remote_copy_probability_ppm;
    slice.remote_copy_threshold_ppm = config.remote_copy_threshold_ppm;
    slice.seed = static_cast<std::uint64_t>(config.seed);
    slice.sampler = Sampler(config.timeline);
    return slice;
}

std::unique_ptr<MemoryChannel> make_channel(const Config& config, int index) {
    if (config.dram != nullptr) {
        DramChannelConfig dram = *config.dram;
        dram.sector_bytes = config.sector_bytes;
        dram.control.channel = index;
        dram.control.channels = config.slices;
        return std::make_unique<DramChannel>(dram);
    }
    SimpleChannelConfig channel;
    channel.latency_cycles = config.channel_latency_cycles;
    channel.line_cycles_numerator = config.channel_line_cycles_numerator;
    channel.line_cycles_denominator = config.channel_line_cycles_denominator;
    channel.write_cost_ppm = config.channel_write_cost_ppm;
    channel.write_queue_entries = config.channel_write_queue_entries;
    channel.sectors = config.sectors();
    return std::make_unique<SimpleChannel>(channel);
}

}  // namespace

Engine::Engine(const Config& config, Kernel kernel)
    : config_(config), kernel_(std::move(kernel)), threads_(std::max(1, config.threads)) {
    check_kernel(config_, kernel_);
    const Cycle longest_window = shortest_latency(config_, kernel_);
    window_cycles_ =
        config_.window_cycles > 0 ? std::min<Cycle>(config_.window_cycles, longest_window) : longest_window;
    const int pairs = config_.sms / 2;
    const int slices = config_.ideal_latency_cycles > 0 ? 0 : config_.slices;
    threads_ = std::min(threads_, pairs);
    // A tile request then reaches the grid in the cycle, and so in the window, in which it is sent.
    if (kernel_.dynamic && config_.tile_fetch_cycles < 2) threads_ = 1;
    const Cycle latency = slice_config(config_, 0).longest_message_cycles() + config_.tile_fetch_cycles;
    pair_boxes_ = std::make_unique<Mailboxes>(pairs, threads_, window_cycles_, latency);
    slice_boxes_ = std::make_unique<Mailboxes>(slices, threads_, window_cycles_, latency);
    grid_box_ = std::make_unique<Mailboxes>(1, threads_, window_cycles_, config_.tile_fetch_cycles);
    for (int i = 0; i < pairs; ++i) pairs_.push_back(std::make_unique<Pair>(config_, kernel_, i, pairs));
    for (int i = 0; i < slices; ++i)
        slices_.push_back(std::make_unique<Slice>(slice_config(config_, i), make_channel(config_, i)));
    grid_ = std::make_unique<Grid>(config_, kernel_);
    for (int t = 0; t < threads_; ++t) {
        outboxes_.push_back({pair_boxes_.get(), slice_boxes_.get(), t});
        for (int i = pairs * t / threads_; i < pairs * (t + 1) / threads_; ++i)
            pairs_[i]->connect(outboxes_[t], grid_box_.get());
    }
    window_start_ = std::min(config_.launch_cycles / window_cycles_ * window_cycles_, config_.max_cycles);
    failures_.resize(threads_);
    for (int t = 1; t < threads_; ++t) workers_.emplace_back([this, t] { worker(t); });
}

Engine::~Engine() {
    stop_.store(true, std::memory_order_release);
    epoch_.fetch_add(1, std::memory_order_release);
    for (std::thread& thread : workers_) thread.join();
}

// Runs this thread's share of all units for the present window.
void Engine::run_units(int thread) {
    Outbox& outbox = outboxes_[thread];
    const Cycle begin = window_start_;
    const Cycle end = window_end_;
    const int pairs = static_cast<int>(pairs_.size());
    const int slices = static_cast<int>(slices_.size());
    for (int i = pairs * thread / threads_; i < pairs * (thread + 1) / threads_; ++i)
        pairs_[i]->run(begin, end, pair_boxes_->open(i, begin, thread));
    for (int i = slices * thread / threads_; i < slices * (thread + 1) / threads_; ++i)
        slices_[i]->run(begin, end, slice_boxes_->open(i, begin, thread), outbox);
    if (thread == 0 && kernel_.dynamic) grid_->run(begin, grid_box_->open(0, begin, thread), outbox);
}

// An exception of a worker thread is kept for `run_window` to throw.
void Engine::run_share(int thread) {
    try {
        run_units(thread);
    } catch (...) {
        failures_[thread] = std::current_exception();
    }
}

void Engine::worker(int thread) {
    for (std::int64_t seen = 0;;) {
        for (int spins = 0; epoch_.load(std::memory_order_acquire) == seen; ++spins)
            if (spins > 4096) std::this_thread::yield();
        ++seen;
        if (stop_.load(std::memory_order_acquire)) return;
        run_share(thread);
        running_.fetch_sub(1, std::memory_order_acq_rel);
    }
}

void Engine::run_window() {
    window_end_ = std::min(window_start_ + window_cycles_, config_.max_cycles);
    if (threads_ > 1) {
        running_.store(threads_ - 1, std::memory_order_relaxed);
        epoch_.fetch_add(1, std::memory_order_release);
    }
    run_share(0);
    if (threads_ > 1)
        for (int spins = 0; running_.load(std::memory_order_acquire) > 0; ++spins)
            if (spins > 4096) std::this_thread::yield();
    for (const std::exception_ptr& failure : failures_)
        if (failure) std::rethrow_exception(failure);
    window_start_ = window_end_;
}

void Engine::warm(std::span<const std::uint32_t> lines, int sm) {
    if (windows_ > 0) throw std::invalid_argument("L2 can be warmed before the run only");
    if (sm < 0 || sm >= config_.sms) throw std::invalid_argument("no SM " + std::to_string(sm) + " to warm L2 for");
    if (slices_.empty()) throw std::invalid_argument("ideal memory has no L2 to warm");
    const LineHash hash(static_cast<HashKind>(config_.hash), config_.slices);
    const int side = side_of(sm / 2, config_.sms / 2);
    constexpr std::size_t kAhead = 8;  // lines whose sets are asked for from the host's memory early
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::uint32_t line = lines[i];
        check_line_limit(line, static_cast<std::uint64_t>(config_.line_bytes));
        if (const std::size_t later = i + kAhead; later < lines.size()) {
            const int slice = static_cast<int>(hash.slice_of(lines[later]));
            slices_[slice]->prefetch(lines[later]);
            if (config_.remote_copy) slices_[(slice + config_.slices / 2) % config_.slices]->prefetch(lines[later]);
        }
        const int home = static_cast<int>(hash.slice_of(line));
        const bool far = config_.remote_copy && side_of(home, config_.slices) != side;
        Slice& twin = *slices_[(home + config_.slices / 2) % config_.slices];
        if (far && twin.warm_far(line)) continue;
        slices_[home]->warm(line);
        if (far) twin.warm_copy(line);
    }
}

bool Engine::advance(Cycle cycles) {
    const Cycle target = std::min(window_start_ + cycles, config_.max_cycles);
    do step();
    while (!over_ && window_start_ < target);
    return over_;
}

bool Engine::run_for(double seconds) {
    const auto begin = std::chrono::steady_clock::now();
    const std::chrono::duration<double> limit(seconds);
    do step();
    while (!over_ && std::chrono::steady_clock::now() - begin < limit);
    return over_;
}

// Simulates one window and, now and then, skips those in which nothing happens.
void Engine::step() {
    if (over_) return;
    if (window_start_ >= kMostCycles && config_.max_cycles > kMostCycles)
        throw std::runtime_error("the run has come to cycle " + std::to_string(window_start_) +
                                 "; the engine counts no further than " + std::to_string(kMostCycles));
    if (window_start_ < config_.max_cycles) run_window();
    ended_ = finished();
    if (!ended_ && windows_++ % 256 == 0) {
        const Cycle next = next_event();
        if (next == kNever) throw std::runtime_error(describe_hang());
        const Cycle start = std::min(next / window_cycles_ * window_cycles_, config_.max_cycles);
        window_start_ = std::max(window_start_, start);
    }
    if (!ended_ && window_start_ < config_.max_cycles) return;
    // Lines that replaced ones still write back, so that counts do not depend on the window in which the kernel ended.
    while (ended_ && !drained() && window_start_ < config_.max_cycles) run_window();
    close_accounts();
}

bool Engine::finished() const {
    return std::all_of(pairs_.begin(), pairs_.end(), [](const auto& pair) { return pair->done(); });
}

bool Engine::drained() const {
    return std::all_of(slices_.begin(), slices_.end(), [](const auto& slice) { return slice->idle(); });
}

void Engine::close_accounts() {
    over_ = true;
    const Cycle end = totals().cycles;
    for (const auto& pair : pairs_) pair->close_accounts(end);
    for (const auto& slice : slices_) slice->close_samples(end);
}

// First cycle from the present window on at which any unit does something or a message arrives.
Cycle Engine::next_event() const {
    Cycle next = kNever;
    for (const auto& pair : pairs_) next = std::min(next, pair->next_event());
    for (const auto& slice : slices_) next = std::min(next, slice->next_event());
    for (const auto* boxes : {&pair_boxes_, &slice_boxes_, &grid_box_})
        next = std::min(next, (*boxes)->next_window(window_start_));
    return next;
}

std::string Engine::describe_hang() const {
    std::string text = "nothing can happen any more at cycle " + std::to_string(window_start_) + "\n";
    int listed = 0;
    for (const auto& pair : pairs_)
        for (int i = 0; i < 2; ++i)
            if (!pair->sm(i).done() && listed++ < 2) text += pair->sm(i).describe_waits();
    if (listed > 2) text += "and " + std::to_string(listed - 2) + " more CTAs\n";
    return text;
}

Totals Engine::totals() const {
    Totals totals;
    for (const auto& pair : pairs_) {
        totals.pairs += pair->stats();
        totals.cycles = std::max(totals.cycles, pair->end_cycle());
        for (int i = 0; i < 2; ++i) totals.sms_used += pair->sm(i).has_cta();
    }
    for (const auto& slice : slices_) {
        totals.slices += slice->stats(window_start_);
        totals.dram += slice->dram_stats();
    }
    if (!ended_) totals.cycles = window_start_;
    return totals;
}

std::vector<Issue> Engine::issues() const {
    std::vector<Issue> all;
    for (const auto& pair : pairs_)
        for (int i = 0; i < 2; ++i) {
            const std::vector<Issue>& part = pair->sm(i).issues();
            all.insert(all.end(), part.begin(), part.end());
        }
    return all;
}

Cycle Engine::role_end(int cta, int role) const { return pairs_[cta / 2]->sm(cta & 1).role_end(role); }

std::int64_t Engine::tiles_begun() const {
    std::int64_t tiles = 0;
    for (const auto& pair : pairs_) tiles += pair->stats().tiles;
    return tiles;
}

}  // namespace simfa
