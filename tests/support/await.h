// Waiting for what another thread or process does: a condition is polled, so that a busy machine
// makes a test slow and not wrong.
#pragma once

#include <chrono>
#include <thread>

namespace sap::test {

// Longer than anything takes that comes at all.
inline constexpr std::chrono::seconds kLong{60};

// Whether the condition holds within that time.
template <typename Condition>
bool Await(Condition condition) {
  const auto until = std::chrono::steady_clock::now() + kLong;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace sap::test
