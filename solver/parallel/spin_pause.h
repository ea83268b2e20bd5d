// What a thread does between two looks at something that is about to change.
#pragma once

namespace sap {

// Leaves the processor's other threads more of it for some tens of nanoseconds.
inline void SpinPause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace sap
