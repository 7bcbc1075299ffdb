// The timelines of all units, put together.
#include "engine.hpp"

namespace simfa {

std::vector<TimelineSlice> Engine::timeline() const {
    std::vector<TimelineSlice> all;
    for (const auto& pair : pairs_) {
        const std::vector<TimelineSlice>& part = pair->timeline().slices();
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
}

std::vector<TimelineTile> Engine::timeline_tiles() const {
    std::vector<TimelineTile> all;
    for (const auto& pair : pairs_) {
        const std::vector<TimelineTile>& part = pair->timeline().tiles();
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
}

std::int64_t Engine::timeline_size() const {
    std::size_t slices = 0;
    for (const auto& pair : pairs_) slices += pair->timeline().slices().size();
    return static_cast<std::int64_t>(slices);
}

std::vector<std::vector<std::int64_t>> Engine::timeline_counters() const {
    std::vector<std::vector<std::int64_t>> rows(over_ ? pairs_[0]->samples().size() : 0);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        SliceSample chip;
        for (const auto& slice : slices_) {
            const SliceSample& sample = slice->samples()[i];
            chip.hits += sample.hits;
            chip.misses += sample.misses;
            chip.memory_sectors += sample.memory_sectors;
            chip.mshr_entries += sample.mshr_entries;
            chip.requests += sample.requests;
            chip.responses += sample.responses;
        }
        std::int64_t lines = 0;
        for (const auto& pair : pairs_)
            for (const std::int32_t in_flight : pair->samples()[i].lines_in_flight) lines += in_flight;
        rows[i] = {pairs_[0]->samples()[i].cycle,
                   chip.hits,
                   chip.misses,
                   chip.memory_sectors * config_.sector_bytes,
                   chip.mshr_entries,
                   chip.requests,
                   chip.responses,
                   lines};
        for (const std::int32_t sm : config_.timeline.sms)
            rows[i].push_back(pairs_[sm / 2]->samples()[i].lines_in_flight[sm & 1]);
    }
    return rows;
}

}  // namespace simfa
