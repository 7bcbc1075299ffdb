// Tags of one L2 slice: sets of four-byte entries kept in most-recently-used order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace simfa {

class TagArray {
  public:
    using Entry = std::uint32_t;  // line << 2 | flags
    static constexpr Entry kShadow = 1;
    static constexpr Entry kDirty = 2;
    static constexpr Entry kEmpty = 0xFFFFFFFF;  // no line below kLineLimit has this entry

    TagArray(int sets, int ways)
        : ways_(static_cast<std::size_t>(ways)),
          blocks_((ways_ + kBlockWays - 1) / kBlockWays),
          entries_(static_cast<std::size_t>(sets) * blocks_) {}

    static std::uint32_t line_of(Entry entry) { return entry >> 2; }

    // Brings the part of a set that most hits fall on into the cache of the machine that simulates.
    void prefetch(std::uint32_t set) const {
#if defined(__GNUC__)
        __builtin_prefetch(&entries_[set * blocks_], 1);
#else
        static_cast<void>(set);
#endif
    }

    // Makes `line` the most recently used of its set and returns its entry; null if it is not there.
    Entry* touch(std::uint32_t set, std::uint32_t line) {
        Entry* const entries = entries_of(set);
        const std::size_t way = find(set, line);
        if (way >= ways_) return nullptr;
        const Entry entry = entries[way];
        std::copy_backward(entries, entries + way, entries + way + 1);
        entries[0] = entry;
        return entries;
    }

    // Puts a line that is not there in as the most recently used; returns the entry it replaces, or kEmpty.
    Entry insert(std::uint32_t set, std::uint32_t line, Entry flags) {
        Entry* const entries = entries_of(set);
        const Entry victim = entries[ways_ - 1];
        std::copy_backward(entries, entries + ways_ - 1, entries + ways_);
        entries[0] = line << 2 | flags;
        return victim;
    }

    bool contains(std::uint32_t set, std::uint32_t line) const { return find(set, line) < ways_; }

    // Drops `line`; false if it was not there. Empty entries stay at the end of the set.
    bool erase(std::uint32_t set, std::uint32_t line) {
        Entry* const entries = entries_of(set);
        const std::size_t way = find(set, line);
        if (way >= ways_) return false;
        std::copy(entries + way + 1, entries + ways_, entries + way);
        entries[ways_ - 1] = kEmpty;
        return true;
    }

    int shadows(std::uint32_t set) const {
        const Entry* const entries = entries_[set * blocks_].entries;
        return static_cast<int>(std::count_if(entries, entries + ways_,
                                              [](Entry entry) { return entry != kEmpty && (entry & kShadow) != 0; }));
    }

  private:
    static constexpr std::size_t kBlockWays = 16;
    typedef std::uint32_t Four __attribute__((vector_size(16)));

    // One cache line. Entries beyond the ways stay empty.
    struct alignas(64) Block {
        Entry entries[kBlockWays];
        Block() { std::fill(entries, entries + kBlockWays, kEmpty); }
    };

    Entry* entries_of(std::uint32_t set) { return entries_[set * blocks_].entries; }

    // Way of `line`, or a number not below the ways. One entry at most matches, so matches can be gathered without a
    // branch for each way.
    std::size_t find(std::uint32_t set, std::uint32_t line) const {
        const std::uint32_t wanted = line << 2;
        for (std::size_t block = 0; block < blocks_; ++block) {
            const Entry* const entries = entries_[set * blocks_ + block].entries;
            Four found = {0, 0, 0, 0};
            for (std::uint32_t way = 0; way < kBlockWays; way += 4) {
                Four four;
                std::memcpy(&four, entries + way, sizeof(four));
                const Four number = {way + 1, way + 2, way + 3, way + 4};
                found |= static_cast<Four>((four & ~(kShadow | kDirty)) == wanted) & number;
            }
            std::uint64_t halves[2];
            std::memcpy(halves, &found, sizeof(halves));
            const std::uint64_t either = halves[0] | halves[1];
            if (either != 0) return block * kBlockWays + (either | either >> 32) % 32 - 1;
        }
        return blocks_ * kBlockWays;
    }

    std::size_t ways_;
    std::size_t blocks_;  // of a set
    std::vector<Block> entries_;
};

}  // namespace simfa
