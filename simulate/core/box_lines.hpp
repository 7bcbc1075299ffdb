// The cache lines of one TMA box and what it needs of each, in request order, without duplicates (docs/isa.md section
// 5).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "program.hpp"
#include "sectors.hpp"

namespace simfa {

// Sectors of a line to be asked for.
struct LineRequest {
    std::uint32_t line = 0;
    SectorMask sectors = 0;
};

// Sizes of what boxes are taken apart into, all powers of two. A granule is what makes one request: a line, or, when
// deduplication is off, a piece of `request_bytes`, for each of which the whole line is asked for.
struct LineShape {
    LineShape() = default;
    LineShape(std::int32_t line_bytes, std::int32_t sector_bytes, bool deduplicate_lines, std::int32_t request_bytes)
        : deduplicate(deduplicate_lines),
          line_shift(shift_of(line_bytes)),
          sector_shift(shift_of(sector_bytes)),
          granule_shift(shift_of(deduplicate_lines ? line_bytes : request_bytes)),
          granules_shift(line_shift - granule_shift),
          all(all_sectors(line_bytes / sector_bytes)) {}

    static int shift_of(std::int32_t bytes) { return std::countr_zero(static_cast<std::uint32_t>(bytes)); }

    std::uint64_t line_mask() const { return (std::uint64_t{1} << line_shift) - 1; }
    // Sectors of the bytes `first` to `last` of a line.
    SectorMask sectors(std::uint64_t first, std::uint64_t last) const {
        return sector_run(static_cast<std::uint32_t>((first & line_mask()) >> sector_shift),
                          static_cast<std::uint32_t>((last & line_mask()) >> sector_shift));
    }

    bool deduplicate = true;
    int line_shift = 7;
    int sector_shift = 5;
    int granule_shift = 7;
    int granules_shift = 0;  // from granules to lines
    SectorMask all = 0xF;
};

// Walks a box row by row.
class BoxLines {
  public:
    BoxLines() = default;

    // The box of `map` at `corner` (elements); rows and columns outside the tensor are skipped.
    BoxLines(const TensorMap& map, const std::array<std::int64_t, kMaxTensorRank>& corner, const LineShape& shape)
        : shape_(shape) {
        row_bytes_ = std::max<std::int64_t>(0, std::min(map.dims[0] - corner[0], map.box[0])) * map.element_bytes;
        std::int64_t steps = row_bytes_;
        std::int64_t address = static_cast<std::int64_t>(map.base) + corner[0] * map.element_bytes;
        bool empty = row_bytes_ == 0;
        for (int d = 1; d < kMaxTensorRank; ++d) {
            extent_[d] = std::max<std::int64_t>(0, std::min(map.dims[d] - corner[d], map.box[d]));
            stride_[d] = map.strides[d];
            if (extent_[d] > 0) address += corner[d] * map.strides[d];  // outside it may be beyond any address
            empty |= extent_[d] == 0;
            if (extent_[d] > 1) steps |= stride_[d];
        }
        row_address_ = address;
        left_ = !empty;
        begin(address | steps);
    }

    // `bytes` contiguous bytes from `address`.
    BoxLines(std::int64_t address, std::int64_t bytes, const LineShape& shape)
        : shape_(shape), row_bytes_(bytes), row_address_(address) {
        extent_.fill(1);
        left_ = bytes > 0;
        begin(address | bytes);
    }

    bool empty() const { return !left_; }

    // Returns the next request and moves on; only valid while not `empty`.
    LineRequest next() {
        const std::uint64_t granule = granule_;
        SectorMask sectors = part();
        while (move_on() && granule_ == granule && shape_.deduplicate) sectors |= part();
        return {static_cast<std::uint32_t>(granule >> shape_.granules_shift), sectors};
    }

  private:
    // `all` has the bits of the address, of a row's bytes and of the steps between rows.
    void begin(std::int64_t all) {
        whole_ = !shape_.deduplicate || (static_cast<std::uint64_t>(all) & shape_.line_mask()) == 0;
        if (left_) open_row();
    }

    void open_row() {
        granule_ = static_cast<std::uint64_t>(row_address_) >> shape_.granule_shift;
        last_granule_ = static_cast<std::uint64_t>(row_address_ + row_bytes_ - 1) >> shape_.granule_shift;
    }

    // Sectors that the present row has in the present granule.
    SectorMask part() const {
        if (whole_) [[likely]]
            return shape_.all;
        const auto begin = static_cast<std::uint64_t>(row_address_);
        const std::uint64_t last = begin + static_cast<std::uint64_t>(row_bytes_) - 1;
        const std::uint64_t first_of = granule_ << shape_.granule_shift;
        const std::uint64_t last_of = first_of + (std::uint64_t{1} << shape_.granule_shift) - 1;
        return shape_.sectors(std::max(begin, first_of), std::min(last, last_of));
    }

    bool move_on() {
        if (granule_ != last_granule_)
            ++granule_;
        else
            left_ = next_row();
        return left_;
    }

    bool next_row() {
        for (int d = 1; d < kMaxTensorRank; ++d) {
            row_address_ += stride_[d];
            if (++at_[d] < extent_[d]) {
                open_row();
                return true;
            }
            row_address_ -= at_[d] * stride_[d];
            at_[d] = 0;
        }
        return false;
    }

    LineShape shape_;
    bool left_ = false;
    bool whole_ = false;  // each request is for a whole line
    std::uint64_t granule_ = 0;
    std::uint64_t last_granule_ = 0;
    std::int64_t row_bytes_ = 0;
    std::int64_t row_address_ = 0;
    std::array<std::int64_t, kMaxTensorRank> extent_{1, 1, 1, 1, 1};
    std::array<std::int64_t, kMaxTensorRank> stride_{};
    std::array<std::int64_t, kMaxTensorRank> at_{};
};

}  // namespace simfa
