// The kinds of constraints that the solver tells apart: one pool each
// (solver/pools/constraint_pools.h).
#pragma once

#include <cstdint>

namespace sap {

// Contacts first, rows after them.
enum class ConstraintKind : uint8_t {
  kFriction,     // one coefficient, no adhesion
  kCone,         // a coefficient per tangent, or adhesion
  kSpinCone,     // and torsional friction
  kRollingCone,  // and rolling friction
  kHuntCrossleyLagged,
  kHuntCrossleySimilar,
  kBilateralRow,  // no bounds: its cost is quadratic
  kBoundedRow,
};

constexpr int kNumContactKinds = 6;
constexpr int kNumConstraintKinds = 8;

// Components of the velocity, and of the impulse, of one constraint.
constexpr int NumRows(ConstraintKind kind) {
  switch (kind) {
    case ConstraintKind::kFriction:
    case ConstraintKind::kCone:
    case ConstraintKind::kHuntCrossleyLagged:
    case ConstraintKind::kHuntCrossleySimilar:
      return 3;
    case ConstraintKind::kSpinCone:
      return 4;
    case ConstraintKind::kRollingCone:
      return 6;
    case ConstraintKind::kBilateralRow:
    case ConstraintKind::kBoundedRow:
      return 1;
  }
  return 0;
}

constexpr bool IsHuntCrossley(ConstraintKind kind) {
  return kind == ConstraintKind::kHuntCrossleyLagged ||
         kind == ConstraintKind::kHuntCrossleySimilar;
}

constexpr bool HasAngularRows(ConstraintKind kind) {
  return kind == ConstraintKind::kSpinCone || kind == ConstraintKind::kRollingCone;
}

}  // namespace sap
