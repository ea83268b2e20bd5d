#include "solver/problem/contact_problem.h"

#include "solver/problem/problem_reader.h"

namespace sap {

std::string ProblemError::Message() const {
  if (index < 0) return field + " " + reason;
  return field + "[" + std::to_string(index) + "] " + reason;
}

tl::expected<void, ProblemError> ContactProblemReader::Read() {
  p_.Clear();
  ReadScalars();
  ReadCounts();
  ReadTrees();
  ReadBodies();
  CheckNames();
  ReadContacts();
  ReadBodyContacts();
  if (check_.ok()) return {};
  p_.Clear();
  return tl::unexpected(check_.refusal());
}

void ContactProblemReader::ReadScalars() {
  const ContactProblemView::Regularization& r = view_.regularization;
  check_.Value("time_step", view_.time_step, Range::kPositive);
  check_.Value("regularization.beta", r.beta, Range::kNonNegative);
  check_.Value("regularization.sigma", r.sigma, Range::kPositive);
  p_.time_step_ = view_.time_step;
  p_.regularization_ = r;
}

void ContactProblemReader::ReadCounts() {
  if (!check_.ok()) return;
  const int64_t trees = static_cast<int64_t>(view_.trees.dofs.size() + view_.bodies.mass.size());
  if (trees > limits_.max_trees) {
    return check_.Refuse(view_.bodies.mass.empty() ? "trees.dofs" : "bodies.mass", -1,
                         "makes " + std::to_string(trees) + " trees and bodies; the limit is " +
                             std::to_string(limits_.max_trees));
  }
  const int64_t contacts =
      static_cast<int64_t>(view_.contacts.tree_a.size() + view_.body_contacts.body_a.size());
  if (contacts > limits_.max_contacts) {
    return check_.Refuse(
        view_.body_contacts.body_a.empty() ? "contacts.tree_a" : "body_contacts.body_a", -1,
        "makes " + std::to_string(contacts) + " contacts; the limit is " +
            std::to_string(limits_.max_contacts));
  }
  num_trees_ = static_cast<int>(view_.trees.dofs.size());
  num_bodies_ = static_cast<int>(view_.bodies.mass.size());
}

tl::expected<ContactProblem, ProblemError> ContactProblem::Make(const ContactProblemView& view,
                                                                const ProblemLimits& limits) {
  ContactProblem problem;
  if (auto read = problem.Reset(view, limits); !read) return tl::unexpected(read.error());
  return problem;
}

tl::expected<void, ProblemError> ContactProblem::Reset(const ContactProblemView& view,
                                                       const ProblemLimits& limits) {
  return ContactProblemReader(view, limits, this).Read();
}

void ContactProblem::SetGuess(std::span<const double> v_guess) {
  v_guess_.assign(v_guess.begin(), v_guess.end());
  has_guess_ = true;
}

void ContactProblem::Clear() {
  time_step_ = 0;
  has_guess_ = false;
  regularization_ = {};
  dofs_.clear();
  velocity_start_.clear();
  matrix_start_.clear();
  tree_id_.clear();
  tree_a_.clear();
  tree_b_.clear();
  jacobian_start_.clear();
  for (std::vector<double>* array :
       {&dynamics_matrix_, &dynamics_factor_, &v_star_, &v_guess_, &jacobian_, &phi0_, &tau_d_,
        &mu_, &stiffness_, &given_R_t_, &given_R_n_, &given_w_, &surface_velocity_}) {
    array->clear();
  }
}

}  // namespace sap
