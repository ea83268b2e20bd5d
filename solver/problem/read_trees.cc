#include <algorithm>
#include <cmath>
#include <limits>

#include "solver/cholesky/dense_cholesky.h"
#include "solver/problem/problem_reader.h"
#include "solver/problem/rigid_bodies.h"

namespace sap {

namespace {

constexpr Chunks kReadBodies{64, 5000};

// Copies the triangle that FactorTree reads; the other one becomes zero.
template <typename Size>
void CopyTriangle(const double* A, Size n, double* to) {
  const bool lower = n <= kScalarDofs;
  for (int i = 0; i < n; ++i) {
    const int begin = lower ? 0 : i;
    const int end = lower ? i + 1 : static_cast<int>(n);
    std::fill(to + i * n, to + i * n + begin, 0.0);
    std::copy(A + i * n + begin, A + i * n + end, to + i * n + begin);
    std::fill(to + i * n + end, to + (i + 1) * n, 0.0);
  }
}

template <typename Size>
DenseStatus FactorTreeOf(const double* A, Size n, double* factor, int* ends) {
  CopyTriangle(A, n, factor);
  return FactorTree(factor, n, ends);
}

double LargestEntry(const double* A, int n) {
  double largest = 0;
  for (int i = 0; i < n * n; ++i) largest = std::max(largest, std::abs(A[i]));
  return largest;
}

}  // namespace

void ContactProblemReader::ReadTrees() {
  ReadTreeSizes();
  if (!check_.ok()) return;
  const ContactProblemView::Trees& t = view_.trees;
  const int64_t n_v = p_.velocity_start_.back();
  const Needed why{num_trees_, "trees (see trees.dofs)"};
  check_.Array("trees.dynamics_matrix", t.dynamics_matrix, p_.matrix_start_.back(), Range::kFinite,
               why);
  check_.Array("trees.free_motion_velocity", t.free_motion_velocity, n_v, Range::kFinite, why);
  check_.Optional("trees.guess_velocity", t.guess_velocity, n_v, Range::kFinite, why);
  CheckInitialVelocity("trees.initial_velocity", t.initial_velocity, n_v, why);
  if (!t.tree_id.empty()) check_.Length("trees.tree_id", t.tree_id.size(), num_trees_, why);
  if (!check_.ok()) return;
  const size_t entries = t.dynamics_matrix.size() + 36 * static_cast<size_t>(num_bodies_);
  p_.dynamics_matrix_.resize(entries);
  p_.dynamics_factor_.resize(entries);
  std::ranges::copy(t.dynamics_matrix, p_.dynamics_matrix_.begin());
  p_.row_ends_.resize(n_v);
  for (int i = 0; i < num_trees_; ++i) {
    ReadDynamicsMatrix(i);
    if (!check_.ok()) return;
  }
  AppendVelocities(t.free_motion_velocity, t.guess_velocity, t.initial_velocity);
  AppendNames(t.tree_id, num_trees_);
}

void ContactProblemReader::ReadTreeSizes() {
  if (!check_.ok()) return;
  p_.dofs_.reserve(num_trees_ + num_bodies_);
  p_.velocity_start_.assign(1, 0);
  p_.matrix_start_.assign(1, 0);
  for (int i = 0; i < num_trees_; ++i) {
    const uint32_t dofs = view_.trees.dofs[i];
    if (dofs < 1 || dofs > static_cast<uint32_t>(limits_.max_tree_dofs)) {
      return check_.Refuse("trees.dofs", i,
                           "is " + std::to_string(dofs) + "; it must be in [1, " +
                               std::to_string(limits_.max_tree_dofs) + "]");
    }
    AppendTree(static_cast<int>(dofs));
  }
}

// Symmetrizes block A_t and factors it.
void ContactProblemReader::ReadDynamicsMatrix(int tree) {
  const int n = p_.dofs_[tree];
  const int64_t start = p_.matrix_start_[tree];
  double* A = p_.dynamics_matrix_.data() + start;
  double largest = 0;  // entry, once it is needed
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < i; ++j) {
      const double difference = std::abs(A[i * n + j] - A[j * n + i]);
      if (difference > 0 && largest == 0) largest = LargestEntry(A, n);
      if (difference > 1e-12 * largest) {
        return check_.Refuse("trees.dynamics_matrix", start + i * n + j,
                             "is " + ToText(A[i * n + j]) + " but its transpose is " +
                                 ToText(A[j * n + i]) + "; the matrix of trees[" +
                                 std::to_string(tree) +
                                 "] must be symmetric within 1e-12 of its largest entry");
      }
      A[i * n + j] = A[j * n + i] = 0.5 * A[i * n + j] + 0.5 * A[j * n + i];
    }
  }
  double* factor = p_.dynamics_factor_.data() + start;
  int* ends = p_.row_ends_.data() + p_.velocity_start_[tree];
  DenseStatus status{};
  ForSize(n, [&](auto size) { status = FactorTreeOf(A, size, factor, ends); });
  if (status != DenseStatus::kOk) {
    check_.Refuse(
        "trees.dynamics_matrix", start,
        "starts a matrix that is not positive definite (trees[" + std::to_string(tree) + "])");
  }
}

