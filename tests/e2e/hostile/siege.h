// An attack in position: what it holds, and what it does over and over, until it is destroyed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace sap::test::hostile {

class Siege {
 public:
  Siege() = default;
  ~Siege() {
    for (std::jthread& thread : threads_) thread.request_stop();
    threads_.clear();
  }
  Siege(const Siege&) = delete;
  Siege& operator=(const Siege&) = delete;

  // Holds a connection, a call or a load until the siege ends.
  template <typename Part>
  std::shared_ptr<Part> Hold(std::shared_ptr<Part> part) {
    parts_.push_back(part);
    Count();
    return part;
  }

  // Does this again and again, on a thread of its own.
  void Repeat(std::function<void()> blow) {
    threads_.emplace_back([this, blow = std::move(blow)](const std::stop_token& stop) {
      for (; !stop.stop_requested(); Count()) blow();
    });
  }

  // Blows so far: calls, connections, or bursts of frames.
  void Count(int64_t more = 1) { count_ += more; }
  int64_t count() const { return count_; }

 private:
  std::atomic<int64_t> count_{0};
  std::vector<std::shared_ptr<void>> parts_;
  std::vector<std::jthread> threads_;
};

}  // namespace sap::test::hostile
