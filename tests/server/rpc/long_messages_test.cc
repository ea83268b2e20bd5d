#include "server/rpc/long_messages.h"

#include <gtest/gtest.h>

#include <latch>

namespace sap::test {
namespace {

// One parse does not wait for the end of another while there are threads: here each waits for all.
TEST(LongMessagesTest, AsManyMessagesAreParsedAtATimeAsThereAreThreads) {
  constexpr int kThreads = 3;
  std::latch all(kThreads + 1);
  LongMessages messages(kThreads, /*nice=*/0);
  for (int i = 0; i < kThreads; ++i) {
    messages.Push(nullptr,
                  {[](void* latch) { static_cast<std::latch*>(latch)->arrive_and_wait(); }, &all});
  }
  all.arrive_and_wait();
}

}  // namespace
}  // namespace sap::test
