// Counts allocations by operator new, replaced for the whole test binary that links this, and lets
// one of them fail.
#pragma once

#include <cstdint>

namespace sap::test {

// Allocations by any thread since the process started, and the bytes that they asked for.
int64_t AllocationCount();
int64_t AllocatedBytes();

// Lets the nth allocation from now on, by any thread, fail with std::bad_alloc; 0: none.
void FailAllocation(int64_t nth);

}  // namespace sap::test
