#include "solver/parallel/growing_buffer.h"

#include <gtest/gtest.h>

namespace sap::test {
namespace {

TEST(GrowingBufferTest, KeepsItsMemoryUntilItHasToGrow) {
  GrowingBuffer<double> buffer;
  const double* first = buffer.Reserve(100);
  EXPECT_EQ(buffer.Reserve(50), first);
  EXPECT_EQ(buffer.size(), 100u);
  buffer.Reserve(101);
  EXPECT_EQ(buffer.size(), 125u);
}

TEST(GrowingBufferTest, ReleasesWhatIsLargerThanABound) {
  GrowingBuffer<double> buffer;
  const double* kept = buffer.Reserve(100);
  buffer.ReleaseAbove(100);
  EXPECT_EQ(buffer.data(), kept);
  buffer.ReleaseAbove(99);
  EXPECT_EQ(buffer.size(), 0u);
  EXPECT_EQ(buffer.data(), nullptr);
  buffer.Reserve(10)[9] = 1;
  EXPECT_EQ(buffer.size(), 10u);
}

}  // namespace
}  // namespace sap::test
