// Which parts of a line are meant: a sector is the least that is asked for, kept and moved.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "types.hpp"

namespace simfa {

// One bit for each sector of a line, that of the lowest address first.
using SectorMask = std::uint32_t;

inline constexpr int kMostSectors = 8;

constexpr SectorMask all_sectors(int sectors) { return (SectorMask{1} << sectors) - 1; }

// Sectors `first` to `last`.
constexpr SectorMask sector_run(std::uint32_t first, std::uint32_t last) {
    return (SectorMask{2} << last) - (SectorMask{1} << first);
}

inline constexpr auto kSectorCounts = [] {
    std::array<std::uint8_t, std::size_t{1} << kMostSectors> counts{};
    for (std::size_t mask = 0; mask < counts.size(); ++mask)
        counts[mask] = static_cast<std::uint8_t>(std::popcount(mask));
    return counts;
}();

inline int sector_count(SectorMask mask) { return kSectorCounts[mask]; }

// The aligned groups of `group` sectors, a power of two, that have one of `mask`.
constexpr SectorMask whole_groups(SectorMask mask, int group) {
    SectorMask groups = 0;
    for (int first = 0; first < kMostSectors; first += group) {
        const SectorMask part = all_sectors(group) << first;
        if ((mask & part) != 0) groups |= part;
    }
    return groups;
}

// Whole cycles in which sectors pass what lets a line of `sectors` through in `line_cycles`: their share, rounded up.
class SectorCycles {
  public:
    SectorCycles(Cycle line_cycles, int sectors)
        : line_cycles_(line_cycles), sectors_(sectors), all_(all_sectors(sectors)) {}

    Cycle of(SectorMask mask) const {
        if (mask == all_) [[likely]]
            return line_cycles_;
        return (line_cycles_ * sector_count(mask) + sectors_ - 1) / sectors_;
    }

  private:
    Cycle line_cycles_;
    int sectors_;
    SectorMask all_;
};

}  // namespace simfa
