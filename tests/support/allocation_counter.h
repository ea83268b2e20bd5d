// Counts allocations by operator new, replaced for the whole test binary that links this.
#pragma once

#include <cstdint>

namespace sap::test {

// Allocations by any thread since the process started.
int64_t AllocationCount();

}  // namespace sap::test
