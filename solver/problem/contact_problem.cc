#include "solver/problem/contact_problem.h"

#include <cmath>

#include "solver/problem/problem_reader.h"

namespace sap {

std::string ProblemError::Message() const {
  if (index < 0) return field + " " + reason;
  return field + "[" + std::to_string(index) + "] " + reason;
}

std::string Mebibytes(int64_t bytes) {
  constexpr int64_t kMebibyte = int64_t{1} << 20;
  return std::to_string((bytes + kMebibyte - 1) / kMebibyte) + " MiB";
}

tl::expected<void, ProblemError> ContactProblemReader::Read(const Islands* islands) {
  p_.ClearLists();
  ReadScalars();
  ReadCounts();
  ReadTrees();
  ReadCouplings();
  ReadBodies();
  CheckNames();
  ReadContacts();
  ReadBodyContacts();
  ReadRows();
  if (check_.ok()) {
    if (islands != nullptr) {
      p_.islands_ = *islands;
    } else {
      p_.islands_.Find(p_, /*split=*/true);
    }
    return {};
  }
  p_.Clear();
  return tl::unexpected(check_.refusal());
}

void ContactProblemReader::ReadScalars() {
  const ContactProblemView::Regularization& r = view_.regularization;
  check_.Value("time_step", view_.time_step, Range::kPositive);
  check_.Value("regularization.beta", r.beta, Range::kNonNegative);
  check_.Value("regularization.sigma", r.sigma, Range::kPositive);
  check_.Value("regularization.row_beta", r.row_beta, Range::kNonNegative);
  check_.Value("regularization.stiction_speed", r.stiction_speed, Range::kPositive);
  check_.Value("regularization.load_reference_speed", r.load_reference_speed,
               Range::kPositiveOrInfinite);
  if (r.reference_time_step != 0) {
    check_.Value("regularization.reference_time_step", r.reference_time_step, Range::kPositive);
  }
  p_.time_step_ = view_.time_step;
  p_.regularization_ = r;
}

void ContactProblemReader::ReadCounts() {
  const auto check = [this](const char* field, size_t count, const char* noun, int limit) {
    if (!check_.ok() || static_cast<int64_t>(count) <= limit) return;
    check_.Refuse(
        field, -1,
        "makes " + std::to_string(count) + " " + noun + "; the limit is " + std::to_string(limit));
  };
  const size_t trees = view_.trees.dofs.size();
  const size_t bodies = view_.bodies.mass.size();
  const size_t contacts = CountContacts(view_.contacts);
  const size_t body_contacts = view_.body_contacts.body_a.size();
  check(bodies == 0 ? "trees.dofs" : "bodies.mass", trees + bodies, "trees and bodies",
        limits_.max_trees);
  const char* counted = view_.contacts.parts.empty() ? "contacts.tree_a" : "contacts.parts";
  check(body_contacts == 0 ? counted : "body_contacts.body_a", contacts + body_contacts, "contacts",
        limits_.max_contacts);
  check("trees.coupled_a", view_.trees.coupled_a.size(), "pairs of trees", limits_.max_row_pairs);
  check("rows.entries", view_.rows.entries.size(), "rows", limits_.max_rows);
  check("rows.velocity_index", view_.rows.velocity_index.size(), "entries",
        limits_.max_row_entries);
  if (!check_.ok()) return;
  num_trees_ = static_cast<int>(trees);
  p_.first_body_ = num_trees_;
  num_bodies_ = static_cast<int>(bodies);
}

tl::expected<ContactProblem, ProblemError> ContactProblem::Make(const ContactProblemView& view,
                                                                const ProblemLimits& limits) {
  ContactProblem problem;
  if (auto read = problem.Reset(view, limits); !read) return tl::unexpected(read.error());
  return problem;
}

tl::expected<void, ProblemError> ContactProblem::Reset(const ContactProblemView& view,
                                                       const ProblemLimits& limits,
                                                       TaskArena* arena, const Islands* islands) {
  return ContactProblemReader(view, limits, arena, this).Read(islands);
}

const char* ContactProblem::MissingInitialVelocity() const {
  const auto is_missing = [this](int tree) {
    return v_0_.empty() || std::isnan(v_0_[velocity_start_[tree]]);
  };
  const bool trees_lack = first_body_ > 0 && is_missing(0);
  const bool bodies_lack = first_body_ < num_trees() && is_missing(first_body_);
  if (!trees_lack && !bodies_lack) return nullptr;
  bool trees_need = !coupled_trees_.empty();
  bool bodies_need = false;
  const auto note = [&](int tree) { (tree < first_body_ ? trees_need : bodies_need) = true; };
  for (const int tree : contact_trees_) note(tree);
  for (const RowEntry& entry : row_entries_) note(entry.tree);
  if (trees_lack && trees_need) return "trees.initial_velocity";
  return bodies_lack && bodies_need ? "bodies.initial_velocity" : nullptr;
}

void ContactProblem::SetGuess(std::span<const double> v_guess) {
  v_guess_.assign(v_guess.begin(), v_guess.end());
}

void ContactProblem::Clear() {
  ClearLists();
  dynamics_matrix_.clear();
  dynamics_factor_.clear();
  jacobian_.clear();
  islands_.Find(*this, /*split=*/true);
}

void ContactProblem::ClearLists() {
  time_step_ = 0;
  first_body_ = 0;
  regularization_ = {};
  dofs_.clear();
  velocity_start_.clear();
  matrix_start_.clear();
  row_ends_.clear();
  tree_id_.clear();
  coupled_trees_.Clear();
  contact_start_.assign(1, 0);
  contact_trees_.clear();
  most_trees_of_contact_ = 0;
  jacobian_start_.clear();
  for (std::vector<double>* array :
       {&v_star_, &v_guess_, &v_0_, &v_hat_, &tau_d_, &mu_, &stiffness_, &given_R_t_, &given_R_n_,
        &given_w_, &surface_velocity_, &guess_impulse_, &guess_angular_impulse_,
        &guess_row_impulse_}) {
    array->clear();
  }
  contact_kind_.clear();
  contact_extra_.clear();
  general_friction_.clear();
  hunt_crossley_.clear();
  angular_start_.assign(1, 0);
  angular_jacobian_.clear();
  angular_v_hat_.clear();
  rows_.clear();
  row_kind_.clear();
  row_start_.assign(1, 0);
  row_entries_.clear();
  row_coefficients_.clear();
}

}  // namespace sap
