// Counts allocations by operator new, replaced for the whole test binary that links this, and lets
// one of them fail.
#pragma once

#include <cstdint>

namespace sap::test {

// Number and requested bytes of all allocations since the process started, by any thread.
int64_t AllocationCount();
int64_t AllocatedBytes();

// Bytes that are allocated now, and the most since ForgetPeak, as the allocator rounds them.
int64_t LiveBytes();
int64_t PeakBytes();
void ForgetPeak();

// Makes the nth allocation from now on, by any thread, fail with std::bad_alloc; 0: none.
void FailAllocation(int64_t nth);

}  // namespace sap::test
