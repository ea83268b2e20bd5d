// States of the constraints of an island in the interior-point method (interior_point.h).
#pragma once

#include <type_traits>
#include <vector>

#include "solver/laws/box_barrier.h"
#include "solver/laws/de_saxce.h"
#include "solver/laws/scaled_cone.h"
#include "solver/newton/pair_certificate.h"

namespace sap {

// A contact: the pair of its dual variable z and of u in scaled axes, and the scaling and the block
// that follow from them.
template <int k>
struct InteriorCone {
  using Vector = ConeVector<k>;
  struct Step {
    Vector z, u, scaled_z, scaled_u;

    Step& operator+=(const Step& other) {
      z = PlusScaled(z, 1, other.z);
      u = PlusScaled(u, 1, other.u);
      scaled_z = PlusScaled(scaled_z, 1, other.scaled_z);
      scaled_u = PlusScaled(scaled_u, 1, other.scaled_u);
      return *this;
    }
  };

  ScaledCone<k> cone;
  double root_w;
  Vector e;
  ConePair<k> pair;
  ConeScaling<k> scaling;
  ConeBlock<k> block;
  DeSaxceBlock<k> shift;    // of exact friction
  Vector residual;          // Rb z - e - u
  Vector quotient, target;  // l \ d, and what it asks of Rb z + B v beyond the residual
  Step step, other;

  const Vector& l() const { return scaling.lambda(); }
  void Rescale() {
    scaling = ConeScaling<k>(pair);
    SetBlock();
  }
  void SetBlock() { block = ConeBlock<k>(scaling, cone.p.R_n, cone.p.rho); }
  // (Rb + W^2)^-1 B dv, or that of exact friction.
  Vector TimesBlock(const Vector& moved) const { return shift.Multiply(block, shift.Turn(moved)); }
  // e less the shift of exact friction.
  void ShiftVelocity() {
    Vector slip;
    for (int i = 1; i < k; ++i) slip[i] = cone.R(i) * pair.z[i] - e[i];
    e[0] -= TailNorm(slip);
    shift = DeSaxceBlock<k>(scaling, cone.p.R_n, cone.p.rho, slip);
  }
  double Complementarity() const { return FullDot(l(), l()); }
  Vector ScaledZ(double a, const Step& s) const { return PlusScaled(l(), a, s.scaled_z); }
  Vector ScaledU(double a, const Step& s) const { return PlusScaled(l(), a, s.scaled_u); }
  // Rb z - u, of which the law at the optimum is the projection.
  Vector PairVelocity() const {
    Vector y;
    for (int i = 0; i < k; ++i) y[i] = cone.R(i) * pair.z[i] - pair.u[i];
    return y;
  }
};

// A row with bounds.
struct InteriorRow {
  using Step = BoxBarrier::Step;

  BoxBarrier row;
  double root_w;
  double e;
  double slope;
  double residual;
  double target;
  BoxBarrier::Products products;
  Step step, other;
};

struct NoState {};  // of pools without inequalities

template <typename Pool>
struct StateOf {
  static constexpr int kPool = static_cast<int>(Pool::kKind);
  static constexpr bool kCone = IsCone(PoolIndex<kPool>());
  static constexpr bool kRow = PoolIndex<kPool>() == kBoundedPool;
  using Type = std::conditional_t<kCone, InteriorCone<Pool::Laws::kRows>,
                                  std::conditional_t<kRow, InteriorRow, NoState>>;
};
template <typename Pool>
struct PoolStates : OfIsland<typename StateOf<Pool>::Type> {};

template <typename State>
inline constexpr bool kIsRow = std::is_same_v<State, InteriorRow>;

// Allocated for one island when it is handed over: most islands never are.
struct InteriorStates {
  PerPool<PoolStates> states;
  PairDuals best;              // z of the iterate of least bound
  PairDuals best_velocities;   // R z - u of it, of which the law at the optimum is the projection
  std::vector<double> best_v;  // by velocity within the island
  std::vector<double> crossed_v;  // the iterate before a crossover, to go back to
};

}  // namespace sap
