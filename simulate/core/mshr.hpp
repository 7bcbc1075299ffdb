// Miss status holding registers of one L2 slice: outstanding lines and the requests that wait for each.
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

class MshrFile {
  public:
    // `merges` is the most requests that may wait for one line, the first included.
    MshrFile(int entries, int merges);

    bool full() const { return free_.empty(); }
    int used() const { return static_cast<int>(entries_.size() - free_.size()); }

    // Entry of an outstanding `line`, or -1.
    int find(std::uint32_t line) const {
        for (std::size_t i = slot_of(line);; i = (i + 1) & mask_) {
            const int entry = table_[i];
            if (entry < 0 || entries_[entry].line == line) return entry;
        }
    }

    bool merge_full(int entry) const { return entries_[entry].waiting >= merges_; }

    // Takes a free entry for the line of `request`, which waits first in it.
    int allocate(const SliceRequest& request);

    // Adds `request` behind those that wait for the line.
    void merge(int entry, const SliceRequest& request);

    // The line has come: later requests no longer find the entry, which stays in use until it is empty.
    void filled(int entry);

    bool empty(int entry) const { return entries_[entry].waiting == 0; }
    const SliceRequest& front(int entry) const { return nodes_[entries_[entry].first].request; }
    void pop(int entry);
    void release(int entry) { free_.push_back(entry); }

    std::uint32_t line(int entry) const { return entries_[entry].line; }
    const TagPlace& place(int entry) const { return entries_[entry].place; }

    // True if a write waits in the entry: the line is dirty from its fill on.
    bool dirty(int entry) const { return entries_[entry].dirty; }

  private:
    struct Entry {
        std::uint32_t line = 0;
        TagPlace place;
        int first = -1;
        int last = -1;
        int waiting = 0;
        bool dirty = false;
    };
    struct Node {
        SliceRequest request;
        int next = -1;
    };

    std::size_t slot_of(std::uint32_t line) const { return (line * 0x9E3779B1U) >> shift_; }

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
