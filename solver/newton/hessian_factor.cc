#include "solver/newton/hessian_factor.h"

#include <algorithm>

namespace sap {

StepStatus HessianFactor::Factor(const Hessian& hessian) {
  const auto& [plan, factors] = factorization_;
  ++factorizations_;
  if (plan == nullptr) {
    AssembleDense(view_, hessian, &dense_);
    return dense_.Factor() ? StepStatus::kOk : StepStatus::kNotPositiveDefinite;
  }
  if (single_precision_) {
    const StepStatus status = FactorSparse(view_, hessian, *plan, stop_, &factors->preconditioner);
    if (status != StepStatus::kNotPositiveDefinite) return status;
    single_precision_ = false;
    ++factorizations_;
  }
  return FactorSparse(view_, hessian, *plan, stop_, &factors->exact);
}

bool HessianFactor::Solve(const std::vector<double>& r, std::vector<double>* z) const {
  const int begin = view_.range().velocity_begin;
  const size_t n = view_.range().num_velocities();
  const auto& [plan, factors] = factorization_;
  if (plan == nullptr) {
    std::copy_n(r.begin() + begin, n, z->begin() + begin);
    SolveDense(view_, dense_, z->data() + begin);
    return true;
  }
  const std::span<const double> from{r.data() + begin, n};
  const std::span<double> to{z->data() + begin, n};
  if (!single_precision_) return factors->exact.Solve(*plan, from, to, stop_, view_.arena);
  return factors->preconditioner.Solve(*plan, from, to, stop_, view_.arena);
}

}  // namespace sap
