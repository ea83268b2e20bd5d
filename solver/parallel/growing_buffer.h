// Uninitialized memory, aligned to cache lines, that is kept and only grows.
//
// Fresh memory costs a page fault per 4 KiB, more than a small factorization.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

namespace sap {

template <typename T>
class GrowingBuffer {
 public:
  // At least `size` elements; the contents are lost if it has to grow. It then grows by a quarter
  // or more, so that patterns that grow a little at every step do not move it every time.
  T* Reserve(size_t size) {
    if (size > size_) {
      const size_t new_size = SizeAfter(size);
      data_.reset();
      size_ = 0;
      data_.reset(static_cast<T*>(::operator new(new_size * sizeof(T), kAlignment)));
      size_ = new_size;
    }
    return data_.get();
  }

  // Frees the memory if it holds more than `size` elements.
  void ReleaseAbove(size_t size) {
    if (size_ <= size) return;
    data_.reset();
    size_ = 0;
  }

  // The size once `size` elements are reserved.
  size_t SizeAfter(size_t size) const {
    return size > size_ ? std::max(size, size_ + size_ / 4) : size_;
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  size_t size() const { return size_; }
  size_t storage_bytes() const { return size_ * sizeof(T); }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Delete {
    void operator()(T* data) const { ::operator delete(data, kAlignment); }
  };
  std::unique_ptr<T, Delete> data_;
  size_t size_{0};
};

}  // namespace sap
