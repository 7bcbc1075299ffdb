#include <set>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "check.hpp"
#include "dram_fixture.hpp"

namespace simfa {

TEST(address_map_puts_bits_where_the_segments_say) {
    const AddressMap map = test::plain_map();
    CHECK_EQ(map.bits(), 25);
    const auto place = map.place(
        test::burst_at({.row = 9999, .bank = 2, .sid = 1, .bank_group = 3, .pseudo_channel = 1, .column = 17}));
    CHECK_EQ(place.row, 9999U);
    CHECK_EQ(place.bank, 1U * 16 + 3 * 4 + 2);
    CHECK_EQ(place.pseudo_channel, 1U);
    CHECK_EQ(place.column, 17U);
}

// 64 bytes share a row, the next 64 bytes are in another bank group; row bits move banks about.
TEST(address_map_g64x) {
    const AddressMap map = test::g64x();
    const auto at = [&](std::uint32_t burst) { return map.place(burst); };
    CHECK_EQ(at(0).bank, at(1).bank);
    CHECK_EQ(at(1).column, 1U);
    CHECK_EQ(at(2).bank, 4U);
    CHECK_EQ(at(8).pseudo_channel, 1U);
    CHECK_EQ(at(16).column, 2U);
    CHECK_EQ(at(256).bank, 1U);
    CHECK_EQ(at(1024).bank, 16U);
    const auto row = at(2048 * 0b110110);
    CHECK_EQ(row.row, 0b110110U);
    CHECK_EQ(row.bank, 16U * 1 + 4 * 2 + 1);
    CHECK_EQ(row.pseudo_channel, 1U);
}

TEST(address_map_is_one_to_one) {
    const AddressMap map = test::g64x();
    std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>> places;
    for (std::uint32_t burst = 0; burst < 1U << 17; ++burst) {
        const auto place = map.place(burst);
        places.insert({place.pseudo_channel, place.bank, place.row, place.column});
    }
    CHECK_EQ(places.size(), std::size_t{1} << 17);
}

TEST(address_map_refuses_what_is_no_mapping) {
    using F = DramField;
    using Segments = std::vector<AddressMap::Segment>;
    const Segments good = {{F::column, 5}, {F::pseudo_channel, 1}, {F::bank_group, 2},
                           {F::sid, 1},    {F::bank, 2},           {F::row, 14}};
    Segments drops = good;
    drops[0].bits = 4;
    CHECK_THROWS(AddressMap({}, drops, {}), std::invalid_argument,
                 "column has 4 address bits; the organisation needs 5");
    Segments repeats = good;
    repeats.push_back({F::sid, 1});
    CHECK_THROWS(AddressMap({}, repeats, {}), std::invalid_argument, "sid has 2 address bits");
    CHECK_THROWS(AddressMap({}, good, {{F::bank, F::bank, 0}}), std::invalid_argument, "two addresses share a place");
    CHECK_THROWS(AddressMap({}, good, {{F::bank, F::row, 13}}), std::invalid_argument, "row has no bits 13 to 14");
    CHECK_THROWS(AddressMap({.rows = 10000}, good, {}), std::invalid_argument, "row count 10000 is not a power of two");
    CHECK_THROWS(dram_field("rank"), std::invalid_argument, "no field is called \"rank\"");
}

}  // namespace simfa
