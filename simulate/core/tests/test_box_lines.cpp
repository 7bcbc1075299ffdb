#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "box_lines.hpp"
#include "check.hpp"
#include "words.hpp"

namespace simfa {

namespace {

using Lines = std::vector<std::uint32_t>;
using Corner = std::array<std::int64_t, kMaxTensorRank>;

std::string text(const Lines& lines) {
    std::string words;
    for (const std::uint32_t line : lines) test::add_word(words, line);
    return words;
}

Lines walk(BoxLines box) {
    Lines lines;
    while (!box.empty()) lines.push_back(box.next().line);
    return lines;
}

// Each request's line and sectors, one after the other.
Lines asked(BoxLines box) {
    Lines found;
    while (!box.empty()) {
        const LineRequest request = box.next();
        found.push_back(request.line);
        found.push_back(request.sectors);
    }
    return found;
}

// Lines of 128 bytes, duplicates left out.
Lines lines_of(const TensorMap& map, const Corner& corner) { return walk({map, corner, LineShape(128, 32, true, 32)}); }
// A line number for each piece of `request_bytes`.
Lines pieces_of(const TensorMap& map, const Corner& corner, int request_bytes = 32) {
    return walk({map, corner, LineShape(128, 32, false, request_bytes)});
}

void check_lines(const Lines& found, const Lines& expected, int line) {
    test::check_equal(text(found), text(expected), "lines", __FILE__, line);
}
#define CHECK_LINES(found, ...) check_lines(found, Lines __VA_ARGS__, __LINE__)

// A tensor of fp16 rows: 64 columns (128 bytes) each, `stride` bytes apart.
TensorMap rows_of_fp16(std::int64_t rows, std::int64_t stride, std::int64_t box_rows) {
    return {.base = 0,
            .rank = 2,
            .element_bytes = 2,
            .dims = {64, rows, 1, 1, 1},
            .strides = {2, stride, 0, 0, 0},
            .box = {64, box_rows, 1, 1, 1}};
}

// The lines that docs/isa.md asks for, each with its sectors, found by visiting every byte of every row of the box.
Lines by_the_book(const TensorMap& map, const Corner& corner, bool deduplicate, std::int64_t granule_bytes) {
    Lines lines;
    std::int64_t last = -1;
    Corner at{};
    std::int64_t rows = 1;
    for (int d = 1; d < kMaxTensorRank; ++d) rows *= map.box[d];
    for (std::int64_t row = 0; row < rows; ++row) {
        std::int64_t rest = row;
        std::int64_t address = static_cast<std::int64_t>(map.base);
        bool inside = true;
        for (int d = 1; d < kMaxTensorRank; ++d) {
            at[d] = corner[d] + rest % map.box[d];
            rest /= map.box[d];
            inside = inside && at[d] < map.dims[d];
            address += at[d] * map.strides[d];
        }
        if (!inside) continue;
        std::int64_t in_row = -1;
        for (std::int64_t column = corner[0]; column < corner[0] + map.box[0] && column < map.dims[0]; ++column)
            for (std::int64_t byte = 0; byte < map.element_bytes; ++byte) {
                const std::int64_t place = address + column * map.element_bytes + byte;
                const std::int64_t granule = place / granule_bytes;
                if (granule != in_row && !(deduplicate && granule == last)) {
                    lines.push_back(static_cast<std::uint32_t>(place / 128));
                    lines.push_back(0);
                }
                in_row = last = granule;
                lines.back() |= deduplicate ? 1U << (place % 128 / 32) : 0xFU;
            }
    }
    return lines;
}

}  // namespace

TEST(box_lines_one_dimension) {
    TensorMap map{.rank = 1, .element_bytes = 2, .dims = {1000, 1, 1, 1, 1}, .box = {128, 1, 1, 1, 1}};
    CHECK_LINES(lines_of(map, {}), ({0, 1}));
    CHECK_LINES(lines_of(map, {64}), ({1, 2}));
    CHECK_LINES(lines_of(map, {32}), ({0, 1, 2}));  // bytes 64 to 319
    map.base = std::uint64_t{1} << 33;
    CHECK_LINES(lines_of(map, {}), ({1U << 26, (1U << 26) + 1}));
}

TEST(box_lines_rows_follow_their_stride) {
    CHECK_LINES(lines_of(rows_of_fp16(100, 256, 4), {}), ({0, 2, 4, 6}));
    CHECK_LINES(lines_of(rows_of_fp16(100, 256, 4), {0, 3}), ({6, 8, 10, 12}));
    CHECK_LINES(lines_of(rows_of_fp16(100, 128, 3), {}), ({0, 1, 2}));
}

TEST(box_lines_unaligned_rows_touch_two_lines_each) {
    TensorMap map = rows_of_fp16(100, 384, 3);
    map.base = 64;
    CHECK_LINES(lines_of(map, {}), ({0, 1, 3, 4, 6, 7}));  // bytes 64-191, 448-575, 832-959
}

// Rows of 32 bytes: four share a line, which is requested once.
TEST(box_lines_narrow_rows_share_lines) {
    TensorMap map = rows_of_fp16(100, 32, 8);
    map.dims[0] = map.box[0] = 16;
    CHECK_LINES(lines_of(map, {}), ({0, 1}));
    CHECK_LINES(pieces_of(map, {}), ({0, 0, 0, 0, 1, 1, 1, 1}));
}

// A line is left out if it is the one requested just before, not if it was requested earlier.
TEST(box_lines_forget_all_lines_but_the_last) {
    TensorMap map = rows_of_fp16(100, 128, 3);
    map.dims[0] = map.box[0] = 128;  // rows of two lines that overlap by one
    CHECK_LINES(lines_of(map, {}), ({0, 1, 2, 3}));
    map.strides[1] = 16;  // bytes 0-255, 16-271, 32-287
    CHECK_LINES(lines_of(map, {}), ({0, 1, 0, 1, 2, 0, 1, 2}));
}

// Pieces are aligned: bytes 100 to 227 touch the pieces from byte 96 on, five of them.
TEST(box_lines_without_deduplication_ask_for_aligned_pieces) {
    TensorMap map = rows_of_fp16(100, 256, 1);
    map.base = 100;
    CHECK_LINES(pieces_of(map, {}), ({0, 1, 1, 1, 1}));
    CHECK_LINES(pieces_of(map, {}, 128), ({0, 1}));
    CHECK_EQ(pieces_of(map, {}, 2).size(), 64U);  // one for each element
}

TEST(box_lines_five_dimensions_first_fastest) {
    TensorMap map{.rank = 5,
                  .element_bytes = 4,
                  .dims = {32, 2, 2, 2, 2},
                  .strides = {4, 1024, 512, 256, 128},
                  .box = {32, 2, 2, 2, 2}};
    CHECK_LINES(lines_of(map, {}), ({0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15}));
    CHECK_LINES(lines_of(map, {0, 1, 0, 1, 0}), ({10, 14, 11, 15}));
}

TEST(box_lines_three_and_four_dimensions) {
    TensorMap map{.rank = 3,
                  .element_bytes = 2,
                  .dims = {64, 4, 3, 1, 1},
                  .strides = {2, 128, 1024, 0, 0},
                  .box = {64, 2, 2, 1, 1}};
    CHECK_LINES(lines_of(map, {0, 1, 1}), ({9, 10, 17, 18}));
    map.rank = 4;
    map.dims[3] = 2;
    map.strides[3] = 4096;
    CHECK_LINES(lines_of(map, {0, 1, 1, 1}), ({41, 42, 49, 50}));
}

TEST(box_lines_skip_what_is_outside_the_tensor) {
    const TensorMap map = rows_of_fp16(5, 256, 4);
    CHECK_LINES(lines_of(map, {0, 3}), ({6, 8}));    // rows 3 and 4 of 5
    CHECK_LINES(lines_of(map, {0, 5}), ({}));        // no row
    CHECK_LINES(lines_of(map, {0, 0, 1}), ({}));     // no such plane
    CHECK_LINES(lines_of(map, {64, 0}), ({}));       // no column
    CHECK_LINES(pieces_of(map, {48, 4}), ({8}));     // columns 48 to 63 of row 4: one piece of 32 bytes
    CHECK_LINES(pieces_of(map, {40, 4}), ({8, 8}));  // columns 40 to 63: two
}

TEST(box_lines_of_bulk_copies) {
    CHECK_LINES(walk({60, 8, LineShape(128, 32, true, 32)}), ({0}));
    CHECK_LINES(walk({124, 8, LineShape(128, 32, true, 32)}), ({0, 1}));
    CHECK_LINES(walk({256, 512, LineShape(128, 32, true, 32)}), ({2, 3, 4, 5}));
    CHECK_LINES(walk({256, 128, LineShape(64, 32, true, 32)}), ({4, 5}));  // lines of 64 bytes
    CHECK_LINES(walk({256, 65, LineShape(128, 32, false, 32)}), ({2, 2, 2}));
    CHECK_LINES(walk(BoxLines{}), ({}));
}

TEST(box_lines_ask_for_the_sectors_they_need) {
    CHECK_LINES(asked({60, 8, LineShape(128, 32, true, 32)}), ({0, 0x6}));
    CHECK_LINES(asked({96, 256, LineShape(128, 32, true, 32)}), ({0, 0x8, 1, 0xF, 2, 0x7}));
    CHECK_LINES(asked({64, 64, LineShape(64, 32, true, 32)}), ({1, 0x3}));
    CHECK_LINES(asked({64, 64, LineShape(128, 32, false, 32)}), ({0, 0xF, 0, 0xF}));  // duplicates of the line
    // Rows of 16 bytes, 64 apart: two of a line make one request.
    const TensorMap rows{
        .rank = 2, .element_bytes = 4, .dims = {16, 4, 1, 1, 1}, .strides = {4, 64}, .box = {4, 4, 1, 1, 1}};
    CHECK_LINES(asked({rows, {4}, LineShape(128, 32, true, 32)}), ({0, 0x5, 1, 0x5}));
}

TEST(box_lines_agree_with_a_walk_over_bytes) {
    std::mt19937 random(5);
    const auto draw = [&](int low, int high) {
        return low + static_cast<std::int64_t>(random() % static_cast<unsigned>(high - low + 1));
    };
    for (int round = 0; round < 2000; ++round) {
        TensorMap map;
        map.rank = static_cast<std::int32_t>(draw(1, 5));
        map.element_bytes = 1 << draw(0, 3);
        map.base = static_cast<std::uint64_t>(draw(0, 40)) * 4;
        Corner corner{};
        std::int64_t stride = 0;
        for (int d = 0; d < map.rank; ++d) {
            map.dims[d] = draw(1, d == 0 ? 150 : 5);
            map.box[d] = draw(1, d == 0 ? 100 : 4);
            corner[d] = draw(0, d == 0 ? 60 : 3);
            stride = d == 0 ? map.element_bytes : 16 * draw(1, 40);
            map.strides[d] = stride;
        }
        const bool deduplicate = draw(0, 1) != 0;
        const int request_bytes = 8 << draw(0, 2);
        const Lines found = asked({map, corner, LineShape(128, 32, deduplicate, request_bytes)});
        const Lines expected = by_the_book(map, corner, deduplicate, deduplicate ? 128 : request_bytes);
        test::check_equal(text(found), text(expected), "lines of a random box", __FILE__, __LINE__);
    }
}

}  // namespace simfa
