// Memory for the work on one tree: on the stack for small trees, kept by the thread for large ones,
// where it only grows, so that a warm step allocates nothing.
#pragma once

#include <cstddef>

#include "solver/parallel/growing_buffer.h"

namespace sap {

// Calls body(scratch) with so many doubles, uninitialized and aligned to cache lines. Not to be
// nested.
template <typename Body>
inline void WithTreeScratch(size_t doubles, Body&& body) {
  constexpr size_t kOnStack = 1120;  // H and three vectors of 32 dofs
  if (doubles <= kOnStack) {
    alignas(64) double scratch[kOnStack];
    body(scratch);
    return;
  }
  thread_local GrowingBuffer<double> kept;
  body(kept.Reserve(doubles));
}

}  // namespace sap
