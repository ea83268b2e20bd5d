// Pool of reusable objects that are expensive to construct: workspaces, messages.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace sap {

// Thread-safe. LIFO, since the object returned last is the most likely to be in cache.
template <typename Item>
class ObjectPool {
 public:
  // Keeps at most max_idle unused objects.
  explicit ObjectPool(size_t max_idle) : max_idle_(max_idle) {}

  // Returns a pooled object, or null if the pool is empty.
  std::unique_ptr<Item> Acquire() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return nullptr;
    std::unique_ptr<Item> item = std::move(idle_.back().item);
    bytes_ -= idle_.back().bytes;
    idle_.pop_back();
    return item;
  }

  // `bytes` is what the item keeps, for bytes().
  void Release(std::unique_ptr<Item> item, int64_t bytes = 0) {
    const std::lock_guard lock(mutex_);
    // Otherwise the item is destroyed with the caller's argument, outside the lock.
    if (idle_.size() == max_idle_) return;
    idle_.push_back({std::move(item), bytes});
    bytes_ += bytes;
  }

  // Frees all unused objects.
  void Clear() {
    std::vector<Idle> freed;
    const std::lock_guard lock(mutex_);
    freed.swap(idle_);
    bytes_ = 0;
  }

  // Bytes that the unused objects keep.
  int64_t bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  struct Idle {
    std::unique_ptr<Item> item;
    int64_t bytes;
  };

  const size_t max_idle_;
  mutable std::mutex mutex_;
  std::vector<Idle> idle_;
  int64_t bytes_{0};
};

}  // namespace sap
