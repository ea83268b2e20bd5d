// Sizes at which the methods for dense matrices change, in degrees of freedom. The methods sum in
// different orders: moving a limit changes bits of answers.
#pragma once

namespace sap {

// Largest tree that is factored by inner products (dense_cholesky.h). Above, the kernel of the
// fronts takes a third of their time at 64 already. Humanoids (60 dofs) are below.
constexpr int kScalarDofs = 64;

// Largest island that is factored as one front (small_cholesky.h): ten free bodies, where that and
// fronts along a plan cost the same once the pattern has a plan.
constexpr int kDenseDofs = 60;

// Largest group of several trees that a sweep steps together.
constexpr int kMaxGroupDofs = 30;

// Largest tree or group whose H and three vectors are on the stack.
constexpr int kStackDofs = 32;
constexpr int kStackScratch = kStackDofs * (kStackDofs + 3);
static_assert(kMaxGroupDofs <= kStackDofs);

}  // namespace sap
