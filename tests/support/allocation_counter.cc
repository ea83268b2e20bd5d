#include "tests/support/allocation_counter.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> allocations{0};
std::atomic<int64_t> allocated_bytes{0};
std::atomic<int64_t> live_bytes{0};
std::atomic<int64_t> peak_bytes{0};
std::atomic<int64_t> until_failure{0};

void Count(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  allocated_bytes.fetch_add(static_cast<int64_t>(size), std::memory_order_relaxed);
  if (until_failure.load(std::memory_order_relaxed) <= 0) return;
  if (until_failure.fetch_sub(1, std::memory_order_relaxed) == 1) throw std::bad_alloc();
}

void* Live(void* memory) {
  const auto size = static_cast<int64_t>(malloc_usable_size(memory));
  const int64_t live = live_bytes.fetch_add(size, std::memory_order_relaxed) + size;
  int64_t peak = peak_bytes.load(std::memory_order_relaxed);
  while (live > peak && !peak_bytes.compare_exchange_weak(peak, live)) {
  }
  return memory;
}

void Free(void* memory) {
  live_bytes.fetch_sub(static_cast<int64_t>(malloc_usable_size(memory)), std::memory_order_relaxed);
  std::free(memory);
}

void* CountedAllocation(std::size_t size) {
  Count(size);
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  return Live(memory);
}

void* CountedAllocation(std::size_t size, std::align_val_t alignment) {
  Count(size);
  void* memory = nullptr;
  if (posix_memalign(&memory, static_cast<std::size_t>(alignment), size == 0 ? 1 : size) != 0) {
    std::abort();
  }
  return Live(memory);
}

}  // namespace

void* operator new(std::size_t size) { return CountedAllocation(size); }
void* operator new[](std::size_t size) { return CountedAllocation(size); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return CountedAllocation(size, alignment);
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return CountedAllocation(size, alignment);
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { Free(memory); }

namespace sap::test {

int64_t AllocationCount() { return allocations.load(std::memory_order_relaxed); }
int64_t AllocatedBytes() { return allocated_bytes.load(std::memory_order_relaxed); }
int64_t LiveBytes() { return live_bytes.load(std::memory_order_relaxed); }
int64_t PeakBytes() { return peak_bytes.load(std::memory_order_relaxed); }
void ForgetPeak() { peak_bytes.store(LiveBytes(), std::memory_order_relaxed); }

void FailAllocation(int64_t nth) { until_failure.store(nth, std::memory_order_relaxed); }

}  // namespace sap::test
