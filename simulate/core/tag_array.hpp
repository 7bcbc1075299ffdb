// Tags of one L2 slice: sets of entries kept in most-recently-used order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "sectors.hpp"

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
    SectorMask dirty = 0;
    std::uint32_t tag = 0;
};

// How an entry says what it holds, tag and shadow flag apart. Numbers of 2 or 4 bytes hold whole lines: tag << 2 |
// flags. Numbers of 8 bytes say which sectors are valid and which of them dirty: tag << 32 | dirty << 16 | valid << 8 |
// shadow flag.
template <typename Number>
struct TagFormat {
    static constexpr bool kSectored = sizeof(Number) == 8;
    static constexpr int kTagShift = kSectored ? 32 : 2;
    static constexpr int kValidShift = 8;
    static constexpr int kDirtyShift = 16;
    static constexpr Number kState = static_cast<Number>(kSectored ? 0xFFFF00U : kDirty);
};

// The entries of all sets. A set starts at a cache line of the machine that simulates; look-up and reordering take
// whole vectors, without a branch for the way.
template <typename Number>
class TagSets {
  public:
    using Format = TagFormat<Number>;
    static constexpr Number kEmpty = std::numeric_limits<Number>::max();
    // Tags are below this, so that none looks empty.
    static constexpr Number kTags = kEmpty >> Format::kTagShift;

    TagSets(int sets, int ways)
        : ways_(static_cast<std::size_t>(ways)),
          vectors_((ways_ + kLanes - 1) / kLanes),
          lines_((ways_ + kLine - 1) / kLine),
          storage_(static_cast<std::size_t>(sets) * lines_) {}

    const Number* entries(std::uint32_t set) const { return storage_[set * lines_].entries; }

    // Makes the entry `wanted` (its state apart) the most recently used one and adds `state`; returns it, or nothing
    // if it is not there.
    const Number* touch(std::uint32_t set, Number wanted, Number state) {
        Number* const entries = storage_[set * lines_].entries;
        if ((entries[0] | Format::kState) == (wanted | Format::kState)) {
            entries[0] = static_cast<Number>(entries[0] | state);
            return entries;
        }
        const std::size_t way = find(entries, wanted);
        if (way >= ways_) return nullptr;
        to_front(entries, way, static_cast<Number>(entries[way] | state));
        return entries;
    }

    // Puts an entry that is not there in as the most recently used one; returns the one it replaces.
    Number insert(std::uint32_t set, Number entry) {
        Number* const entries = storage_[set * lines_].entries;
        const Number victim = entries[ways_ - 1];
        to_front(entries, ways_ - 1, entry);
        return victim;
    }

    // The entry `wanted`, where it lies, or nothing.
    Number* look_up(std::uint32_t set, Number wanted) {
        Number* const entries = storage_[set * lines_].entries;
        const std::size_t way = find(entries, wanted);
        return way < ways_ ? entries + way : nullptr;
    }

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
        else if constexpr (kLanes == 4)
            return __builtin_shufflevector(before, vector, 3, 4, 5, 6);
        else
            return __builtin_shufflevector(before, vector, 1, 2);
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
        const Vector state = Vector{} + Format::kState;
        Vector number = first_numbers();
        Vector found{};
        for (std::size_t v = 0; v < vectors_; ++v) {
            const Vector same = static_cast<Vector>((load(entries + v * kLanes) | state) == (wanted_entry | state));
            found |= same & number;
            number += static_cast<Number>(kLanes);
        }
        std::uint64_t halves[2];
        std::memcpy(halves, &found, sizeof(halves));
        std::uint64_t way = halves[0] | halves[1];
        if constexpr (sizeof(Number) <= 4) way |= way >> 32;
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

// Two bytes an entry as long as tags fit and lines are whole: 20 ways are then one cache line. The first tag that does
// not fit makes all entries four bytes wide, the first line that is valid or dirty in part eight.
class TagArray {
    // Does `action` on the entries that have room for `tag`.
    template <typename Action>
    auto with_room(std::uint32_t tag, const Action& action) {
        if (width_ == Width::narrow) [[likely]] {
            if (tag < TagSets<std::uint16_t>::kTags) [[likely]]
                return action(narrow_);
            widen(wide_, Width::wide);
        }
        return width_ == Width::wide ? action(wide_) : action(sectored_);
    }

    template <typename Sets>
    using NumberOf = std::remove_const_t<decltype(std::decay_t<Sets>::kEmpty)>;

    // An entry without its state.
    template <typename Number>
    static Number entry_of(const TagPlace& place, std::uint32_t shadow) {
        return static_cast<Number>(static_cast<Number>(place.tag) << TagFormat<Number>::kTagShift | shadow);
    }

    // The state of an entry; in part only if it has eight bytes.
    template <typename Number>
    static Number state_of(SectorMask valid, SectorMask dirty) {
        using Format = TagFormat<Number>;
        if constexpr (Format::kSectored)
            return Number{valid} << Format::kValidShift | Number{dirty} << Format::kDirtyShift;
        else
            return static_cast<Number>(dirty != 0 ? kDirty : 0);
    }

    template <typename Number>
    SectorMask valid_of(Number entry) const {
        if constexpr (TagFormat<Number>::kSectored)
            return static_cast<SectorMask>(entry >> TagFormat<Number>::kValidShift) & 0xFFU;
        else
            return all_;
    }

    template <typename Number>
    SectorMask dirty_of(Number entry) const {
        if constexpr (TagFormat<Number>::kSectored)
            return static_cast<SectorMask>(entry >> TagFormat<Number>::kDirtyShift) & 0xFFU;
        else
            return (entry & kDirty) != 0 ? all_ : 0;
    }

