// Polls a condition that another thread or process makes true. On a busy machine a test that waits
// this way becomes slow, not wrong.
#pragma once

#include <chrono>
#include <thread>

namespace sap::test {

// Longer than any event that occurs at all should take, on a busy machine and under a sanitizer.
inline constexpr std::chrono::seconds kLong{300};

// Whether the condition becomes true within kLong.
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
