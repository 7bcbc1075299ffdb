// What a DRAM channel counts.
#pragma once

#include <cstdint>

namespace simfa {

struct DramStats {
    std::int64_t reads = 0;  // bursts
    std::int64_t writes = 0;
    std::int64_t activates = 0;
    std::int64_t refreshes = 0;
    std::int64_t forwarded_reads = 0;  // found in the write queue
    std::int64_t absorbed_writes = 0;  // to a burst that already waited to be written
    std::int64_t drains = 0;           // changes from reading to writing

    DramStats& operator+=(const DramStats& other) {
        reads += other.reads;
        writes += other.writes;
        activates += other.activates;
        refreshes += other.refreshes;
        forwarded_reads += other.forwarded_reads;
        absorbed_writes += other.absorbed_writes;
        drains += other.drains;
        return *this;
    }
    friend bool operator==(const DramStats&, const DramStats&) = default;
};

}  // namespace simfa
