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
      path_cycles_(config.path_cycles) {}

// A full queue has room at the controller's next command at the earliest.
Cycle DramChannel::earliest(bool write, Cycle now) const {
    return controller_.accepts(write, bursts_) ? now : std::max(next_work_, now + 1);
}

void DramChannel::read(std::uint32_t local, Cycle now, std::uint32_t token) {
    if (lines_.size() <= token) lines_.resize(token + std::size_t{1});
    lines_[token] = {bursts_, 0};
    push(local, false, now, token);
}

void DramChannel::write(std::uint32_t local, Cycle now) { push(local, true, now, 0); }

void DramChannel::push(std::uint32_t local, bool write, Cycle now, std::uint32_t token) {
    const Tick tick = first_tick(now);
    controller_.advance(tick);
    const std::uint32_t first = local * static_cast<std::uint32_t>(bursts_);
    for (std::int32_t i = 0; i < bursts_; ++i)
        controller_.push(map_->place(first + static_cast<std::uint32_t>(i)), write, tick, token);
    collect();
}

void DramChannel::advance(Cycle now) {
    if (now < next_work_) return;
    controller_.advance(now * ticks_numerator_ / ticks_denominator_);
    collect();
}

// A line is complete with its last burst.
void DramChannel::collect() {
    for (const DramController::Done& done : controller_.done()) {
        Line& line = lines_[done.id];
        line.end = std::max(line.end, done.tick);
        if (--line.bursts_left == 0) complete(first_cycle(line.end) + path_cycles_, done.id);
    }
    controller_.done().clear();
    next_work_ = first_cycle(controller_.next_event());
}

}  // namespace simfa
