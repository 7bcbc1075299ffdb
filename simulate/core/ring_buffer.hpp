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

    void push(const T& item) {
        if (size_ == items_.size()) grow();
        items_[(head_ + size_++) & mask_] = item;
    }

    void pop() {
        head_ = (head_ + 1) & mask_;
        --size_;
    }

    void reserve(std::size_t count) {
        while (items_.size() < count) grow();
    }

  private:
    void grow() {
        std::vector<T> larger(items_.empty() ? 16 : 2 * items_.size());
        for (std::size_t i = 0; i < size_; ++i) larger[i] = (*this)[i];
        items_ = std::move(larger);
        head_ = 0;
        mask_ = items_.size() - 1;
    }

    std::vector<T> items_;
    std::size_t head_ = 0;
    std::size_t size_ = 0;
    std::size_t mask_ = 0;
};

}  // namespace simfa
