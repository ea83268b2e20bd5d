// Counts allocations by operator new, replaced for the whole test binary that links this.
#pragma once

#include <cstdint>

namespace sap::test {

// Allocations by any thread since the process started, and the bytes that they asked for.
int64_t AllocationCount();
int64_t AllocatedBytes();

}  // namespace sap::test
