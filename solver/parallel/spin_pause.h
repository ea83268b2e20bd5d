// The pause of a spin-wait loop.
#pragma once

namespace sap {

// Waits some tens of nanoseconds, in which the core's other hardware thread runs faster. On arm64
// `yield` would do nothing on most cores; `isb` waits until the pipeline is empty.
inline void SpinPause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");
#endif
}

}  // namespace sap
