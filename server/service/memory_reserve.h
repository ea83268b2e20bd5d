// Memory that is held back for the answers of calls that find none: the first allocation of
// operator new that fails frees it, so that the error can be logged and sent.
//
// It helps neither where gRPC itself finds no memory, which aborts, nor under a control group,
// which kills the process before an allocation fails.
#pragma once

namespace sap {

class MemoryReserve {
 public:
  // Takes the reserve, and frees it when an allocation fails from here on. Once per process.
  static void Install();

  // Whether the reserve has been freed and not been taken again. False without Install.
  static bool IsSpent();

  // Takes the reserve again if there is memory for it. Call periodically, on one thread; without
  // Install it has no effect.
  static void Refill();
};

}  // namespace sap
