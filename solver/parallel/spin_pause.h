// The pause of a spin-wait loop.
#pragma once

namespace sap {

// Waits some tens of nanoseconds, in which the core's other hardware thread runs faster.
inline void SpinPause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace sap
