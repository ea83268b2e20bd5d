// Contacts of DART as contacts of the problem, in DART's frame: t2 = n x f with f the first
// friction direction, t1 = n x t2. Where the second coefficient of friction is the larger one, the
// problem has t2 and t1 in the places of t1 and t2, since its second coefficient may not exceed 0
// where the first one is 0.
//
//   v_hat_n = min(depth / (dt + tau), v_max), or the speed of the rebound if that is larger, less
//             mu |v_t + R_t gamma_t|
//
// The last term is 0 where a contact sticks. Without it the convex model parts bodies that slide at
// mu |v_t| [Acary, Cadoux, Lemarechal, Malick 2011, "A formulation of the linear discrete Coulomb
// friction problem via convex optimization"]. A gap of mu |v_t| (dt + tau) would end that; but DART
// finds contacts of bodies that overlap alone, so bodies would hop. The term is that of the
// velocities at the beginning of the step, then of the solution, until both agree.
#pragma once

#include <cstdint>
#include <vector>

#include "client/c/sap_islands.h"
#include "client/dart/constraints.h"
#include "client/dart/sap_islands/dart.h"
#include "client/dart/trees.h"

namespace sap_islands::dart {

class Contacts {
 public:
  // Reads the contacts of bodies that can react to an impulse, and adds their skeletons.
  void Read(const Constraints& constraints, const Options& options, Trees* trees);
  int size() const { return static_cast<int>(constraint_.size()); }

  // Some contact slips under load or bounces, so that its R is not by rule.
  bool NeedsRegularization() const { return needs_regularization_; }
  // R of all contacts from the Delassus estimates w of the rule.
  void Regularize(double sigma, const double* w);

  // Sets the last term of v_hat_n by the velocities of the trees.
  void ShiftTargets(const Trees& trees, const std::vector<double>& v);
  // By the solution. False if that changes no closed contact, so that it is the one to apply.
  bool ShiftTargets(const sap_solution& solution, double sigma);

  // Views of the arrays, valid until the next step.
  sap_contact_laws laws() const;
  sap_contacts contacts(const sap_contact_laws* laws) const;

  // Hands the impulses (t1, t2, n) of the solution to DART, which also keeps them as forces.
  void Apply(const double* impulse) const;

 private:
  void Clear();
  void Add(const Constraints& constraints, const ::dart::collision::Contact& contact,
           ::dart::constraint::ContactConstraint* constraint, const Options& options, Trees* trees);
  // Adds the blocks of a contact. Returns its velocity at v*, in the frame.
  Eigen::Vector3d AddJacobian(const ::dart::collision::Contact& contact,
                              const Eigen::Matrix3d& frame, Trees* trees);
  // The last term of v_hat_n at a slip velocity.
  double Shift(int contact, double v_1, double v_2) const;

  std::vector<::dart::constraint::ConstraintBase*> constraint_;
  std::vector<bool> swapped_;
  std::vector<int32_t> tree_a_, tree_b_;
  std::vector<double> jacobian_, relaxation_time_, stiffness_, friction_, friction_2_;
  std::vector<double> target_velocity_, surface_velocity_, regularization_t_, regularization_n_;
  std::vector<double> unshifted_;            // [contacts] v_hat_n without its last term
  std::vector<double> slip_regularization_;  // [contacts] R_t of a contact that slips; 0: by rule
  std::vector<bool> bounces_;
  bool needs_regularization_ = false;
};

}  // namespace sap_islands::dart
