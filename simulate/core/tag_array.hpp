// Tags of one L2 slice: sets of entries kept in most-recently-used order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

namespace simfa {

// Where a line lies in a slice. A slice's own line and the shadow of its twin's line may have the same place.
struct TagPlace {
    std::uint32_t set = 0;
    std::uint32_t tag = 0;
};

inline constexpr std::uint32_t kShadow = 1;
inline constexpr std::uint32_t kDirty = 2;

// What an insertion replaced.
struct Victim {
    bool valid = false;
    bool dirty = false;
    std::uint32_t tag = 0;
};

// The entries, as numbers of 2 or 4 bytes: tag << 2 | flags. A set starts at a cache line of the machine that
// simulates; look-up and reordering take whole vectors, without a branch for the way.
template <typename Number>
class TagSets {
  public:
    static constexpr Number kEmpty = std::numeric_limits<Number>::max();
    static constexpr std::uint32_t kTags = kEmpty >> 2;  // tags are below this, so that none looks empty

    TagSets(int sets, int ways)
        : ways_(static_cast<std::size_t>(ways)),
          vectors_((ways_ + kLanes - 1) / kLanes),
          lines_((ways_ + kLine - 1) / kLine),
          storage_(static_cast<std::size_t>(sets) * lines_) {}

    const Number* entries(std::uint32_t set) const { return storage_[set * lines_].entries; }

    // Makes the entry `wanted` (its dirty flag apart) the most recently used one and adds `flags`; false if it is not
    // there.
    bool touch(std::uint32_t set, Number wanted, Number flags) {
        Number* const entries = storage_[set * lines_].entries;
        if ((entries[0] | kDirty) == (wanted | kDirty)) {
            entries[0] = static_cast<Number>(entries[0] | flags);
            return true;
        }
        const std::size_t way = find(entries, wanted);
        if (way >= ways_) return false;
        to_front(entries, way, static_cast<Number>(entries[way] | flags));
        return true;
    }

    // Puts an entry that is not there in as the most recently used one; returns the one it replaces.
    Number insert(std::uint32_t set, Number entry) {
        Number* const entries = storage_[set * lines_].entries;
        const Number victim = entries[ways_ - 1];
        to_front(entries, ways_ - 1, entry);
        return victim;
    }

    bool contains(std::uint32_t set, Number wanted) const { return find(entries(set), wanted) < ways_; }

    // Drops an entry; false if it was not there. Empty entries stay at the end of the set.
    bool erase(std::uint32_t set, Number wanted) {
        Number* const entries = storage_[set * lines_].entries;
        const std::size_t way = find(entries, wanted);
        if (way >= ways_) return false;
        std::copy(entries + way + 1, entries + ways_, entries + way);
        entries[ways_ - 1] = kEmpty;
        return true;
    }

  private:
    static constexpr std::size_t kLanes = 16 / sizeof(Number);
    static constexpr std::size_t kLine = 64 / sizeof(Number);
    typedef Number Vector __attribute__((vector_size(16)));

    // Entries beyond the ways stay empty.
    struct alignas(64) Line {
        Number entries[kLine];
        Line() { std::fill(entries, entries + kLine, kEmpty); }
    };

    static Vector load(const Number* from) {
        Vector vector;
        std::memcpy(&vector, from, sizeof(vector));
        return vector;
    }

    // 1, 2, 3, ...
    static Vector first_numbers() {
        Vector numbers;
        for (std::size_t lane = 0; lane < kLanes; ++lane) numbers[lane] = static_cast<Number>(lane + 1);
        return numbers;
    }

    // Lanes move up by one; the last one of `before` comes in.
    static Vector shifted(Vector before, Vector vector) {
#if defined(__clang__)
        if constexpr (kLanes == 8)
            return __builtin_shufflevector(before, vector, 7, 8, 9, 10, 11, 12, 13, 14);
        else
            return __builtin_shufflevector(before, vector, 3, 4, 5, 6);
#else
        Vector from;
        for (std::size_t lane = 0; lane < kLanes; ++lane) from[lane] = static_cast<Number>(kLanes - 1 + lane);
        return __builtin_shuffle(before, vector, from);
#endif
    }

    // Way of the entry `wanted`, or a number not below the ways. One entry at most matches, so the numbers of matching
    // ways can be gathered by OR.
    std::size_t find(const Number* entries, Number wanted) const {
        const Vector wanted_entry = Vector{} + wanted;
        const Vector dirty = Vector{} + static_cast<Number>(kDirty);
        Vector number = first_numbers();
        Vector found{};
        for (std::size_t v = 0; v < vectors_; ++v) {
            const Vector same = static_cast<Vector>((load(entries + v * kLanes) | dirty) == (wanted_entry | dirty));
            found |= same & number;
            number += static_cast<Number>(kLanes);
        }
        std::uint64_t halves[2];
        std::memcpy(halves, &found, sizeof(halves));
        std::uint64_t way = halves[0] | halves[1];
        way |= way >> 32;
        if constexpr (sizeof(Number) == 2) way |= way >> 16;
        return static_cast<Number>(static_cast<Number>(way) - 1U);
    }

