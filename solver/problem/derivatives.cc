#include "solver/problem/derivatives.h"

#include "solver/problem/input_checker.h"

namespace sap {
namespace {

Needed Velocities(const ContactProblem& problem) {
  return {problem.num_velocities(), "velocities of the problem"};
}

tl::expected<void, ProblemError> Result(const InputChecker& check) {
  if (!check.ok()) return tl::unexpected(check.refusal());
  return {};
}

}  // namespace

tl::expected<void, ProblemError> CheckCotangent(const Cotangent& cotangent,
                                                const ContactProblem& problem) {
  const Needed contacts{problem.num_contacts(), "contacts of the problem"};
  const Needed rows{problem.num_rows(), "rows of the problem"};
  const Needed angular{problem.num_angular(), "contacts with torsional or rolling friction"};
  InputChecker check;
  const auto array = [&](const char* name, std::span<const double> values, int per,
                         const Needed& why) {
    check.Optional(name, values, per * why.count, Range::kFinite, why);
  };
  array("velocity", cotangent.velocity, 1, Velocities(problem));
  array("impulse", cotangent.impulse, 3, contacts);
  array("contact_velocity", cotangent.contact_velocity, 3, contacts);
  array("row_impulse", cotangent.row_impulse, 1, rows);
  array("row_velocity", cotangent.row_velocity, 1, rows);
  array("angular_impulse", cotangent.angular_impulse, 3, angular);
  check.Value("cost", cotangent.cost, Range::kFinite);
  return Result(check);
}

tl::expected<void, ProblemError> CheckVelocity(std::span<const double> velocity,
                                               const ContactProblem& problem) {
  const Needed why = Velocities(problem);
  InputChecker check;
  check.Optional("velocity", velocity, why.count, Range::kFinite, why);
  return Result(check);
}

tl::expected<void, ProblemError> CheckHeldDelassus(bool hold_delassus,
                                                   const ContactProblem& problem) {
  InputChecker check;
  if (!hold_delassus && problem.regularization().rule == DelassusRule::kLoadPath) {
    check.Refuse("hold_delassus", -1,
                 "is false; it must be true with regularization.rule LOAD_PATH, whose Delassus "
                 "estimates have no derivatives");
  }
  return Result(check);
}

}  // namespace sap
