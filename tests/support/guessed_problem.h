// The same problem with the impulses of a solution as the guess of its own.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "solver/problem/contact_solution.h"
#include "tests/support/problem_arrays.h"

namespace sap::test {

inline ProblemArrays WithGuess(ProblemArrays arrays, const ContactSolution& solution) {
  const ContactProblem problem = Checked(arrays);
  const auto by_jacobian = static_cast<size_t>(CountContacts(arrays.contacts));
  const auto angular = static_cast<size_t>(
      std::ranges::count_if(std::span(problem.contact_kind()).first(by_jacobian), HasAngularRows));
  const auto divide = [](const std::vector<double>& all, size_t first, LawArrays* low,
                         LawArrays* high, std::vector<double> LawArrays::*array) {
    const auto middle = all.begin() + static_cast<int64_t>(3 * first);
    (low->*array).assign(all.begin(), middle);
    (high->*array).assign(middle, all.end());
  };
  LawArrays* const contacts = &arrays.contacts.law;
  LawArrays* const of_bodies = &arrays.body_contacts.law;
  divide(solution.impulse, by_jacobian, contacts, of_bodies, &LawArrays::guess_impulse);
  divide(solution.angular_impulse, angular, contacts, of_bodies, &LawArrays::guess_angular_impulse);
  arrays.rows.guess_impulse = solution.row_impulse;
  return arrays;
}

}  // namespace sap::test