void ContactProblemReader::ReadBodies() {
  const ContactProblemView::RigidBodies& b = view_.bodies;
  const int64_t n = num_bodies_;
  const Needed why{n, "bodies (see bodies.mass)"};
  check_.Values("bodies.mass", b.mass, Range::kPositive);
  check_.Array("bodies.inertia", b.inertia, 6 * n, Range::kFinite, why);
  check_.Array("bodies.center_of_mass", b.center_of_mass, 3 * n, Range::kFinite, why);
  check_.Array("bodies.free_motion_velocity", b.free_motion_velocity, 6 * n, Range::kFinite, why);
  check_.Optional("bodies.guess_velocity", b.guess_velocity, 6 * n, Range::kFinite, why);
  CheckInitialVelocity("bodies.initial_velocity", b.initial_velocity, 6 * n, why);
  if (!b.body_id.empty()) check_.Length("bodies.body_id", b.body_id.size(), n, why);
  if (!check_.ok()) return;
  for (int i = 0; i < num_bodies_; ++i) AppendTree(6);
  ForAll(num_bodies_, kReadBodies,
         [this](int i, InputChecker* check) { ReadBodyMatrix(i, check); });
  p_.row_ends_.resize(p_.velocity_start_.back());
  AppendVelocities(b.free_motion_velocity, b.guess_velocity, b.initial_velocity);
  AppendNames(b.body_id, num_bodies_);
}

void ContactProblemReader::ReadBodyMatrix(int body, InputChecker* check) {
  const ContactProblemView::RigidBodies& b = view_.bodies;
  const int64_t first = 6 * static_cast<int64_t>(body);
  const int64_t start = p_.matrix_start_[num_trees_ + body];
  double* A = p_.dynamics_matrix_.data() + start;
  WriteBodyDynamicsMatrix(b.mass[body], b.inertia.data() + first, A);
  if (FactorTreeOf(A, SixDofs(), p_.dynamics_factor_.data() + start, nullptr) != DenseStatus::kOk) {
    check->Refuse(
        "bodies.inertia", first,
        "starts an inertia that is not positive definite (bodies[" + std::to_string(body) + "])");
  }
}

void ContactProblemReader::CheckNames() {
  if (!check_.ok()) return;
  std::vector<int64_t>& sorted = p_.sorted_ids_;
  sorted.clear();
  for (int64_t id : p_.tree_id_) {
    if (id >= 0) sorted.push_back(id);
  }
  if (!std::ranges::is_sorted(sorted)) std::ranges::sort(sorted);  // they mostly ascend
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return;
  int last = static_cast<int>(p_.tree_id_.size()) - 1;
  while (p_.tree_id_[last] != *twice) --last;
  const bool is_tree = last < num_trees_;
  check_.Refuse(is_tree ? "trees.tree_id" : "bodies.body_id", is_tree ? last : last - num_trees_,
                "is " + std::to_string(*twice) + " a second time; names must be unique");
}

void ContactProblemReader::AppendTree(int dofs) {
  p_.dofs_.push_back(dofs);
  p_.velocity_start_.push_back(p_.velocity_start_.back() + dofs);
  p_.matrix_start_.push_back(p_.matrix_start_.back() + static_cast<int64_t>(dofs) * dofs);
}

// The rule that reads it has no other value for it. Whether the certificate of rest is asked for,
// which has none either, is known when the problem is solved.
void ContactProblemReader::CheckInitialVelocity(const FieldName& field, std::span<const double> v_0,
                                                int64_t needed, const Needed& why) {
  if (!check_.ok()) return;
  if (v_0.empty() && needed > 0 && p_.regularization_.rule == DelassusRule::kLoadPath) {
    return check_.Refuse(field, -1,
                         "has 0 values; regularization.rule LOAD_PATH needs the velocities at the "
                         "beginning of the step, " +
                             std::to_string(needed) + " for " + std::to_string(why.count) + " " +
                             std::string(why.noun));
  }
  check_.Optional(field, v_0, needed, Range::kFinite, why);
}

void ContactProblemReader::AppendVelocities(std::span<const double> v_star,
                                            std::span<const double> guess,
                                            std::span<const double> v_0) {
  p_.v_star_.insert(p_.v_star_.end(), v_star.begin(), v_star.end());
  const std::span<const double> from = guess.empty() ? v_star : guess;
  p_.v_guess_.insert(p_.v_guess_.end(), from.begin(), from.end());
  if (view_.trees.initial_velocity.empty() && view_.bodies.initial_velocity.empty()) return;
  if (v_0.empty()) {
    constexpr double kNotGiven = std::numeric_limits<double>::quiet_NaN();
    p_.v_0_.insert(p_.v_0_.end(), v_star.size(), kNotGiven);
  } else {
    p_.v_0_.insert(p_.v_0_.end(), v_0.begin(), v_0.end());
  }
}

void ContactProblemReader::AppendNames(std::span<const uint32_t> names, int count) {
  if (names.empty()) {
    p_.tree_id_.insert(p_.tree_id_.end(), count, -1);
  } else {
    p_.tree_id_.insert(p_.tree_id_.end(), names.begin(), names.end());
  }
}

}  // namespace sap
