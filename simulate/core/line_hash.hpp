// Which L2 slice a line belongs to, and its place inside that slice and the memory channel behind it.
#pragma once

#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "divider.hpp"

namespace simfa {

enum class HashKind : std::uint8_t { xor_shift, modulo, strong, side };

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

    LineHash(HashKind kind, int slices)
        : kind_(kind), slices_(static_cast<std::uint64_t>(kind == HashKind::side ? slices / 2 : slices)) {}

    // xor: (line ^ (line >> 5)) mod slices, arXiv:2605.00555 section 5.4. strong: every aligned group of `slices`
    // lines is rotated by a mix of all higher bits. side: the parity of kSideMask chooses one half of the slices, the
    // xor hash of the remaining bits a slice in it. Each kind maps lines one to one to (slice, local) and keeps
    // neighbouring lines of a slice neighbours in `local`.
    Place place(std::uint32_t line) const {
        if (kind_ == HashKind::side) return place_by_side(line);
        const std::uint32_t mixed = kind_ == HashKind::xor_shift ? line ^ (line >> 5) : line;
        const auto local = static_cast<std::uint32_t>(slices_.quotient(mixed));
        auto slice = static_cast<std::uint32_t>(mixed - local * slices_.divisor());
        if (kind_ == HashKind::strong) slice = static_cast<std::uint32_t>(slices_.remainder(slice + mix(local)));
        return {slice, local};
    }

    std::uint32_t slice_of(std::uint32_t line) const { return place(line).slice; }

  private:
    // Bits 12, 13, 16, 17 and 19 of the byte address of a 128-byte line (cuda-side-boost, H100): of the two pages of
    // 4 KiB in 8 KiB one is on each side.
    static constexpr std::uint32_t kSideMask = 0xB3000 >> 7;
    static constexpr int kPageBits = 5;  // lines of a page

    // Bit 5 follows from the side and the others: it is left out of the number inside the side.
    Place place_by_side(std::uint32_t line) const {
        const auto side = static_cast<std::uint32_t>(std::popcount(line & kSideMask) & 1);
        const std::uint32_t rest = line >> (kPageBits + 1) << kPageBits | (line & ((1U << kPageBits) - 1));
        const std::uint32_t mixed = rest ^ (rest >> 5);
        const auto local = static_cast<std::uint32_t>(slices_.quotient(mixed));
        const auto half = static_cast<std::uint32_t>(slices_.divisor());
        return {side * half + mixed - local * half, local};
    }

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
    Divider slices_;  // by the slices, or by those of a side
};

}  // namespace simfa
