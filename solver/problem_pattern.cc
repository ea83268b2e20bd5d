#include "solver/problem_pattern.h"

#include <algorithm>
#include <span>

namespace sap {

namespace {

template <typename Value>
void Copy(std::span<const Value> from, std::vector<Value>* to) {
  to->assign(from.begin(), from.end());
}

}  // namespace

bool ProblemPattern::Matches(const ContactProblem& problem, bool split_islands) const {
  return known_ && split_islands == split_islands_ && std::ranges::equal(dofs_, problem.dofs()) &&
         std::ranges::equal(contact_start_, problem.contact_start()) &&
         std::ranges::equal(contact_trees_, problem.contact_trees()) &&
         std::ranges::equal(coupled_, problem.coupled_trees().pairs()) &&
         std::ranges::equal(contact_kind_, problem.contact_kind()) &&
         std::ranges::equal(row_kind_, problem.row_kind()) &&
         std::ranges::equal(row_start_, problem.row_start()) &&
         std::ranges::equal(row_entries_, problem.row_entries());
}

void ProblemPattern::Assign(const ContactProblem& problem, bool split_islands) {
  Copy(problem.dofs(), &dofs_);
  Copy(problem.contact_start(), &contact_start_);
  Copy(problem.contact_trees(), &contact_trees_);
  Copy(problem.coupled_trees().pairs(), &coupled_);
  Copy(problem.contact_kind(), &contact_kind_);
  Copy(problem.row_kind(), &row_kind_);
  Copy(problem.row_start(), &row_start_);
  Copy(problem.row_entries(), &row_entries_);
  split_islands_ = split_islands;
  known_ = true;
}

}  // namespace sap
