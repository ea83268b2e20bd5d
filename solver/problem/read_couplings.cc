#include <algorithm>

#include "solver/problem/problem_reader.h"

namespace sap {

namespace {

// Limit of the factors of coupled trees that holds whatever the caller allows, for their time: that
// of one dense matrix of this size takes 1e11 operations, some seconds, in which nothing is polled.
constexpr size_t kMostFactorBytes = size_t{192} << 20;

}  // namespace

void ContactProblemReader::ReadCouplings() {
  int64_t block_size = 0;
  CheckCouplings(&block_size);
  const ContactProblemView::Trees& t = view_.trees;
  const Needed why{static_cast<int64_t>(t.coupled_a.size()), "couplings (see trees.coupled_a)"};
  check_.Array("trees.coupling_block", t.coupling_block, block_size, Range::kFinite, why);
  if (!check_.ok() || t.coupled_a.empty()) return;
  if (p_.regularization_.rule == DelassusRule::kLoadPath) {
    return check_.Refuse("trees.coupled_a", -1,
                         "has " + std::to_string(why.count) +
                             " values; it must be empty where regularization.rule is LOAD_PATH");
  }
  p_.coupled_trees_.Assign(t.coupled_a, t.coupled_b, t.coupling_block, p_.dofs_);
  FactorCoupledTrees();
}

// Pairs of trees a > b, ascending. Sums the sizes of their blocks.
void ContactProblemReader::CheckCouplings(int64_t* block_size) {
  const std::span<const int32_t> a = view_.trees.coupled_a;
  const std::span<const int32_t> b = view_.trees.coupled_b;
  check_.Length("trees.coupled_b", b.size(), static_cast<int64_t>(a.size()),
                {static_cast<int64_t>(a.size()), "couplings (see trees.coupled_a)"});
  check_.Indices("trees.coupled_a", a, 0, num_trees_);
  check_.Indices("trees.coupled_b", b, 0, num_trees_);
  if (!check_.ok()) return;
  for (size_t k = 0; k < a.size(); ++k) {
    if (b[k] >= a[k]) {
      return check_.Refuse("trees.coupled_b", static_cast<int64_t>(k),
                           "is " + std::to_string(b[k]) +
                               "; it must be less than trees.coupled_a, which is " +
                               std::to_string(a[k]));
    }
    if (k > 0 && (a[k] < a[k - 1] || (a[k] == a[k - 1] && b[k] <= b[k - 1]))) {
      const auto pair = [&](size_t i) {
        std::string text("(");
        return text.append(std::to_string(a[i])).append(", ").append(std::to_string(b[i])) + ")";
      };
      return check_.Refuse(
          "trees.coupled_a", static_cast<int64_t>(k),
          "and trees.coupled_b are " + pair(k) + " after " + pair(k - 1) + "; pairs must ascend");
    }
    *block_size += static_cast<int64_t>(p_.dofs_[a[k]]) * p_.dofs_[b[k]];
  }
}

void ContactProblemReader::FactorCoupledTrees() {
  CoupledTrees& coupled = p_.coupled_trees_;
  const size_t bytes = coupled.Plan(p_.dofs_);
  const size_t most = std::min(limits_.max_coupled_bytes, kMostFactorBytes);
  if (bytes > most) {
    return check_.Refuse("trees.coupled_a", -1,
                         "makes factors of " + std::to_string(bytes) +
                             " bytes of the dynamics matrices of coupled trees; the limit is " +
                             std::to_string(most));
  }
  const int component = coupled.FactorAll(p_.dynamics_matrix_, p_.matrix_start_);
  if (component < 0) return;
  check_.Refuse("trees.coupling_block", -1,
                "and trees.dynamics_matrix make a matrix that is not positive definite, of trees[" +
                    std::to_string(coupled.trees_of(component).front()) +
                    "] and the trees that are coupled with it");
}

}  // namespace sap
