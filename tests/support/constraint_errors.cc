#include "tests/support/constraint_errors.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sap::test {

namespace {

// The momentum of this speed counts as none [m/s].
constexpr long double kNegligibleSpeed = 1e-9L;

// Rounding errors of a velocity or an impulse in doubles, relative to its terms.
constexpr long double kRounding = 64 * std::numeric_limits<double>::epsilon();

long double Tiny(const ConstrainedProblem& problem) {
  return kNegligibleSpeed * std::sqrt(problem.DiagonalOfA().sum());
}

long double Ratio(long double value, long double scale) {
  return value <= 0 ? 0 : value / std::max(scale, 1e-300L);
}

long double Largest(const VectorL& values) {
  return values.size() == 0 ? 0 : values.cwiseAbs().maxCoeff();
}

VectorL RowsOf(const ConstrainedProblem& problem, const VectorL& stacked) {
  return stacked.tail(problem.num_rows());
}

// (gamma_j / mu_j) over the axes of friction.
Vector6L InUnitsOfFriction(const ExactContact& contact, const Vector6L& gamma) {
  Vector6L scaled = Vector6L::Zero();
  for (int j = 0; j < 6; ++j) {
    if (contact.mu[j] > 0) scaled[j] = gamma[j] / contact.mu[j];
  }
  return scaled;
}

// How far an impulse is outside the set of its contact [N s].
long double Outside(const ExactContact& contact, const Vector6L& gamma) {
  const long double mu = contact.mu[0];
  if (contact.law != ContactLaw::kSap) {
    const long double bound =
        contact.law == ContactLaw::kHuntCrossleySimilar ? gamma[2] : contact.lagged_normal_impulse;
    return std::max(-gamma[2], std::hypot(gamma[0], gamma[1]) - mu * bound);
  }
  const long double normal = gamma[2] + contact.adhesion_impulse;
  const long double friction = InUnitsOfFriction(contact, gamma).norm();
  long double outside = std::max(mu * (friction - normal), -normal);
  for (const int j : {0, 1, 3, 4, 5}) {
    if (contact.mu[j] == 0) outside = std::max(outside, std::abs(gamma[j]));
  }
  return outside;
}

double Admissibility(const ConstrainedProblem& problem, const VectorL& gamma,
                     const VectorL& gamma_reference) {
  VectorL diagonal = problem.DiagonalOfA();
  std::sort(diagonal.begin(), diagonal.end());
  const Eigen::Index middle = diagonal.size() / 2;
  const long double least =
      diagonal.size() == 0
          ? 0
          : kNegligibleSpeed * (diagonal[middle] + diagonal[(diagonal.size() - 1) / 2]) / 2;
  long double contacts = 0, largest_contact = least;
  for (int i = 0; i < problem.num_contacts(); ++i) {
    contacts = std::max(contacts, Outside(problem.contacts()[i], gamma.segment<6>(6 * i)));
    largest_contact = std::max(largest_contact, Largest(gamma_reference.segment<3>(6 * i)));
  }
  long double rows = 0;
  const VectorL row_impulse = RowsOf(problem, gamma);
  for (int i = 0; i < problem.num_rows(); ++i) {
    const ExactRow& row = problem.rows()[i];
    rows = std::max({rows, row_impulse[i] - row.upper, row.lower - row_impulse[i]});
  }
  const long double largest_row = std::max(least, Largest(RowsOf(problem, gamma_reference)));
  return static_cast<double>(std::max(Ratio(contacts, largest_contact), Ratio(rows, largest_row)));
}

// The largest change of a contact's impulse, in units of the normal one, by rounding errors of its
// velocity, whose terms have these magnitudes.
Vector6L RoundingOfImpulse(const ExactContact& contact, const Vector6L& terms,
                           const Vector6L& gamma) {
  Vector6L rounding = Vector6L::Zero();
  if (contact.law == ContactLaw::kSap) {
    if (contact.rho > 0) {
      rounding = contact.mu.cwiseProduct(terms + contact.v_hat.cwiseAbs()) / contact.rho;
    }
    rounding[2] = (terms[2] + std::abs(contact.v_hat[2])) / contact.R_n + contact.adhesion_impulse;
    return kRounding * rounding;
  }
  const long double k = contact.time_step * contact.stiffness;
  const long double force = std::abs(contact.elastic_force) + k * terms[2];
  const long double factor = 1 + contact.dissipation * terms[2];
  rounding[2] =
      contact.time_step * (force * factor + terms[2] * (k * factor + contact.dissipation * force));
  const long double bound =
      std::abs(gamma[2]) + contact.lagged_normal_impulse + kRounding * rounding[2];
  for (const int j : {0, 1}) rounding[j] = bound * (1 + terms[j] / contact.slip_speed);
  return kRounding * rounding;
}

// The farthest of a contact's impulse from its law, beyond rounding, and the scale of it.
struct LawError {
  long double error, scale;
};

LawError ErrorOfContact(const ExactContact& contact, const Vector6L& gamma, const Vector6L& exact,
                        const Vector6L& terms) {
  const Vector6L rounding = RoundingOfImpulse(contact, terms, exact);
  LawError result{0, std::max(std::abs(exact[2]), contact.adhesion_impulse)};
  if (contact.law == ContactLaw::kHuntCrossleyLagged) {
    result.scale = std::max(result.scale, contact.lagged_normal_impulse);
  }
  for (int j = 0; j < 6; ++j) {
    const long double unit = contact.mu[j] > 0 ? contact.mu[j] : 1;
    const long double error = std::abs(gamma[j] - exact[j]) / unit - rounding[j];
    result.error = std::max(result.error, error);
    result.scale = std::max(result.scale, std::abs(exact[j]) / unit);
  }
  return result;
}

LawError ErrorOfRow(const ExactRow& row, long double gamma, long double exact, long double terms) {
  const long double rounding =
      kRounding * ((terms + std::abs(row.v_hat)) / row.R + std::abs(row.offset));
  return {std::abs(gamma - exact) - rounding, std::max(std::abs(gamma), std::abs(exact))};
}

// An impulse 1e-9 of the largest of its kind counts as that.
long double WorstOf(const std::vector<LawError>& errors) {
  long double largest = 0, worst = 0;
  for (const LawError& error : errors) largest = std::max(largest, error.scale);
  for (const LawError& error : errors) {
    const long double scale = std::max(error.scale, 1e-9L * largest);
    worst = std::max(worst, Ratio(error.error - kRounding * scale, scale));
  }
  return worst;
}

double DistanceFromLaws(const ConstrainedProblem& problem, const VectorL& v, const VectorL& gamma) {
  const VectorL exact = problem.Impulse(v);
  const VectorL terms = problem.VelocityMagnitude(v);
  std::vector<LawError> contacts, rows;
  for (int i = 0; i < problem.num_contacts(); ++i) {
    contacts.push_back(ErrorOfContact(problem.contacts()[i], gamma.segment<6>(6 * i),
                                      exact.segment<6>(6 * i), terms.segment<6>(6 * i)));
  }
  const int first_row = 6 * problem.num_contacts();
  for (int i = 0; i < problem.num_rows(); ++i) {
    rows.push_back(ErrorOfRow(problem.rows()[i], gamma[first_row + i], exact[first_row + i],
                              terms[first_row + i]));
  }
  return static_cast<double>(std::max(WorstOf(contacts), WorstOf(rows)));
}

}  // namespace

