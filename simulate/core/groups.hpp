// Commit groups of one role: WGMMA groups with known completions, TMA store groups with counted answers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "types.hpp"

namespace simfa {

// WGMMA groups: completion cycles in commit order; each entry is the largest completion up to that group.
class WgmmaGroups {
  public:
    void add(Cycle end, Cycle done) {
        open_end_ = std::max(open_end_, end);
        open_done_ = std::max(open_done_, done);
        open_ = true;
    }

    // Commits the open group at `now`; returns the end of its last WGMMA (-1: the group is empty).
    Cycle commit(Cycle now) {
        last_done_ = std::max(last_done_, open_ ? open_done_ : now);
        done_[committed_++ & kMask] = last_done_;
        const Cycle end = open_ ? open_end_ : -1;
        open_end_ = open_done_ = -1;
        open_ = false;
        return end;
    }

    // The cycle by which group `index` (absolute) and all before it have completed; 0 if there is no such group.
    Cycle completion(std::int64_t index) const {
        if (index < 0 || committed_ == 0) return 0;
        const std::int64_t kept = std::min(index, committed_ - 1);
        return committed_ - kept > kMask ? 0 : done_[kept & kMask];
    }

    std::int64_t committed() const { return committed_; }

  private:
    static constexpr std::int64_t kMask = 255;
    std::array<Cycle, kMask + 1> done_{};
    std::int64_t committed_ = 0;
    Cycle last_done_ = 0;
    Cycle open_end_ = -1;
    Cycle open_done_ = -1;
    bool open_ = false;
};

// TMA store groups: how many operations are unread and unanswered.
class StoreGroups {
  public:
    void add() {
        Group& group = groups_[committed_ & kMask];
        if (!open_) group = {};
        open_ = true;
        ++group.unread;
        ++group.unanswered;
    }

    void commit() {
        if (!open_) groups_[committed_ & kMask] = {};
        open_ = false;
        ++committed_;
    }

    void read(std::int64_t index) { --groups_[index & kMask].unread; }
    void answer(std::int64_t index) { --groups_[index & kMask].unanswered; }

    // Whether group `index` (absolute) and all before it are done; `read` asks for their shared memory only.
    bool done(std::int64_t index, bool read) {
        std::int64_t& first = read ? first_unread_ : first_unanswered_;
        while (first < committed_ && (read ? groups_[first & kMask].unread : groups_[first & kMask].unanswered) == 0)
            ++first;
        return first > std::min(index, committed_ - 1);
    }

    std::int64_t open_index() const { return committed_; }
    std::int64_t committed() const { return committed_; }
    bool quiet() { return done(committed_ - 1, false) && !open_; }

  private:
    struct Group {
        std::int32_t unread = 0;
        std::int32_t unanswered = 0;
    };
    static constexpr std::int64_t kMask = 255;
    std::array<Group, kMask + 1> groups_{};
    std::int64_t committed_ = 0;
    std::int64_t first_unread_ = 0;
    std::int64_t first_unanswered_ = 0;
    bool open_ = false;
};

}  // namespace simfa
