// H x = b of one island for many right-hand sides, by one factor.
//
// Conjugate gradients (conjugate_gradients.h) with a factor M that may be of the H at a velocity
// nearby, or in single precision, until z'r has come down to 1e-28 of what it was at first. Where M
// is H except for rounding errors that takes two solves and one product with H. Where a factor does
// not get there H is factored again, at the velocity itself and then in double precision.
#pragma once

#include "solver/derivatives/adjoint_data.h"
#include "solver/newton/newton_step.h"
#include "solver/newton/sap_solver.h"

namespace sap {

class HessianSystem {
 public:
  // Factors the H that follows from data.G. `single_precision`: of factors by a plan. Adds to
  // *factorizations.
  HessianSystem(const IslandView& view, const PlannedFactors& factorization, bool single_precision,
                const StopToken& stop, const SapData& data, SapWorkspace* workspace,
                AdjointData* adjoint, int* factorizations)
      : view_(view),
        stop_(stop),
        data_(data),
        workspace_(*workspace),
        adjoint_(*adjoint),
        factor_(view, factorization, single_precision, stop, factorizations) {}

  StepStatus Factor();
  // data.G differs from what was factored by more than rounding.
  void Moved() { is_current_ = false; }

  // z := M^-1 r. False if it was stopped.
  bool Precondition(const std::vector<double>& r, std::vector<double>* z) {
    return factor_.Solve(r, z);
  }

  // x := H^-1 b over the velocities of the island; no more than a guess of it after any other
  // status than kOk.
  StepStatus Solve(const std::vector<double>& b, std::vector<double>* x);

  // lambda := H^-1 (right_side + J' v_c), then v_c := J lambda, all of the adjoint.
  // They mean nothing where it was stopped.
  StepStatus SolveForLambda();

 private:
  StepStatus Iterate(double scale, const std::vector<double>& b, std::vector<double>* x);
  void Multiply(const std::vector<double>& x, std::vector<double>* product);
  double Largest(const std::vector<double>& a) const;

  const IslandView& view_;
  const StopToken& stop_;
  const SapData& data_;
  SapWorkspace& workspace_;
  AdjointData& adjoint_;
  HessianFactor factor_;
  bool is_current_{false};
};

}  // namespace sap
