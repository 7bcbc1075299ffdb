// Which L2 slice a line belongs to, and its place inside that slice and the memory channel behind it.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "divider.hpp"

namespace simfa {

enum class HashKind : std::uint8_t { xor_shift, modulo, strong };

// Lines are numbered below this: a coalescer slot keeps the number and three flags in four bytes.
inline constexpr std::uint32_t kLineLimit = (1U << 29) - 1;

// Refuses a trace whose last line has no number; called once at load.
inline void check_line_limit(std::uint64_t last_line, std::uint64_t line_bytes) {
    if (last_line >= kLineLimit)
        throw std::invalid_argument("byte address " + std::to_string(last_line * line_bytes) +
                                    " is out of reach: addresses must be below " +
                                    std::to_string(kLineLimit * line_bytes));
}

// Pairs and slices of the lower half are on side 0.
inline int side_of(int index, int count) { return 2 * index < count ? 0 : 1; }

class LineHash {
  public:
    struct Place {
        std::uint32_t slice;
        std::uint32_t local;  // number of the line inside its slice: sets and DRAM rows are taken from it
    };

    LineHash(HashKind kind, int slices) : kind_(kind), slices_(static_cast<std::uint64_t>(slices)) {}

    // xor: (line ^ (line >> 5)) mod slices, arXiv:2605.00555 section 5.4. strong: every aligned group of `slices`
    // lines is rotated by a mix of all higher bits. Each kind maps lines one to one to (slice, local) and keeps
    // neighbouring lines of a slice neighbours in `local`.
    Place place(std::uint32_t line) const {
        const std::uint32_t mixed = kind_ == HashKind::xor_shift ? line ^ (line >> 5) : line;
        const auto local = static_cast<std::uint32_t>(slices_.quotient(mixed));
        auto slice = static_cast<std::uint32_t>(mixed - local * slices_.divisor());
        if (kind_ == HashKind::strong) slice = static_cast<std::uint32_t>(slices_.remainder(slice + mix(local)));
        return {slice, local};
    }

    std::uint32_t slice_of(std::uint32_t line) const { return place(line).slice; }

  private:
    // Finalizer of MurmurHash3 (public domain): each input bit changes each output bit with probability 1/2.
    static std::uint64_t mix(std::uint32_t value) {
        value ^= value >> 16;
        value *= 0x85EBCA6BU;
        value ^= value >> 13;
        value *= 0xC2B2AE35U;
        value ^= value >> 16;
        return value;
    }

    HashKind kind_;
    Divider slices_;
};

}  // namespace simfa