  public:
    // `sectors` is how many a line has.
    TagArray(int sets, int ways, int sectors = 1)
        : sets_(sets),
          ways_(ways),
          all_(all_sectors(sectors)),
          narrow_(sets, ways),
          wide_(0, ways),
          sectored_(0, ways) {}

    // Whether any line is or was valid or dirty in part.
    bool sectored() const { return width_ == Width::sectored; }

    // Brings a set into the cache of the machine that simulates. Inlined always: GCC takes a function that only
    // prefetches for one without effect, and drops calls of it.
    [[gnu::always_inline]] void prefetch(std::uint32_t set) const {
#if defined(__GNUC__)
        // Only the sets of the present width exist.
        if (width_ == Width::narrow) [[likely]]
            __builtin_prefetch(narrow_.entries(set), 1);
        else if (width_ == Width::wide)
            __builtin_prefetch(wide_.entries(set), 1);
        else
            __builtin_prefetch(sectored_.entries(set), 1);
#else
        static_cast<void>(set);
#endif
    }

    // Makes a line (or the shadow of one) the most recently used of its set; true if it is there with all of `wanted`.
    bool read(const TagPlace& place, std::uint32_t shadow, SectorMask wanted) {
        return with_room(place.tag, [&](auto& sets) {
            using Number = NumberOf<decltype(sets)>;
            const Number* const entry = sets.touch(place.set, entry_of<Number>(place, shadow), 0);
            if constexpr (TagFormat<Number>::kSectored)
                return entry != nullptr && (wanted & ~valid_of(*entry)) == 0;
            else
                return entry != nullptr;
        });
    }

    // The same for a line of which `written` becomes valid and dirty; false if it is not there.
    bool write(const TagPlace& place, SectorMask written) {
        if (written != all_) [[unlikely]]
            hold_parts();
        return with_room(place.tag, [&](auto& sets) {
            using Number = NumberOf<decltype(sets)>;
            return sets.touch(place.set, entry_of<Number>(place, 0), state_of<Number>(written, written)) != nullptr;
        });
    }

    // Puts a line that is not there in as the most recently used one.
    Victim insert(const TagPlace& place, std::uint32_t shadow, SectorMask valid, SectorMask dirty) {
        if (valid != all_ || (dirty != all_ && dirty != 0)) [[unlikely]]
            hold_parts();
        return with_room(place.tag, [&](auto& sets) -> Victim {
            using Number = NumberOf<decltype(sets)>;
            const auto entry = static_cast<Number>(entry_of<Number>(place, shadow) | state_of<Number>(valid, dirty));
            const Number gone = sets.insert(place.set, entry);
            if (gone == sets.kEmpty) return {};
            return {true, dirty_of(gone), static_cast<std::uint32_t>(gone >> TagFormat<Number>::kTagShift)};
        });
    }

    // Adds sectors to a line, whose turn to be replaced stays the same; false if it is not there.
    bool add(const TagPlace& place, std::uint32_t shadow, SectorMask valid, SectorMask dirty) {
        if (dirty != all_ && dirty != 0) hold_parts();
        return with_room(place.tag, [&](auto& sets) {
            using Number = NumberOf<decltype(sets)>;
            Number* const entry = sets.look_up(place.set, entry_of<Number>(place, shadow));
            if (entry == nullptr) return false;
            *entry = static_cast<Number>(*entry | state_of<Number>(valid, dirty));
            return true;
        });
    }

    // The sectors of a line that are there.
    SectorMask valid(const TagPlace& place, std::uint32_t shadow = 0) {
        return with_room(place.tag, [&](auto& sets) {
            using Number = NumberOf<decltype(sets)>;
            const Number* const entry = sets.look_up(place.set, entry_of<Number>(place, shadow));
            return entry == nullptr ? SectorMask{0} : valid_of(*entry);
        });
    }

    // Drops a line; false if it was not there.
    bool erase(const TagPlace& place, std::uint32_t shadow = 0) {
        return with_room(place.tag, [&](auto& sets) {
            using Number = NumberOf<decltype(sets)>;
            return sets.erase(place.set, entry_of<Number>(place, shadow));
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
    enum class Width : std::uint8_t { narrow, wide, sectored };

    void hold_parts() {
        if (width_ != Width::sectored) widen(sectored_, Width::sectored);
    }

    template <typename Number>
    [[gnu::noinline]] void widen(TagSets<Number>& wider, Width width) {
        wider = TagSets<Number>(sets_, ways_);
        const auto move = [&](auto& sets) {
            using Old = NumberOf<decltype(sets)>;
            for (std::uint32_t set = 0; set < static_cast<std::uint32_t>(sets_); ++set)
                for (int way = ways_ - 1; way >= 0; --way) {
                    const Old old = sets.entries(set)[way];
                    if (old == sets.kEmpty) continue;
                    const TagPlace place{set, static_cast<std::uint32_t>(old >> TagFormat<Old>::kTagShift)};
                    const Number entry = entry_of<Number>(place, old & kShadow);
                    wider.insert(set, static_cast<Number>(entry | state_of<Number>(valid_of(old), dirty_of(old))));
                }
            sets = TagSets<Old>(0, ways_);
        };
        if (width_ == Width::narrow)
            move(narrow_);
        else
            move(wide_);
        width_ = width;
    }

    int sets_;
    int ways_;
    SectorMask all_;
    Width width_ = Width::narrow;
    TagSets<std::uint16_t> narrow_;
    TagSets<std::uint32_t> wide_;
    TagSets<std::uint64_t> sectored_;
};

}  // namespace simfa
