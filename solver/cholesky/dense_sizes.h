// Sizes at which the methods for dense matrices change, in degrees of freedom, and the sizes that
// loops are specialized for (SixDofs, OneDof). The methods sum in different orders: moving a limit
// changes bits of answers.
#pragma once

#include <cstddef>
#include <type_traits>

namespace sap {

// Largest tree that is factored by inner products (dense_cholesky.h), and whose matrices and
// Jacobians are worked on as if they had no zeros. Above, the kernel of the fronts is faster, three
// times at 64, and skipping zeros pays (large_tree.h).
constexpr int kScalarDofs = 16;

// Largest tree that is worked on without a look at the stop token.
constexpr int kUnpolledDofs = 64;

// Largest island that is factored as one front (small_cholesky.h): ten free bodies, where that and
// fronts along a plan cost the same once the pattern has a plan.
constexpr int kDenseDofs = 60;

// The same limit for an island that is one tree of more than kScalarDofs plus at most kDenseBesides
// velocities. One dense front skips the zeros between branches, which fronts along a plan do not.
constexpr int kDenseTreeDofs = 128;
constexpr int kDenseBesides = 12;

// Largest group of several trees that a sweep steps together.
constexpr int kMaxGroupDofs = 30;

// Largest tree or group whose H and three vectors are on the stack.
constexpr int kStackDofs = 32;
constexpr int kStackScratch = kStackDofs * (kStackDofs + 3);
static_assert(kMaxGroupDofs <= kStackDofs);

// Scratch of the work on one tree that a thread keeps for the next, in each of three buffers
// [doubles]: 2 MiB, H of 512 degrees of freedom. What is larger is freed after its use.
constexpr size_t kKeptScratch = size_t{1} << 18;

// A free body, the most frequent tree: loops over six dofs unroll and vectorize.
using SixDofs = std::integral_constant<int, 6>;

// Calls body(SixDofs()) or body(n).
template <typename Body>
inline void ForSize(int n, Body&& body) {
  if (n == 6) {
    body(SixDofs());
  } else {
    body(n);
  }
}

// A door, a drawer or a wheel.
using OneDof = std::integral_constant<int, 1>;

// ForSize, for what is done once per tree. For one degree of freedom the overhead of a loop exceeds
// its work.
template <typename Body>
inline void ForTreeSize(int n, Body&& body) {
  if (n == 1) {
    body(OneDof());
  } else {
    ForSize(n, body);
  }
}

}  // namespace sap
