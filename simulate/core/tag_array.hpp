// Tags of one L2 slice: sets of four-byte entries kept in most-recently-used order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace simfa {

class TagArray {
  public:
    using Entry = std::uint32_t;  // line << 2 | flags
    static constexpr Entry kShadow = 1;
    static constexpr Entry kDirty = 2;
    static constexpr Entry kEmpty = 0xFFFFFFFF;  // no line below kLineLimit has this entry

    TagArray(int sets, int ways)
        : ways_(static_cast<std::size_t>(ways)), entries_(static_cast<std::size_t>(sets) * ways_, kEmpty) {}

    static std::uint32_t line_of(Entry entry) { return entry >> 2; }

    void prefetch(std::uint32_t set) const {
#if defined(__GNUC__)
        const Entry* entries = entries_.data() + set * ways_;
        __builtin_prefetch(entries);
        __builtin_prefetch(entries + ways_ - 1);
#endif
    }

    // Makes `line` the most recently used of its set and returns its entry; null if it is not there.
    Entry* touch(std::uint32_t set, std::uint32_t line) {
        Entry* const entries = entries_.data() + set * ways_;
        const std::size_t way = find(entries, line);
        if (way == ways_) return nullptr;
        const Entry entry = entries[way];
        std::copy_backward(entries, entries + way, entries + way + 1);
        entries[0] = entry;
        return entries;
    }

    // Puts a line that is not there in as the most recently used; returns the entry it replaces, or kEmpty.
    Entry insert(std::uint32_t set, std::uint32_t line, Entry flags) {
        Entry* const entries = entries_.data() + set * ways_;
        const Entry victim = entries[ways_ - 1];
        std::copy_backward(entries, entries + ways_ - 1, entries + ways_);
        entries[0] = line << 2 | flags;
        return victim;
    }

    bool contains(std::uint32_t set, std::uint32_t line) const {
        return find(entries_.data() + set * ways_, line) < ways_;
    }

    // Drops `line`; false if it was not there. Empty entries stay at the end of the set.
    bool erase(std::uint32_t set, std::uint32_t line) {
        Entry* const entries = entries_.data() + set * ways_;
        const std::size_t way = find(entries, line);
        if (way == ways_) return false;
        std::copy(entries + way + 1, entries + ways_, entries + way);
        entries[ways_ - 1] = kEmpty;
        return true;
    }

    int shadows(std::uint32_t set) const {
        const Entry* const entries = entries_.data() + set * ways_;
        return static_cast<int>(std::count_if(entries, entries + ways_,
                                              [](Entry entry) { return entry != kEmpty && (entry & kShadow) != 0; }));
    }

  private:
    std::size_t find(const Entry* entries, std::uint32_t line) const {
        std::size_t way = 0;
        while (way < ways_ && line_of(entries[way]) != line) ++way;
        return way;
    }

    std::size_t ways_;
    std::vector<Entry> entries_;
};

}  // namespace simfa
