#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "check.hpp"
#include "perfetto.hpp"

namespace simfa {

namespace {

std::string hex(const std::string& bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    std::string text;
    for (const char byte : bytes) {
        const auto value = static_cast<unsigned char>(byte);
        text += kDigits[value >> 4];
        text += kDigits[value & 15];
    }
    return text;
}

std::string one_slice(std::int32_t track, std::int32_t name, std::int64_t start, std::int64_t end, std::int32_t arg) {
    return perfetto_slices({.count = 1, .track = &track, .name = &name, .start = &start, .end = &end, .arg = &arg},
                           1.0);
}

}  // namespace

// Keys are field number x 8 + type: packet 0a, timestamp 40, sequence 50, flags 68, event 5a; in the event type 48,
// track 58, name 50, arguments 22 of name 08 and number 20.
TEST(perfetto_slice_by_hand) {
    CHECK_EQ(hex(one_slice(0, 0, 0, 1, 2)),
             "0a20"
             "4000"
             "5001"
             "6802"
             "5a18"
             "4801"
             "5801"
             "5001"
             "220408012000"
             "220408022001"
             "220408032002"
             "0a0c"
             "4001"
             "5001"
             "6802"
             "5a04"
             "4802"
             "5801");
}

TEST(perfetto_counter_by_hand) {
    const std::vector<std::int64_t> cycles = {3};
    const std::vector<double> values = {1.0};
    // The value is field 44, type 1: key 44 x 8 + 1 = 353 = e1 02.
    CHECK_EQ(hex(perfetto_counter(1, cycles, values, 2.0)),
             "0a16"
             "4006"
             "5001"
             "6802"
             "5a0e"
             "4804"
             "5802"
             "e102000000000000f03f");
}

TEST(perfetto_numbers_at_their_longest) {
    constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
    const std::string bytes = one_slice(kMost, kMost, (std::int64_t{1} << 62) - 1, std::int64_t{1} << 62, -1);
    // One byte of length each: the first packet, then the second, fill what there is.
    const std::size_t first = 2 + static_cast<unsigned char>(bytes[1]);
    CHECK_EQ(bytes.size(), first + 2 + static_cast<unsigned char>(bytes[first + 1]));
}

TEST(perfetto_head_names_groups_counters_and_slices) {
    const std::vector<PerfettoTrack> tracks = {{"a", -1, false, ""},
                                               {.name = "b", .parent = 0, .counter = true, .unit = "u"}};
    const std::vector<std::string> names = {"n"};
    const std::string text = hex(perfetto_head(tracks, names));
    CHECK(text.find("1205"
                    "0801"
                    "12016e") != std::string::npos);  // name 1 is n
    CHECK(text.find("0801"
                    "120161"
                    "5803"
                    "6000") != std::string::npos);  // group a: uuid 1, explicit order, rank 0
    CHECK(text.find("0802"
                    "120162"
                    "2801"
                    "4203"
                    "320175") != std::string::npos);  // b in it, a counter in u
}

}  // namespace simfa
