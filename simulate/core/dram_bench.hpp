// Drives one DRAM controller as fast as its queues accept, to compare it with closed forms and other simulators.
#pragma once

#include <cstdint>
#include <span>

#include "address_map.hpp"
#include "dram_config.hpp"
#include "dram_controller.hpp"

namespace simfa {

struct DramBenchResult {
    Tick ticks = 0;                       // until the last data, in half clocks
    std::int64_t read_latency_ticks = 0;  // summed over reads: from acceptance to data
    std::int64_t read_wait_ticks = 0;     // and from offer to acceptance
    std::int64_t reads = 0;
    DramStats stats;
};

// Offers burst `bursts[i]`, a write where `writes[i]` is not 0, as soon as all earlier ones have been accepted.
DramBenchResult run_dram_bench(const DramOrganisation& organisation, const DramTiming& timing,
                               const DramControl& control, const AddressMap& map, std::span<const std::uint32_t> bursts,
                               std::span<const std::uint8_t> writes);

}  // namespace simfa