long double VelocityScale(const ConstrainedProblem& problem, const Reference& reference) {
  const VectorL v = ToVectorL(reference.velocity);
  return std::max({problem.NormA(v), problem.NormA(problem.v_star()),
                   problem.NormA(v - problem.v_star()), Tiny(problem)});
}

ConstraintErrors JudgeConstraints(const ConstrainedProblem& problem, const Reference& reference,
                                  const ContactSolution& solution) {
  const VectorL v = ToVectorL(solution.velocity);
  const VectorL v_reference = ToVectorL(reference.velocity);
  const VectorL gamma =
      problem.Stacked(solution.impulse, solution.angular_impulse, solution.row_impulse);
  const VectorL gamma_reference =
      problem.Stacked(reference.impulse, reference.angular_impulse, reference.row_impulse);
  const long double tiny = Tiny(problem);
  const long double velocity_scale = VelocityScale(problem, reference);
  const long double kinetic = velocity_scale * velocity_scale;

  ConstraintErrors errors;
  // Rows and contacts of Hunt & Crossley may have negative costs, so that l itself may vanish.
  const long double cost_scale =
      std::max(std::min(problem.CostMagnitude(v_reference), kinetic / 2), 1e-8L * kinetic);
  errors.cost = static_cast<double>((problem.Cost(v) - reference.cost) / cost_scale);
  const long double gradient_scale =
      std::max({problem.ScaledNorm(problem.TimesA(v)),
                problem.ScaledNorm(problem.TimesJt(problem.Impulse(v))), tiny});
  errors.gradient = static_cast<double>(problem.ScaledNorm(problem.Gradient(v)) / gradient_scale);
  errors.velocity = static_cast<double>(problem.NormA(v - v_reference) / velocity_scale);
  errors.admissibility = Admissibility(problem, gamma, gamma_reference);
  errors.law = DistanceFromLaws(problem, v, gamma);
  const long double impulse_scale =
      std::max({problem.ScaledNorm(problem.TimesJt(gamma_reference)),
                problem.ScaledNorm(problem.TimesA(v_reference)), tiny});
  errors.generalized_impulse = static_cast<double>(
      problem.ScaledNorm(problem.TimesJt(gamma - gamma_reference)) / impulse_scale);
  errors.momentum_balance = static_cast<double>(
      problem.ScaledNorm(problem.TimesA(v - problem.v_star()) - problem.TimesJt(gamma)) /
      impulse_scale);
  return errors;
}

}  // namespace sap::test
