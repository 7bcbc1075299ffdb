// Miss status holding registers of one L2 slice: outstanding sectors of lines and the requests that wait for them.
#pragma once

#include <cstdint>
#include <vector>

#include "messages.hpp"
#include "tag_array.hpp"
#include "types.hpp"

namespace simfa {

// A request as a slice keeps it.
struct SliceRequest {
    Cycle arrival = 0;
    Message message;
    TagPlace place;
};

// An entry stands for one read of memory: sectors of a line that no other entry of the line brings. A request waits in
// one entry; what else it needs may come with other entries of its line.
class MshrFile {
  public:
    // What entries of a line bring: `entry` is one that has a wanted sector, or -1.
    struct Outstanding {
        int entry = -1;
        SectorMask sectors = 0;
    };

    // `merges` is the most requests that may join one entry, the first included.
    MshrFile(int entries, int merges);

    bool full() const { return free_.empty(); }
    int used() const { return static_cast<int>(entries_.size() - free_.size()); }

    // Looks for `wanted` sectors of a line among what is outstanding, until all are found.
    Outstanding find(std::uint32_t line, SectorMask wanted) const {
        Outstanding found;
        for (std::size_t i = slot_of(line); table_[i] >= 0; i = (i + 1) & mask_) {
            const Entry& entry = entries_[table_[i]];
            if (entry.line != line) continue;
            if (found.entry < 0 && (entry.sectors & wanted) != 0) found.entry = table_[i];
            found.sectors |= entry.sectors;
            if ((wanted & ~found.sectors) == 0) break;
        }
        return found;
    }

    bool merge_full(int entry) const { return entries_[entry].waiting >= merges_; }

    // Takes a free entry for `sectors` of the line of `request`, which waits first in it and lacks `missing`.
    int allocate(const SliceRequest& request, SectorMask sectors, SectorMask missing);

    // Adds `request` behind those that wait in the entry.
    void merge(int entry, const SliceRequest& request, SectorMask missing);

    // The sectors have come: later requests no longer find the entry, which stays in use until it is empty.
    void filled(int entry);

    // After sectors of a line came: requests that wait in its entries lack them no more. Those of `entry`, which is
    // filled, that still lack others go behind the ones that wait for these.
    void settle(int entry);

    bool empty(int entry) const { return entries_[entry].waiting == 0; }
    const SliceRequest& front(int entry) const { return nodes_[entries_[entry].first].request; }
    void pop(int entry);
    void release(int entry) { free_.push_back(entry); }

    std::uint32_t line(int entry) const { return entries_[entry].line; }
    const TagPlace& place(int entry) const { return entries_[entry].place; }
    SectorMask sectors(int entry) const { return entries_[entry].sectors; }

    // Sectors that writes which wait in the entry make dirty from the fill on.
    SectorMask dirty(int entry) const { return entries_[entry].dirty; }

  private:
    struct Entry {
        std::uint32_t line = 0;
        TagPlace place;
        int first = -1;
        int last = -1;
        int waiting = 0;
        SectorMask sectors = 0;
        SectorMask dirty = 0;
    };
    struct Node {
        SliceRequest request;
        int next = -1;
        SectorMask missing = 0;
    };

    std::size_t slot_of(std::uint32_t line) const { return (line * 0x9E3779B1U) >> shift_; }
    void append(int entry, int node);

    int merges_;
    int shift_;
    std::size_t mask_;
    std::vector<Entry> entries_;
    std::vector<int> free_;
    std::vector<int> table_;  // open addressing, at most half full
    std::vector<Node> nodes_;
    int free_node_ = -1;
};

}  // namespace simfa