    // Puts `entry` first; the entries before `way` move up by one.
    void to_front(Number* entries, std::size_t way, Number entry) {
        const Vector last = Vector{} + static_cast<Number>(way + 1);
        Vector number = first_numbers();
        Vector before = Vector{} + entry;
        for (std::size_t v = 0; v < vectors_; ++v) {
            const Vector old = load(entries + v * kLanes);
            const Vector keep = static_cast<Vector>(number > last);
            const Vector changed = (old & keep) | (shifted(before, old) & ~keep);
            std::memcpy(entries + v * kLanes, &changed, sizeof(changed));
            before = old;
            number += static_cast<Number>(kLanes);
        }
    }

    std::size_t ways_;
    std::size_t vectors_;  // of a set, without those that stay empty
    std::size_t lines_;    // of a set
    std::vector<Line> storage_;
};

// Two bytes an entry as long as tags fit: 20 ways are then one cache line. The first tag that does not fit makes all
// entries four bytes wide.
class TagArray {
    // Does `action` on the entries that have room for `tag`.
    template <typename Action>
    auto with_room(std::uint32_t tag, const Action& action) {
        if (!is_wide_) {
            if (tag < TagSets<std::uint16_t>::kTags) [[likely]]
                return action(narrow_);
            widen();
        }
        return action(wide_);
    }

  public:
    TagArray(int sets, int ways) : sets_(sets), ways_(ways), narrow_(sets, ways), wide_(0, ways) {}

    // Brings a set into the cache of the machine that simulates.
    void prefetch(std::uint32_t set) const {
#if defined(__GNUC__)
        __builtin_prefetch(is_wide_ ? static_cast<const void*>(wide_.entries(set)) : narrow_.entries(set), 1);
#else
        static_cast<void>(set);
#endif
    }

    // Makes a line (or the shadow of one) the most recently used of its set and adds `flags`; false if it is not there.
    bool touch(const TagPlace& place, std::uint32_t shadow = 0, std::uint32_t flags = 0) {
        return with_room(place.tag, [&](auto& sets) {
            using Number = std::decay_t<decltype(sets.kEmpty)>;
            return sets.touch(place.set, static_cast<Number>(place.tag << 2 | shadow), static_cast<Number>(flags));
        });
    }

    // Puts a line that is not there in as the most recently used one.
    Victim insert(const TagPlace& place, std::uint32_t flags) {
        return with_room(place.tag, [&](auto& sets) -> Victim {
            using Number = std::decay_t<decltype(sets.kEmpty)>;
            const Number entry = sets.insert(place.set, static_cast<Number>(place.tag << 2 | flags));
            if (entry == sets.kEmpty) return {};
            return {true, (entry & kDirty) != 0, std::uint32_t{entry} >> 2};
        });
    }

    bool contains(const TagPlace& place, std::uint32_t shadow = 0) {
        return with_room(place.tag, [&](auto& sets) {
            using Number = std::decay_t<decltype(sets.kEmpty)>;
            return sets.contains(place.set, static_cast<Number>(place.tag << 2 | shadow));
        });
    }

    // Drops a line; false if it was not there.
    bool erase(const TagPlace& place, std::uint32_t shadow = 0) {
        return with_room(place.tag, [&](auto& sets) {
            using Number = std::decay_t<decltype(sets.kEmpty)>;
            return sets.erase(place.set, static_cast<Number>(place.tag << 2 | shadow));
        });
    }

    int shadows(std::uint32_t set) {
        return with_room(0, [&](auto& sets) {
            const auto* const entries = sets.entries(set);
            return static_cast<int>(std::count_if(
                entries, entries + ways_, [&](auto entry) { return entry != sets.kEmpty && (entry & kShadow) != 0; }));
        });
    }

  private:
    [[gnu::noinline]] void widen() {
        wide_ = TagSets<std::uint32_t>(sets_, ways_);
        for (int set = 0; set < sets_; ++set)
            for (int way = ways_ - 1; way >= 0; --way) {
                const std::uint16_t entry = narrow_.entries(static_cast<std::uint32_t>(set))[way];
                if (entry != narrow_.kEmpty) wide_.insert(static_cast<std::uint32_t>(set), entry);
            }
        narrow_ = TagSets<std::uint16_t>(0, ways_);
        is_wide_ = true;
    }

    int sets_;
    int ways_;
    bool is_wide_ = false;
    TagSets<std::uint16_t> narrow_;
    TagSets<std::uint32_t> wide_;
};

}  // namespace simfa
