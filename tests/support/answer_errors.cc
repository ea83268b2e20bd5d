#include "tests/support/answer_errors.h"

#include <algorithm>
#include <cmath>

namespace sap::test {

namespace {

// The momentum of this speed counts as none [m/s].
constexpr double kNoSpeed = 1e-9;

double Tiny(const PrimalProblem& problem) {
  return kNoSpeed * static_cast<double>(std::sqrt(problem.TraceA()));
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n == 0 ? 0.0 : 0.5 * (values[(n - 1) / 2] + values[n / 2]);
}

double ConeError(const PrimalProblem& problem, const VectorL& reference, const VectorL& impulse) {
  if (impulse.size() == 0) return 0;
  long double worst = 0;
  for (int i = 0; i < problem.mu().size(); ++i) {
    const long double tangential = std::hypot(impulse[3 * i], impulse[3 * i + 1]);
    const long double normal = impulse[3 * i + 2];
    worst = std::max({worst, tangential - problem.mu()[i] * normal, -normal});
  }
  if (worst == 0) return 0;
  const long double largest = std::max<long double>(reference.cwiseAbs().maxCoeff(),
                                                    kNoSpeed * Median(problem.DiagonalOfA()));
  return static_cast<double>(worst / largest);
}

}  // namespace

double AnswerErrors::Largest() const {
  return std::max(
      {std::abs(cost), gradient, velocity, cone, generalized_impulse, momentum_balance});
}

double VelocityScale(const PrimalProblem& problem, const Reference& reference) {
  const VectorL v = ToVectorL(reference.velocity);
  return static_cast<double>(
      std::max({problem.NormA(v), problem.NormA(problem.v_star()),
                problem.NormA(v - problem.v_star()), static_cast<long double>(Tiny(problem))}));
}

AnswerErrors Judge(const PrimalProblem& problem, const Reference& reference,
                   const ContactSolution& solution) {
  const VectorL v = ToVectorL(solution.velocity);
  const VectorL v_reference = ToVectorL(reference.velocity);
  const VectorL impulse = ToVectorL(solution.impulse);
  const VectorL impulse_reference = ToVectorL(reference.impulse);
  const double tiny = Tiny(problem);
  const double velocity_scale = VelocityScale(problem, reference);

  AnswerErrors errors;
  const double cost_scale =
      std::max(std::abs(reference.cost), 1e-8 * velocity_scale * velocity_scale);
  errors.cost = static_cast<double>(problem.Cost(v) - reference.cost) / cost_scale;
  const long double momentum = problem.ScaledNorm(problem.TimesA(v));
  const long double impulse_norm = problem.ScaledNorm(problem.TimesJt(problem.Impulse(v)));
  errors.gradient = static_cast<double>(problem.ScaledNorm(problem.Gradient(v)) /
                                        std::max<long double>({momentum, impulse_norm, tiny}));
  errors.velocity = static_cast<double>(problem.NormA(v - v_reference)) / velocity_scale;
  errors.cone = ConeError(problem, impulse_reference, impulse);
  const double balance_scale = static_cast<double>(std::max<long double>(
      {problem.ScaledNorm(problem.TimesJt(impulse_reference)),
       problem.ScaledNorm(problem.TimesA(v_reference)), static_cast<long double>(tiny)}));
  errors.generalized_impulse =
      static_cast<double>(problem.ScaledNorm(problem.TimesJt(impulse - impulse_reference))) /
      balance_scale;
  errors.momentum_balance = static_cast<double>(problem.ScaledNorm(
                                problem.TimesA(v - problem.v_star()) - problem.TimesJt(impulse))) /
                            balance_scale;
  return errors;
}

double CertifiedVelocityError(const ContactSolution& solution) {
  double gap = 0;
  for (const IslandReport& report : solution.islands) gap += report.optimality_gap_bound;
  return std::sqrt(2 * gap);
}

}  // namespace sap::test
