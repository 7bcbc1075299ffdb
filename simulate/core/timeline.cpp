#include "timeline.hpp"

namespace simfa {

Timeline::Timeline(const TimelineChoice& choice, int pair, int roles) : choice_(choice), pair_(pair), roles_(roles) {
    for (int side = 0; side < 2; ++side) {
        if (std::find(choice.sms.begin(), choice.sms.end(), 2 * pair + side) == choice.sms.end()) continue;
        wanted_ |= 1 << side;
        recorders_[side] = std::make_unique<Recorder>();
        if (choice.all_tiles()) recorders_[side]->begin = 0;
    }
}

void Timeline::push(int sm, int track, int name, Cycle start, Cycle end, std::int64_t arg) {
    const Recorder& recorder = *recorders_[sm & 1];
    const Cycle begin = std::max(choice_.begin, recorder.begin);
    if (end <= begin || start >= std::min(choice_.end, recorder.end) || start >= end) return;
    if (track < kMaxRoles && !choice_.all_tiles() && (arg < recorder.first_tile || arg > recorder.last_tile)) return;
    slices_.push_back({start, end, sm, static_cast<std::int16_t>(track), static_cast<std::int16_t>(name),
                       static_cast<std::int32_t>(arg)});
}

void Timeline::extend(int sm, int track, int name, Cycle start, Cycle end, std::int64_t arg) {
    if (!wants(sm) || start >= end) return;
    State& state = recorders_[sm & 1]->states[track];
    if (state.open && state.until == start && state.name == name && state.arg == arg) {
        state.until = end;
        return;
    }
    flush(sm, track);
    state = {start, end, arg, static_cast<std::int16_t>(name), true};
}

void Timeline::flush(int sm, int track) {
    State& state = recorders_[sm & 1]->states[track];
    if (state.open) push(sm, track, state.name, state.since, state.until, state.arg);
    state.open = false;
}

void Timeline::enter(int sm, int track, int name, int blank, std::int64_t arg, Cycle now) {
    State& state = recorders_[sm & 1]->states[track];
    if (state.open && name != blank && state.name == name && state.arg == arg) return;
    if (state.open) push(sm, track, state.name, state.since, now, state.arg);
    state = {now, now, arg, static_cast<std::int16_t>(name), name != blank};
}

// Slices are pushed when they have ended. Until the first role begins a chosen tile none is kept, and when the last
// role has left them all, only those that began before. Of the roles, only slices of chosen tiles are.
void Timeline::begin_tile(int sm, int role, std::int64_t ordinal, const Tile& tile, Cycle now) {
    Recorder& recorder = *recorders_[sm & 1];
    const bool chosen = choice_.takes(ordinal, tile);
    if (!chosen) {
        leave_tiles(recorder, role, now);
        return;
    }
    recorder.begin = std::min(recorder.begin, now);
    recorder.first_tile = std::min(recorder.first_tile, ordinal);
    recorder.last_tile = ordinal;
    recorder.entered |= 1U << role;
    if (role == 0 && now < choice_.end) tiles_.push_back({now, sm, static_cast<std::int32_t>(ordinal), tile});
}

void Timeline::end_role(int sm, int role, Cycle now) {
    if (!choice_.all_tiles()) leave_tiles(*recorders_[sm & 1], role, now);
}

void Timeline::leave_tiles(Recorder& recorder, int role, Cycle now) {
    recorder.left |= recorder.entered & 1U << role;
    if (recorder.left == (1U << roles_) - 1U) recorder.end = std::min(recorder.end, now);
}

void Timeline::close(Cycle end) {
    for (int side = 0; side < 2; ++side) {
        if (!wants(side)) continue;
        for (int track = 0; track < kTracks; ++track) {
            State& state = recorders_[side]->states[track];
            if (track >= kStageTracks) state.until = end;
            flush(2 * pair_ + side, track);
        }
    }
    std::erase_if(slices_, [end](const TimelineSlice& slice) { return slice.start >= end; });
    for (TimelineSlice& slice : slices_) slice.end = std::min(slice.end, end);
}

}  // namespace simfa
