// Objects that are costly to make, kept for the next user: workspaces, messages.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace sap {

// Thread-safe. Last in, first out, so that the object handed out is the one most likely in cache.
template <typename Item>
class FreeList {
 public:
  // Keeps at most max_idle objects that nobody uses.
  explicit FreeList(size_t max_idle) : max_idle_(max_idle) {}

  // An object that was given back, or null: then make one.
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
    // Otherwise the item goes when the caller's argument does, outside the lock.
  }

 private:
  const size_t max_idle_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Item>> idle_;
};

}  // namespace sap
