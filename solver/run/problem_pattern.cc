#include "solver/run/problem_pattern.h"

#include <cstring>
#include <span>
#include <type_traits>

namespace sap {

namespace {

template <typename Value>
bool AreEqual(const std::vector<Value>& kept, std::span<const Value> given) {
  static_assert(std::has_unique_object_representations_v<Value>);
  return kept.size() == given.size() &&
         (kept.empty() || std::memcmp(kept.data(), given.data(), given.size_bytes()) == 0);
}

template <typename Value>
void Copy(std::span<const Value> from, std::vector<Value>* to) {
  to->assign(from.begin(), from.end());
}

}  // namespace

bool ProblemPattern::Matches(const ContactProblem& problem, bool split_islands) const {
  return known_ && split_islands == split_islands_ && AreEqual(dofs_, problem.dofs()) &&
         AreEqual(contact_start_, problem.contact_start()) &&
         AreEqual(contact_trees_, problem.contact_trees()) &&
         AreEqual(coupled_, problem.coupled_trees().pairs()) &&
         AreEqual(contact_kind_, problem.contact_kind()) &&
         AreEqual(row_kind_, problem.row_kind()) && AreEqual(row_start_, problem.row_start()) &&
         AreEqual(row_entries_, problem.row_entries());
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
