// The certificate of a pair: how far the cost at v can be from the optimum, told by impulses gamma
// of any origin within their cones and bounds.
//
//   gap = 1/2 |r|^2_{A^-1} + sum over constraints of 1/2 |x - gamma|^2_R + gamma'u,
//   r = A (v - v*) - J' gamma,   x = P(y(v)),   u = R x + J v + b - v_hat
//   l(v) - min l <= gap,   |v - v_opt|_A <= sqrt(2 gap)
//
// by Fenchel's inequality: u is in the dual cone, so that no term is negative. With gamma = x it is
// the bound of accuracy_certificate.h. That one asks for |J' R^-1 J dv|_{A^-1} of an error dv of v,
// the terms of a constraint here for |J dv| / sqrt(R): at small R a gap can be certified that the
// gradient at v does not tell of.
//
// The terms of a constraint are a function phi(e) of its velocity e with d phi / de = x - gamma,
// and a curvature of at most R^-1: with e known up to de, phi is known up to
//
//   |x - gamma|'de + 1/2 |de|^2_{R^-1}
//
// and its own rounding errors, in proportion to the sizes of its terms.
#pragma once

#include <vector>

#include "solver/laws/box_barrier.h"
#include "solver/laws/scaled_cone.h"
#include "solver/newton/sap_data.h"

namespace sap {

constexpr PoolIndex<static_cast<int>(ConstraintKind::kBoundedRow)> kBoundedPool;

// Whether the constraints of a pool have inequalities, for which the interior-point method has dual
// variables: cones and rows with bounds.
template <int index>
constexpr bool HasInequalities(PoolIndex<index> pool) {
  return IsCone(pool) || pool == kBoundedPool;
}

// Calls body(pool) for the pools of the island that have inequalities.
template <typename Body>
void ForInequalities(const IslandView& view, Body&& body) {
  ForPoolsOf(view, [&](auto pool) {
    if constexpr (HasInequalities(pool)) body(pool);
  });
}

// One value per constraint of an island.
template <typename Value>
class OfIsland {
 public:
  void Resize(const PoolRange& range) {
    begin_ = range.begin;
    values_.resize(range.end - range.begin);
  }
  // By the number of the constraint in its pool.
  Value& At(int i) { return values_[i - begin_]; }
  const Value& At(int i) const { return values_[i - begin_]; }

 private:
  int begin_{0};
  std::vector<Value> values_;
};

// Vectors in scaled axes (laws/scaled_cone.h); of rows their impulse.
template <typename Pool>
struct PoolDuals : OfIsland<ConeVector<Pool::Laws::kRows>> {};
using PairDuals = PerPool<PoolDuals>;

// The gap of the v at which `data` was evaluated last and these impulses, bilateral rows having
// those of v, with allowances for rounding [J, in the island's unit of mass]. Infinite where
// nothing can be certified. Overwrites gamma and the gradient in `data`.
double PairGapBound(const IslandView& view, const PairDuals& impulses, const StopToken& stop,
                    SapData* data, SapScratch* scratch);

}  // namespace sap
