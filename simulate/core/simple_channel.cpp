#include "simple_channel.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace simfa {

namespace {

constexpr std::int64_t kMillion = 1000000;
constexpr std::int64_t kFineUnits = std::int64_t{1} << 20;  // times but a whole read line's are rounded to such a part
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
    require(config.sectors >= 1 && config.sectors <= kMostSectors, "sectors of a line: expected 1 to 8");
    const std::int64_t scale = std::max<std::int64_t>(1, kFineUnits / config.line_cycles_denominator);
    units_per_cycle_ = config.line_cycles_denominator * scale;
    const std::int64_t read_units = config.line_cycles_numerator * scale;
    const std::int64_t write_units = std::max<std::int64_t>(
        1, std::llround(static_cast<double>(read_units) * static_cast<double>(config.write_cost_ppm) / kMillion));
    for (std::int64_t count = 1; count <= config.sectors; ++count) {
        read_units_[count] = (read_units * count + config.sectors - 1) / config.sectors;
        write_units_[count] = (write_units * count + config.sectors - 1) / config.sectors;
    }
    backlog_units_ = write_units * (config.write_queue_entries - 1);
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

void SimpleChannel::read(std::uint32_t, SectorMask sectors, Cycle now, std::uint32_t token) {
    const std::int64_t start = serve(now, read_units_[sector_count(sectors)]);
    complete((start + units_per_cycle_ - 1) / units_per_cycle_ + latency_cycles_, token);
}

void SimpleChannel::write(std::uint32_t, SectorMask sectors, Cycle now) {
    serve(now, write_units_[sector_count(sectors)]);
}

}  // namespace simfa
