// The problem of one time step, validated: the only way for data to enter the solver.
//
//   min_v  1/2 |v - v*|_A^2 + sum_i f_i(v_c,i)      f_i convex,  v_c,i = J_i v + b_i
//
//   gamma_i = -d f_i / d v_c,i = P_C(R_i^-1 (v_hat_i - v_c,i))
//
// over contacts and constraint rows [Castro et al. 2021, Sections III and IV]. A ContactProblemView
// is what a caller has: spans over arrays of its own (of a protobuf message, say), nothing copied.
// ContactProblem is what the solver works on: checked, rigid bodies turned into trees of six dofs,
// their contacts into Jacobians. Nothing after this checks input again.
#pragma once

#include <cstdint>
#include <span>
#include <tl/expected.hpp>
#include <vector>

#include "solver/parallel/storage_bytes.h"
#include "solver/parallel/task_arena.h"
#include "solver/problem/constraint_kind.h"
#include "solver/problem/constraint_parameters.h"
#include "solver/problem/coupled_trees.h"
#include "solver/problem/islands.h"
#include "solver/problem/problem_error.h"
#include "solver/problem/problem_fields.h"

namespace sap {

// A checked problem. Storage only grows, so that reading a problem of the same size again allocates
// nothing.
class ContactProblem {
 public:
  // Checks everything and copies. The view need not outlive the call. An error names the first
  // field found at fault.
  static tl::expected<ContactProblem, ProblemError> Make(const ContactProblemView& view,
                                                         const ProblemLimits& limits = {});

  // The same into this object, reusing its storage. After an error the object holds the empty
  // problem. The threads of an arena share the bodies and their contacts where there are many.
  // `islands`: those of the problem, where they are known.
  tl::expected<void, ProblemError> Reset(const ContactProblemView& view,
                                         const ProblemLimits& limits = {},
                                         TaskArena* arena = nullptr,
                                         const Islands* islands = nullptr);

  double time_step() const { return time_step_; }
  int num_trees() const { return static_cast<int>(dofs_.size()); }  // trees, then bodies
  int num_velocities() const { return velocity_start_.empty() ? 0 : velocity_start_.back(); }
  // Then body contacts.
  int num_contacts() const { return static_cast<int>(contact_start_.size()) - 1; }

  // The first tree that is a rigid body; those before are articulated.
  int first_body() const { return first_body_; }

  // Trees.
  std::span<const int> dofs() const { return dofs_; }                      // n_t [T]
  std::span<const int> velocity_start() const { return velocity_start_; }  // [T+1]
  // [T+1] into the two below.
  std::span<const int64_t> matrix_start() const { return matrix_start_; }
  // A_t, symmetric, row-major.
  std::span<const double> dynamics_matrix() const { return dynamics_matrix_; }
  // Factors of A_t, row-major (TreeFactor). Where trees are coupled, no factor of A.
  std::span<const double> dynamics_factor() const { return dynamics_factor_; }
  // By velocity: where the rows of A_t and its factor end in trees of more than kScalarDofs.
  std::span<const int> row_ends() const { return row_ends_; }
  std::span<const double> v_star() const { return v_star_; }
  std::span<const double> v_guess() const { return v_guess_; }
  // Velocity at the beginning of the step, not a number for trees or bodies that have none given;
  // empty where neither have.
  std::span<const double> v_0() const { return v_0_; }
  // The field that lacks v_0 of a tree in an island; null: all have it.
  const char* MissingInitialVelocity() const;
  std::span<const int64_t> tree_id() const { return tree_id_; }  // [T], -1: none
  // Blocks of A between trees, and the factors of the trees that have such.
  const CoupledTrees& coupled_trees() const { return coupled_trees_; }
  // The trees of each contact in the order of its Jacobian, all different.
  std::span<const int64_t> contact_start() const { return contact_start_; }  // [C+1]
  std::span<const int> contact_trees() const { return contact_trees_; }
  std::span<const int> trees_of_contact(int64_t contact) const {
    return contact_trees().subspan(contact_start_[contact],
                                   contact_start_[contact + 1] - contact_start_[contact]);
  }
  int most_trees_of_contact() const { return most_trees_of_contact_; }
  std::span<const int64_t> jacobian_start() const { return jacobian_start_; }  // [C+1]
  // A block of each tree of a contact, row-major.
  std::span<const double> jacobian() const { return jacobian_; }
  // v_hat [3 C], contact frame: given, or (0, 0, -phi0 / (dt + tau_d)).
  std::span<const double> v_hat() const { return v_hat_; }
  std::span<const double> tau_d() const { return tau_d_; }
  std::span<const double> mu() const { return mu_; }
  // k, +infinity where R_n is given.
  std::span<const double> stiffness() const { return stiffness_; }
  std::span<const double> given_R_t() const { return given_R_t_; }  // [C], 0: not given
  std::span<const double> given_R_n() const { return given_R_n_; }  // [C], 0: not given
  std::span<const double> given_w() const { return given_w_; }      // [C], 0: not given
  // [3 C], contact frame.
  std::span<const double> surface_velocity() const { return surface_velocity_; }
  // The pool that solves each contact.
  std::span<const ConstraintKind> contact_kind() const { return contact_kind_; }  // [C]
  // Index of contacts other than kFriction into general_friction() or hunt_crossley().
  std::span<const int> contact_extra() const { return contact_extra_; }  // [C], -1: none
  std::span<const GeneralFriction> general_friction() const { return general_friction_; }
  std::span<const HuntCrossleyParameters> hunt_crossley() const { return hunt_crossley_; }
  // Number of a contact among those with angular Jacobians; -1: it has none.
  int angular_contact(int64_t contact) const {
    if (!HasAngularRows(contact_kind_[contact])) return -1;
    return general_friction_[contact_extra_[contact]].angular_contact;
  }
  // Contacts with angular Jacobians.
  int num_angular() const { return static_cast<int>(angular_start_.size()) - 1; }
  // [num_angular + 1] into angular_jacobian, which is laid out as jacobian is.
  std::span<const int64_t> angular_start() const { return angular_start_; }
  std::span<const double> angular_jacobian() const { return angular_jacobian_; }
  // [3 num_angular], about (t1, t2, n).
  std::span<const double> angular_v_hat() const { return angular_v_hat_; }

