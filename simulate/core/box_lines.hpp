// The cache lines of one TMA box, in request order, without duplicates (docs/isa.md section 5).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "program.hpp"

namespace simfa {

// Walks a box row by row. A granule is what one request covers: a line, or a piece of one when deduplication is off.
// Lines and pieces are powers of two.
class BoxLines {
  public:
    BoxLines() = default;

    // The box of `map` at `corner` (elements); rows and columns outside the tensor are skipped.
    BoxLines(const TensorMap& map, const std::array<std::int64_t, kMaxTensorRank>& corner, std::int32_t line_bytes,
             bool deduplicate, std::int32_t request_bytes)
        : deduplicate_(deduplicate),
          granule_shift_(shift_of(deduplicate ? line_bytes : request_bytes)),
          line_shift_(shift_of(line_bytes) - granule_shift_) {
        row_bytes_ = std::max<std::int64_t>(0, std::min(map.dims[0] - corner[0], map.box[0])) * map.element_bytes;
        std::int64_t address = static_cast<std::int64_t>(map.base) + corner[0] * map.element_bytes;
        bool empty = row_bytes_ == 0;
        for (int d = 1; d < kMaxTensorRank; ++d) {
            extent_[d] = std::max<std::int64_t>(0, std::min(map.dims[d] - corner[d], map.box[d]));
            stride_[d] = map.strides[d];
            if (extent_[d] > 0) address += corner[d] * map.strides[d];  // outside it may be beyond any address
            empty |= extent_[d] == 0;
        }
        row_address_ = address;
        left_ = !empty;
        if (left_) open_row();
    }

    // `bytes` contiguous bytes from `address`.
    BoxLines(std::int64_t address, std::int64_t bytes, std::int32_t line_bytes, bool deduplicate,
             std::int32_t request_bytes)
        : deduplicate_(deduplicate),
          granule_shift_(shift_of(deduplicate ? line_bytes : request_bytes)),
          line_shift_(shift_of(line_bytes) - granule_shift_),
          row_bytes_(bytes),
          row_address_(address) {
        extent_.fill(1);
        left_ = bytes > 0;
        if (left_) open_row();
    }

    bool empty() const { return !left_; }

    // Returns the next line and moves on; only valid while not `empty`.
    std::uint32_t next() {
        const std::uint64_t granule = granule_;
        last_ = granule;
        do {
            if (granule_ == last_granule_) {
                if (!next_row()) {
                    left_ = false;
                    break;
                }
            } else {
                ++granule_;
            }
        } while (deduplicate_ && granule_ == last_);
        return static_cast<std::uint32_t>(granule >> line_shift_);
    }

  private:
    static int shift_of(std::int32_t bytes) { return std::countr_zero(static_cast<std::uint32_t>(bytes)); }

    void open_row() {
        granule_ = static_cast<std::uint64_t>(row_address_) >> granule_shift_;
        last_granule_ = static_cast<std::uint64_t>(row_address_ + row_bytes_ - 1) >> granule_shift_;
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

    bool left_ = false;
    bool deduplicate_ = true;
    int granule_shift_ = 7;
    int line_shift_ = 0;  // from granules to lines
    std::uint64_t granule_ = 0;
    std::uint64_t last_granule_ = 0;
    std::uint64_t last_ = 0;
    std::int64_t row_bytes_ = 0;
    std::int64_t row_address_ = 0;
    std::array<std::int64_t, kMaxTensorRank> extent_{1, 1, 1, 1, 1};
    std::array<std::int64_t, kMaxTensorRank> stride_{};
    std::array<std::int64_t, kMaxTensorRank> at_{};
};

}  // namespace simfa
