// The factor of the H of one island by the smallest method that serves: dense, or the block
// Cholesky along a plan, in single precision where that is asked for and does.
#pragma once

#include "solver/newton/newton_step.h"

namespace sap {

class HessianFactor {
 public:
  // `single_precision`: of factors by a plan.
  HessianFactor(const IslandView& view, const PlannedFactors& factorization, bool single_precision,
                const StopToken& stop)
      : view_(view),
        factorization_(factorization),
        stop_(stop),
        single_precision_(single_precision && factorization.plan != nullptr) {}

  // Factors the blocks of the island.
  StepStatus Factor(const Hessian& hessian);

  // z := M^-1 r. False if it was stopped.
  bool Solve(const std::vector<double>& r, std::vector<double>* z) const;

  bool single_precision() const { return single_precision_; }
  // From the next factorization on.
  void UseDoublePrecision() { single_precision_ = false; }
  int factorizations() const { return factorizations_; }

 private:
  const IslandView& view_;
  const PlannedFactors& factorization_;
  const StopToken& stop_;
  bool single_precision_;
  int factorizations_{0};
  SmallCholesky dense_;
};

}  // namespace sap
