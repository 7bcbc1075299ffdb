// The requests that wait for their turn at a slice, in order of arrival.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "mshr.hpp"

namespace simfa {

// A window's requests are put in behind those that are left from earlier ones, in one piece of memory.
class RequestQueue {
  public:
    bool empty() const { return head_ == tail_; }
    const SliceRequest& front() const { return items_[head_]; }
    void pop() { ++head_; }

    // Requests that have arrived before `cycle`.
    std::size_t arrived(Cycle cycle) const {
        const auto first = items_.begin() + static_cast<std::ptrdiff_t>(head_);
        const auto last = items_.begin() + static_cast<std::ptrdiff_t>(tail_);
        const auto early = [cycle](const SliceRequest& request) { return request.arrival < cycle; };
        return static_cast<std::size_t>(std::partition_point(first, last, early) - first);
    }

    // A place for up to `count` more requests; `put` says how many there are.
    SliceRequest* room(std::size_t count) {
        std::copy(items_.begin() + static_cast<std::ptrdiff_t>(head_),
                  items_.begin() + static_cast<std::ptrdiff_t>(tail_), items_.begin());
        tail_ -= head_;
        head_ = 0;
        if (items_.size() < tail_ + count) items_.resize(2 * (tail_ + count));
        return items_.data() + tail_;
    }
    void put(std::size_t count) { tail_ += count; }

  private:
    std::vector<SliceRequest> items_;
    std::size_t head_ = 0;
    std::size_t tail_ = 0;
};

}  // namespace simfa
