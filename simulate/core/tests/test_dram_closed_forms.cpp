// The controller against closed forms of the timing table, within 1 %. Fractions are of the peak of both pseudo
// channels.
#include <cmath>
#include <cstdint>
#include <vector>

#include "check.hpp"
#include "dram_bench.hpp"
#include "dram_fixture.hpp"

namespace simfa {

using test::burst_at;
using test::hbm3_5200;
using test::plain_map;
using test::Spot;

namespace {

DramControl no_refresh() { return {.read_queue_entries = 64, .write_queue_entries = 64, .refresh = Refresh::none}; }

DramBenchResult run(const std::vector<std::uint32_t>& bursts, const DramControl& control, bool write = false) {
    const std::vector<std::uint8_t> writes(bursts.size(), write ? 1 : 0);
    return run_dram_bench({}, hbm3_5200(), control, plain_map(), bursts, writes);
}

// Bursts moved in a clock of either pseudo channel's bus, against nBL.
double fraction_of_peak(const DramBenchResult& result) {
    return static_cast<double>(result.stats.reads + result.stats.writes) * 2.0 * hbm3_5200().burst /
           (2.0 * static_cast<double>(result.ticks));
}

template <typename Place>
DramBenchResult stream(std::uint32_t count, const Place& place, const DramControl& control = no_refresh()) {
    std::vector<std::uint32_t> bursts;
    for (std::uint32_t i = 0; i < count; ++i) bursts.push_back(burst_at(place(i)));
    return run(bursts, control);
}

// Read latency in clocks of the last of `bursts`, each sent when the channel is idle.
double idle_latency(const std::vector<Spot>& spots) {
    const AddressMap map = plain_map();
    DramController controller({}, hbm3_5200(), no_refresh());
    Tick latency = 0;
    Tick now = 0;
    for (const Spot& spot : spots) {
        now += 1000;
        controller.advance(now);
        controller.push(map.place(burst_at(spot)), false, now, 0);
        controller.advance(now + 900);
        CHECK_EQ(controller.done().size(), 1U);
        latency = controller.done()[0].tick - now;
        controller.done().clear();
    }
    return static_cast<double>(latency) / 2;
}

void check_near(double value, double expected, const char* file, int line) {
    if (!(std::abs(value - expected) <= 0.01 * expected))
        test::fail(file, line, std::to_string(value) + " is not within 1 % of " + std::to_string(expected));
}

#define CHECK_NEAR(value, expected) check_near(value, expected, __FILE__, __LINE__)

constexpr std::uint32_t kCount = 20000;

}  // namespace

TEST(dram_idle_latencies) {
    // nCL + nBL and a tick for the controller; nRCD more, and a clock between the edges of an activate; nRP more, which
    // covers that clock.
    CHECK_NEAR(idle_latency({{.row = 1}, {.row = 1}}), 19.5);
    CHECK_NEAR(idle_latency({{.row = 1}}), 46.5);
    CHECK_NEAR(idle_latency({{.row = 1}, {.row = 2}}), 67.5);
}

TEST(dram_one_bank_hits) {
    CHECK_NEAR(fraction_of_peak(stream(kCount, [](std::uint32_t i) { return Spot{.column = i % 32}; })), 2.0 / (2 * 4));
}

TEST(dram_one_pseudo_channel_hits) {
    CHECK_NEAR(fraction_of_peak(
                   stream(kCount, [](std::uint32_t i) { return Spot{.bank_group = i % 4, .column = i / 4 % 32}; })),
               0.5);
}

TEST(dram_two_pseudo_channels_hits) {
    CHECK_NEAR(fraction_of_peak(stream(kCount,
                                       [](std::uint32_t i) {
                                           return Spot{
                                               .bank_group = i / 2 % 4, .pseudo_channel = i % 2, .column = i / 8 % 32};
                                       })),
               1.0);
}

// One burst in the queue for each pseudo channel: with more, those of one SID, which are ready earlier, go together.
TEST(dram_alternate_sids_hits) {
    DramControl control = no_refresh();
    control.read_queue_entries = 2;
    const auto place = [](std::uint32_t i) {
        return Spot{.sid = i / 2 % 2, .bank_group = i / 4 % 4, .pseudo_channel = i % 2, .column = i / 16 % 32};
    };
    CHECK_NEAR(fraction_of_peak(stream(kCount, place, control)), 2.0 / 3.0);
}

TEST(dram_one_bank_conflicts) {
    CHECK_NEAR(fraction_of_peak(stream(2000, [](std::uint32_t i) { return Spot{.row = i % 16384}; })), 2.0 / (2 * 59));
}

TEST(dram_new_row_for_every_burst) {
    const auto place = [](std::uint32_t i) {
        return Spot{.row = i / 64 % 16384,
                    .bank = i / 16 % 4,
                    .sid = i / 8 % 2,
                    .bank_group = i / 2 % 4,
                    .pseudo_channel = i % 2};
    };
    CHECK_NEAR(fraction_of_peak(stream(kCount, place)), 4.0 * 2 / 20);
}

TEST(dram_refresh_ceiling) {
    DramControl control = no_refresh();
    control.refresh = Refresh::all_bank;
    control.read_queue_entries = 256;
    std::vector<std::uint32_t> bursts;
    for (std::uint32_t i = 0; i < 200000; ++i) bursts.push_back(i);
    const std::vector<std::uint8_t> writes(bursts.size(), 0);
    const double fraction = fraction_of_peak(run_dram_bench({}, hbm3_5200(), control, test::g64x(), bursts, writes));
    CHECK(fraction > 0.88 && fraction < 0.91);
}

}  // namespace simfa
