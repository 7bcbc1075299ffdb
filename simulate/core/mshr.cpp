#include "mshr.hpp"

namespace simfa {

MshrFile::MshrFile(int entries, int merges) : merges_(merges), shift_(30), mask_(3), entries_(entries) {
    while (mask_ + 1 < 2 * entries_.size()) {
        mask_ = 2 * mask_ + 1;
        --shift_;
    }
    table_.assign(mask_ + 1, -1);
    free_.reserve(entries_.size());
    for (int entry = entries - 1; entry >= 0; --entry) free_.push_back(entry);
}

int MshrFile::allocate(const SliceRequest& request, SectorMask sectors, SectorMask missing) {
    const int entry = free_.back();
    free_.pop_back();
    entries_[entry] = {.line = request.message.line, .place = request.place, .sectors = sectors};
    std::size_t slot = slot_of(request.message.line);
    while (table_[slot] >= 0) slot = (slot + 1) & mask_;
    table_[slot] = entry;
    merge(entry, request, missing);
    return entry;
}

void MshrFile::merge(int entry, const SliceRequest& request, SectorMask missing) {
    int node = free_node_;
    if (node >= 0) {
        free_node_ = nodes_[node].next;
    } else {
        node = static_cast<int>(nodes_.size());
        nodes_.emplace_back();
    }
    nodes_[node] = {request, -1, missing};
    append(entry, node);
    if (request.message.kind == write_request) entries_[entry].dirty |= sectors_of(request.message);
}

void MshrFile::append(int entry, int node) {
    Entry& target = entries_[entry];
    if (target.waiting++ == 0)
        target.first = node;
    else
        nodes_[target.last].next = node;
    target.last = node;
}

// Removes the entry from the table, moving later entries of its run up so that no search stops short.
void MshrFile::filled(int entry) {
    std::size_t hole = slot_of(entries_[entry].line);
    while (table_[hole] != entry) hole = (hole + 1) & mask_;
    for (std::size_t slot = (hole + 1) & mask_; table_[slot] >= 0; slot = (slot + 1) & mask_) {
        const std::size_t home = slot_of(entries_[table_[slot]].line);
        if (((slot - home) & mask_) >= ((slot - hole) & mask_)) {
            table_[hole] = table_[slot];
            hole = slot;
        }
    }
    table_[hole] = -1;
}

void MshrFile::settle(int entry) {
    Entry& done = entries_[entry];
    for (std::size_t slot = slot_of(done.line); table_[slot] >= 0; slot = (slot + 1) & mask_) {
        const Entry& other = entries_[table_[slot]];
        if (other.line != done.line) continue;
        int node = other.first;
        for (int i = 0; i < other.waiting; ++i, node = nodes_[node].next) nodes_[node].missing &= ~done.sectors;
    }
    const int waiting = done.waiting;
    int node = done.first;
    done.waiting = 0;
    for (int i = 0; i < waiting; ++i) {
        const int next = nodes_[node].next;
        nodes_[node].next = -1;
        SectorMask& missing = nodes_[node].missing;
        missing &= ~done.sectors;
        append(missing == 0 ? entry : find(done.line, missing).entry, node);
        node = next;
    }
}

void MshrFile::pop(int entry) {
    Entry& target = entries_[entry];
    const int node = target.first;
    target.first = nodes_[node].next;
    --target.waiting;
    nodes_[node].next = free_node_;
    free_node_ = node;
}

}  // namespace simfa
