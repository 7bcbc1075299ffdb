// Commit groups of one role: WGMMA groups with known completions, TMA store groups with counted answers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
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
        if (slot(committed_) > now) grow();
        slot(committed_++) = last_done_;
        const Cycle end = open_ ? open_end_ : -1;
        open_end_ = open_done_ = -1;
        open_ = false;
        return end;
    }

    // The cycle by which group `index` (absolute) and all before it have completed; 0 if that is past or there is no
    // such group.
    Cycle completion(std::int64_t index) const {
        if (index < 0 || committed_ == 0) return 0;
        const std::int64_t kept = std::min(index, committed_ - 1);
        return committed_ - kept > size() ? 0 : done_[kept & (size() - 1)];
    }

    std::int64_t committed() const { return committed_; }

  private:
    std::int64_t size() const { return static_cast<std::int64_t>(done_.size()); }
    Cycle& slot(std::int64_t group) { return done_[group & (size() - 1)]; }

    // The oldest group kept has not completed: keep twice as many.
    void grow() {
        std::vector<Cycle> larger(2 * done_.size());
        for (std::int64_t group = committed_ - size(); group < committed_; ++group)
            larger[group & (2 * size() - 1)] = slot(group);
        done_ = std::move(larger);
    }

    std::vector<Cycle> done_ = std::vector<Cycle>(64);  // a power of two
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
        open();
        ++slot(committed_).unread;
        ++slot(committed_).unanswered;
    }

    void commit() {
        open();
        open_ = false;
        ++committed_;
    }

    void read(std::int64_t index) { --slot(index).unread; }
    void answer(std::int64_t index) { --slot(index).unanswered; }

    // Whether group `index` (absolute) and all before it are done; `read` asks for their shared memory only.
    bool done(std::int64_t index, bool read) {
        std::int64_t& first = read ? first_unread_ : first_unanswered_;
        while (first < committed_ && (read ? slot(first).unread : slot(first).unanswered) == 0) ++first;
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

    std::int64_t size() const { return static_cast<std::int64_t>(groups_.size()); }
    Group& slot(std::int64_t group) { return groups_[group & (size() - 1)]; }

    // Makes a place for the group that is not committed yet.
    void open() {
        if (open_) return;
        open_ = true;
        if (committed_ - oldest() >= size()) {
            done(committed_ - 1, true);
            done(committed_ - 1, false);
        }
        if (committed_ - oldest() >= size()) grow();
        slot(committed_) = {};
    }

    // The first group that must be kept.
    std::int64_t oldest() const { return std::min(first_unread_, first_unanswered_); }

    void grow() {
        std::vector<Group> larger(2 * groups_.size());
        for (std::int64_t group = oldest(); group < committed_; ++group) larger[group & (2 * size() - 1)] = slot(group);
        groups_ = std::move(larger);
    }

    std::vector<Group> groups_ = std::vector<Group>(64);  // a power of two
    std::int64_t committed_ = 0;
    std::int64_t first_unread_ = 0;
    std::int64_t first_unanswered_ = 0;
    bool open_ = false;
};

}  // namespace simfa
