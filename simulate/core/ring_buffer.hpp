// A first-in first-out queue that stops allocating once it is as long as it ever gets.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace simfa {

template <typename T>
class RingBuffer {
  public:
    bool empty() const { return size_ == 0; }
    std::size_t size() const { return size_; }

    T& front() { return items_[head_]; }
    const T& front() const { return items_[head_]; }

    // Element `index` places behind the front.
    T& operator[](std::size_t index) { return items_[(head_ + index) & mask_]; }
    const T& operator[](std::size_t index) const { return items_[(head_ + index) & mask_]; }

    void push(const T& item) { push() = item; }

    // Appends an element with whatever value its place holds, to be filled in there.
    T& push() {
        if (size_ == capacity_) grow();
        return items_[(head_ + size_++) & mask_];
    }

    // An empty queue starts anew at the first place, so that a short one stays in few cache lines.
    void pop() {
        --size_;
        head_ = size_ == 0 ? 0 : (head_ + 1) & mask_;
    }

  private:
    [[gnu::noinline]] void grow() {
        std::vector<T> larger(items_.empty() ? 16 : 2 * items_.size());
        for (std::size_t i = 0; i < size_; ++i) larger[i] = (*this)[i];
        items_ = std::move(larger);
        head_ = 0;
        capacity_ = items_.size();
        mask_ = capacity_ - 1;
    }

    std::vector<T> items_;
    std::size_t head_ = 0;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
    std::size_t mask_ = 0;
};

}  // namespace simfa
