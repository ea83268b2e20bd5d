// Pool of reusable objects that are expensive to construct: workspaces, messages.
#pragma once

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
  std::unique_ptr<Item> Take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return nullptr;
    std::unique_ptr<Item> item = std::move(idle_.back());
    idle_.pop_back();
    return item;
  }

  void Give(std::unique_ptr<Item> item) {
    const std::lock_guard lock(mutex_);
    if (idle_.size() < max_idle_) idle_.push_back(std::move(item));
    // Otherwise the item is destroyed with the caller's argument, outside the lock.
  }

 private:
  const size_t max_idle_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Item>> idle_;
};

}  // namespace sap