  // Constraint rows.
  int num_rows() const { return static_cast<int>(rows_.size()); }
  std::span<const RowParameters> rows() const { return rows_; }           // [R]
  std::span<const ConstraintKind> row_kind() const { return row_kind_; }  // [R]
  std::span<const int64_t> row_start() const { return row_start_; }  // [R+1] into the two below
  std::span<const RowEntry> row_entries() const { return row_entries_; }          // [E]
  std::span<const double> row_coefficients() const { return row_coefficients_; }  // J [E]
  const Regularization& regularization() const { return regularization_; }

  // Guesses of impulses, in the contact frame: [3 C], [3 num_angular], [R], each or empty.
  std::span<const double> guess_impulse() const { return guess_impulse_; }
  std::span<const double> guess_angular_impulse() const { return guess_angular_impulse_; }
  std::span<const double> guess_row_impulse() const { return guess_row_impulse_; }

  const Islands& islands() const { return islands_; }

  // Replaces the guess, sum of n_t finite values: how a session starts from the step before.
  void SetGuess(std::span<const double> v_guess);

  // Becomes the empty problem and frees nothing.
  void Clear();

  size_t storage_bytes() const {
    return StorageBytes(dofs_, velocity_start_, matrix_start_, dynamics_matrix_, dynamics_factor_,
                        row_ends_, v_star_, v_guess_, v_0_, tree_id_, sorted_ids_, coupled_trees_,
                        contact_start_, contact_trees_, jacobian_start_, jacobian_, v_hat_, tau_d_,
                        mu_, stiffness_, given_R_t_, given_R_n_, given_w_, surface_velocity_,
                        contact_kind_, contact_extra_, general_friction_, hunt_crossley_,
                        angular_start_, angular_jacobian_, angular_v_hat_, rows_, row_kind_,
                        row_start_, row_entries_, row_coefficients_, guess_impulse_,
                        guess_angular_impulse_, guess_row_impulse_, islands_);
  }
  // Frees what is kept for problems other than the last one, and is of no use to that.
  void DropUnusedPlans() { coupled_trees_.DropUnusedPlans(); }

 private:
  friend class ContactProblemReader;

  // Clears all but the largest arrays, which reading sizes and overwrites: to clear them as well
  // would have them written twice.
  void ClearLists();

  double time_step_{0};
  int first_body_{0};
  std::vector<int> dofs_;
  std::vector<int> velocity_start_;
  std::vector<int64_t> matrix_start_;
  std::vector<double> dynamics_matrix_;
  std::vector<double> dynamics_factor_;
  std::vector<int> row_ends_;
  std::vector<double> v_star_;
  std::vector<double> v_guess_;
  std::vector<double> v_0_;
  std::vector<int64_t> tree_id_;
  std::vector<int64_t> sorted_ids_;  // scratch of the check for duplicates
  CoupledTrees coupled_trees_;
  std::vector<int64_t> contact_start_{0};
  std::vector<int> contact_trees_;
  int most_trees_of_contact_{0};
  std::vector<int64_t> jacobian_start_;
  std::vector<double> jacobian_;
  std::vector<double> v_hat_;
  std::vector<double> tau_d_;
  std::vector<double> mu_;
  std::vector<double> stiffness_;
  std::vector<double> given_R_t_;
  std::vector<double> given_R_n_;
  std::vector<double> given_w_;
  std::vector<double> surface_velocity_;
  std::vector<ConstraintKind> contact_kind_;
  std::vector<int> contact_extra_;
  std::vector<GeneralFriction> general_friction_;
  std::vector<HuntCrossleyParameters> hunt_crossley_;
  std::vector<int64_t> angular_start_{0};
  std::vector<double> angular_jacobian_;
  std::vector<double> angular_v_hat_;
  std::vector<RowParameters> rows_;
  std::vector<ConstraintKind> row_kind_;
  std::vector<int64_t> row_start_{0};
  std::vector<RowEntry> row_entries_;
  std::vector<double> row_coefficients_;
  std::vector<double> guess_impulse_;
  std::vector<double> guess_angular_impulse_;
  std::vector<double> guess_row_impulse_;
  Regularization regularization_;
  Islands islands_;
};

}  // namespace sap
