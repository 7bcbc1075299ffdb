#include "dram_channel.hpp"

#include <algorithm>
#include <stdexcept>

namespace simfa {

namespace {

constexpr std::int64_t kMostTicks = std::int64_t{1} << 22;  // leaves room for 2^41 cycles

void require(bool holds, const char* rule) {
    if (!holds) throw std::invalid_argument(rule);
}

void check(const DramChannelConfig& config) {
    require(config.ticks_numerator >= 1 && config.ticks_numerator <= kMostTicks && config.ticks_denominator >= 1 &&
                config.ticks_denominator <= kMostTicks,
            "DRAM clock: expected half clocks in an SM cycle as a fraction of numbers up to 2^22");
    require(config.line_bytes % config.organisation.burst_bytes == 0, "l2.line_bytes: expected whole DRAM bursts");
    require(config.sector_bytes >= 1 && config.line_bytes % config.sector_bytes == 0 &&
                config.line_bytes / config.sector_bytes <= kMostSectors,
            "l2.sector_bytes: expected up to 8 sectors a line");
    require(config.sector_bytes % config.organisation.burst_bytes == 0 ||
                config.organisation.burst_bytes % config.sector_bytes == 0,
            "l2.sector_bytes: expected whole DRAM bursts, or whole sectors in one");
    const std::int32_t bursts = config.line_bytes / config.organisation.burst_bytes;
    require(bursts <= config.control.read_queue_entries && bursts <= config.control.write_queue_entries,
            "memory.dram queue entries: expected room for the bursts of a line");
    require(config.map != nullptr, "DRAM channel: expected an address mapping");
    require(config.path_cycles >= 0, "memory.dram.path_latency_ns: expected 0 cycles or more");
}

}  // namespace

DramChannel::DramChannel(const DramChannelConfig& config)
    : controller_((check(config), config.organisation), config.timing, config.control),
      map_(config.map),
      ticks_numerator_(config.ticks_numerator),
      ticks_denominator_(config.ticks_denominator),
      bursts_(config.line_bytes / config.organisation.burst_bytes),
      all_(all_sectors(config.line_bytes / config.sector_bytes)),
      path_cycles_(config.path_cycles),
      shortest_read_(Tick{2} * (config.timing.read_latency + config.timing.burst) + config.timing.controller_ticks),
      controller_ticks_(config.timing.controller_ticks) {
    const std::int32_t sectors = config.line_bytes / config.sector_bytes;
    const SectorMask of_burst = all_sectors(std::max(1, config.organisation.burst_bytes / config.sector_bytes));
    for (std::int32_t i = 0; i < bursts_; ++i) burst_sectors_.push_back(of_burst << (i * sectors / bursts_));
}

// A full queue has room at the controller's next command at the earliest.
Cycle DramChannel::earliest_write(Cycle now) {
    catch_up(first_tick(now));
    collect();
    return controller_.accepts(true, bursts_) ? now : std::max(first_cycle(controller_.next_event()), now + 1);
}

void DramChannel::read(std::uint32_t local, SectorMask sectors, Cycle now, std::uint32_t token) {
    if (lines_.size() <= token) lines_.resize(token + std::size_t{1});
    const std::int32_t bursts = bursts_of(sectors);
    lines_[token] = {bursts, 0};
    const Tick tick = first_tick(now);
    catch_up(tick);
    if (waiting_.empty() && controller_.accepts(false, bursts))
        push(local, sectors, false, tick, token);
    else
        waiting_.push({local, token, sectors, bursts});
    collect();
}

void DramChannel::write(std::uint32_t local, SectorMask sectors, Cycle now) {
    const Tick tick = first_tick(now);
    catch_up(tick);
    push(local, sectors, true, tick, 0);
    collect();
}

void DramChannel::advance(Cycle now) {
    catch_up(now * ticks_numerator_ / ticks_denominator_);
    collect();
}

// Runs the controller up to `until`, command by command while reads wait for a place in its queue.
void DramChannel::catch_up(Tick until) {
    while (!waiting_.empty()) {
        const WaitingRead& read = waiting_.front();
        if (controller_.accepts(false, read.bursts)) {
            push(read.local, read.sectors, false, tick_, read.token);
            waiting_.pop();
        } else if (controller_.next_event() <= until) {
            tick_ = std::max(tick_, controller_.next_event());
            controller_.advance(tick_);
        } else {
            break;
        }
    }
    tick_ = std::max(tick_, until);
    controller_.advance(tick_);
}

std::int32_t DramChannel::bursts_of(SectorMask sectors) const {
    if (sectors == all_) return bursts_;
    return static_cast<std::int32_t>(
        std::ranges::count_if(burst_sectors_, [sectors](SectorMask of_burst) { return (of_burst & sectors) != 0; }));
}

void DramChannel::push(std::uint32_t local, SectorMask sectors, bool write, Tick tick, std::uint32_t token) {
    const std::uint32_t first = local * static_cast<std::uint32_t>(bursts_);
    for (std::int32_t i = 0; i < bursts_; ++i)
        if ((burst_sectors_[static_cast<std::size_t>(i)] & sectors) != 0)
            controller_.push(map_->place(first + static_cast<std::uint32_t>(i)), write, tick, token);
}

// A read is complete with its last burst. A burst that still waits is complete no sooner than if the next command were
// its read; one that finds a write in the queue, when it gets there, at once.
void DramChannel::collect() {
    for (const DramController::Done& done : controller_.done()) {
        Line& line = lines_[done.id];
        line.end = std::max(line.end, done.tick);
        if (--line.bursts_left == 0) complete(first_cycle(line.end) + path_cycles_, done.id);
    }
    controller_.done().clear();
    not_before_ = kNever;
    if (controller_.reads_waiting() == 0 && waiting_.empty()) return;
    const Tick shortest = waiting_.empty() ? shortest_read_ : controller_ticks_;
    not_before_ = first_cycle(controller_.next_event() + shortest) + path_cycles_;
}

}  // namespace simfa
