#include "solver/problem/derivatives.h"

#include "solver/problem/contact_problem.h"
#include "solver/problem/input_checker.h"

namespace sap {
namespace {

Needed Length(OutputPer per, const ContactProblem& problem) {
  switch (per) {
    case OutputPer::kVelocity:
      break;
    case OutputPer::kContact:
      return {problem.num_contacts(), "contacts of the problem"};
    case OutputPer::kRow:
      return {problem.num_rows(), "rows of the problem"};
    case OutputPer::kAngularContact:
      return {problem.num_angular(), "contacts with torsional or rolling friction"};
  }
  return {problem.num_velocities(), "velocities of the problem"};
}

tl::expected<void, ProblemError> Result(const InputChecker& check) {
  if (!check.ok()) return tl::unexpected(check.refusal());
  return {};
}

}  // namespace

tl::expected<void, ProblemError> CheckCotangent(const Cotangent& cotangent,
                                                const ContactProblem& problem) {
  InputChecker check;
  Cotangent::ForEach(
      [&](const char* name, int columns, OutputPer per, std::span<const double> values) {
        const Needed why = Length(per, problem);
        check.Optional(name, values, columns * why.count, Range::kFinite, why);
      },
      cotangent);
  check.Value("cost", cotangent.cost, Range::kFinite);
  return Result(check);
}

tl::expected<void, ProblemError> CheckVelocity(std::span<const double> velocity,
                                               const ContactProblem& problem) {
  const Needed why = Length(OutputPer::kVelocity, problem);
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
