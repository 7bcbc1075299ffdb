#include "dram_bench.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace simfa {

DramBenchResult run_dram_bench(const DramOrganisation& organisation, const DramTiming& timing,
                               const DramControl& control, const AddressMap& map, std::span<const std::uint32_t> bursts,
                               std::span<const std::uint8_t> writes) {
    if (bursts.size() != writes.size()) throw std::invalid_argument("expected as many directions as bursts");
    DramController controller(organisation, timing, control);
    DramBenchResult result;
    std::vector<Tick> accepted(bursts.size());
    Tick now = 0;
    Tick offered = 0;
    std::size_t next = 0;
    for (;;) {
        for (; next < bursts.size() && controller.accepts(writes[next] != 0, 1); ++next) {
            controller.push(map.place(bursts[next]), writes[next] != 0, now, static_cast<std::uint32_t>(next));
            accepted[next] = now;
            if (writes[next] == 0) result.read_wait_ticks += now - offered;
            offered = now;
        }
        for (const DramController::Done& done : controller.done()) {
            result.read_latency_ticks += done.tick - accepted[done.id];
            ++result.reads;
        }
        controller.done().clear();
        if (controller.next_event() == DramController::kNeverTick) break;
        now = std::max(now, controller.next_event());
        controller.advance(now);
    }
    result.ticks = controller.last_data();
    result.stats = controller.stats();
    return result;
}

}  // namespace simfa
