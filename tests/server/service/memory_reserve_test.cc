#include "server/service/memory_reserve.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <new>

namespace sap {
namespace {

// More than there is address space.
void AllocateTooMuch() {
  volatile std::size_t bytes = SIZE_MAX / 4;
  ::operator delete(::operator new(bytes));
}

// The allocation that finds no memory finds none because of the reserve either, and is refused;
// what comes after it has the reserve.
TEST(MemoryReserveTest, IsFreedByTheFirstAllocationThatFailsAndTakenAgain) {
  EXPECT_FALSE(MemoryReserve::IsSpent());
  MemoryReserve::Install();
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(MemoryReserve::IsSpent());
    EXPECT_THROW(AllocateTooMuch(), std::bad_alloc);
    EXPECT_TRUE(MemoryReserve::IsSpent());
    EXPECT_THROW(AllocateTooMuch(), std::bad_alloc);
    MemoryReserve::Refill();
    MemoryReserve::Refill();
  }
}

}  // namespace
}  // namespace sap
