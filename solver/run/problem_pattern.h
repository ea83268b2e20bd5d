// The part of a problem that its layout depends on, to tell whether the last layout still holds.
#pragma once

#include <cstdint>
#include <vector>

#include "solver/parallel/storage_bytes.h"
#include "solver/problem/contact_problem.h"

namespace sap {

// The pattern of the problem that was laid out last.
class ProblemPattern {
 public:
  bool Matches(const ContactProblem& problem, bool split_islands) const;
  void Assign(const ContactProblem& problem, bool split_islands);
  // No problem matches any more, not even the empty one.
  void Forget() { known_ = false; }
  size_t storage_bytes() const {
    return StorageBytes(dofs_, contact_trees_, contact_start_, coupled_, contact_kind_, row_kind_,
                        row_start_, row_entries_);
  }

 private:
  std::vector<int> dofs_, contact_trees_;
  std::vector<int64_t> contact_start_;
  std::vector<CoupledPair> coupled_;
  std::vector<ConstraintKind> contact_kind_, row_kind_;
  std::vector<int64_t> row_start_;
  std::vector<RowEntry> row_entries_;
  bool split_islands_{true};
  bool known_{false};
};

}  // namespace sap
