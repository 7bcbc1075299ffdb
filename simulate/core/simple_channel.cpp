#include "simple_channel.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace simfa {

namespace {

constexpr std::int64_t kMillion = 1000000;
constexpr std::int64_t kFineUnits = std::int64_t{1} << 20;  // a write's time is rounded to such a part of a cycle
constexpr std::int64_t kMostUnits = std::int64_t{1} << 24;  // leaves room for 2^39 cycles

void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

}  // namespace

// Time is counted in whole units of 1 / (denominator x k) cycles, so that the rate of reads is exact.
SimpleChannel::SimpleChannel(const SimpleChannelConfig& config) : latency_cycles_(config.latency_cycles) {
    require(config.latency_cycles >= 0, "memory latency: expected 0 cycles or more");
    require(config.line_cycles_numerator >= 1 && config.line_cycles_denominator >= 1,
            "memory cycles per line: expected a fraction above zero");
    require(config.line_cycles_denominator <= kMostUnits && config.line_cycles_numerator <= kMostUnits * kMillion,
            "memory cycles per line: expected a denominator up to 2^24 and a numerator up to 2^24 million");
    require(config.write_cost_ppm >= 1 && config.write_cost_ppm <= kMillion * kMillion,
            "memory write cost: expected between one millionth and one million");
    require(config.write_queue_entries >= 1, "memory write queue: expected one entry or more");
    const std::int64_t scale = std::max<std::int64_t>(1, kFineUnits / config.line_cycles_denominator);
    units_per_cycle_ = config.line_cycles_denominator * scale;
    read_units_ = config.line_cycles_numerator * scale;
    write_units_ = std::max<std::int64_t>(
        1, std::llround(static_cast<double>(read_units_) * static_cast<double>(config.write_cost_ppm) / kMillion));
    backlog_units_ = write_units_ * (config.write_queue_entries - 1);
}

std::int64_t SimpleChannel::serve(Cycle now, std::int64_t units) {
    const std::int64_t start = std::max(now * units_per_cycle_, free_);
    free_ = start + units;
    return start;
}

Cycle SimpleChannel::earliest_write(Cycle now) {
    const std::int64_t accepted = free_ - backlog_units_;
    return accepted <= now * units_per_cycle_ ? now : (accepted + units_per_cycle_ - 1) / units_per_cycle_;
}

void SimpleChannel::read(std::uint32_t, Cycle now, std::uint32_t token) {
    const std::int64_t start = serve(now, read_units_);
    complete((start + units_per_cycle_ - 1) / units_per_cycle_ + latency_cycles_, token);
}

void SimpleChannel::write(std::uint32_t, Cycle now) { serve(now, write_units_); }

}  // namespace simfa
