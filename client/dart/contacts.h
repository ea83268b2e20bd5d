// Contacts of DART as contacts of the problem, in DART's frame: t2 = n x f with f the first
// friction direction, t1 = n x t2. Where the second coefficient of friction is the larger one, the
// problem has t2 and t1 in the places of t1 and t2, since its second coefficient may not exceed 0
// where the first one is 0.
//
//   v_hat_n = min(depth / (dt + tau), v_max) (n d)+, or the speed of the rebound if that is larger,
//             less mu |v_t + R_t gamma_t|
//
// with d the unit vector along the sum of depth n over the contacts of the two objects. Moving out
// along d at v_max satisfies all of them. Contacts of meshes have normals to all sides, and points
// close to each other: if each asked for v_max along its own normal, bodies would have to turn, and
// far from the contacts they would be many times faster than v_max.
//
// The last term is 0 where a contact sticks. Without it the convex model parts bodies that slide at
// mu |v_t| [Acary, Cadoux, Lemarechal, Malick 2011, "A formulation of the linear discrete Coulomb
// friction problem via convex optimization"]. A gap of mu |v_t| (dt + tau) would end that; but DART
// finds contacts of bodies that overlap alone, so bodies would hop. The term is that of the
// velocities at the beginning of the step, then of the solution, until both agree.
//
// A contact that slips under load has R_t = slip / dt along each direction, but the wire has R_2 =
// R_1 (mu_1 / mu_2)^2. What one direction needs beyond that is a velocity u of its own, a tree of
// one degree of freedom of that contact with A = 1 / R_extra and v* = 0: v_c + u + R gamma = 0 and
// A u = gamma are v_c + (R + R_extra) gamma = 0, within the same cone.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "client/c/sap_islands.h"
#include "client/dart/constraints.h"
#include "client/dart/sap_islands/dart.h"
#include "client/dart/trees.h"

namespace sap_islands::dart {

class Contacts {
 public:
  using ObjectPair = std::pair<const void*, const void*>;

  // Reads the contacts of bodies that can react to an impulse, and adds their skeletons.
  void Read(const Constraints& constraints, const Options& options, Trees* trees);
  int size() const { return static_cast<int>(constraint_.size()); }

  // Some contact slips under load or bounces, so that its R is not by rule.
  bool NeedsRegularization() const { return needs_regularization_; }
  // R of all contacts from the Delassus estimates w of the rule, and the trees of what slips
  // otherwise along its second direction.
  void Regularize(double beta, double sigma, const double* w, Trees* trees);

  // Sets the last term of v_hat_n by the velocities of the trees.
  void ShiftTargets(const Trees& trees, const std::vector<double>& v);
  // Sets it by the solution. False if no closed contact changes: then that is the one to apply.
  bool ShiftTargets(const sap_solution& solution, double sigma);

  // Some contact slips otherwise along its second direction. Then R of all is given, and the rule
  // has to be one that takes contacts of three trees.
  bool HasSlipTrees() const { return !parts_.empty(); }

  // Views of the arrays, valid until the next step.
  sap_contact_laws laws() const;
  sap_contacts contacts(const sap_contact_laws* laws) const;

  // Hands the impulses (t1, t2, n) of the solution to DART, which also keeps them as forces.
  void Apply(const double* impulse) const;

 private:
  void Clear();
  void FindPairs(const Constraints& constraints);
  // Speed at which a contact pushes its objects apart.
  double PushOutSpeed(const ::dart::collision::Contact& contact, double reaction_time,
                      const Options& options) const;
  void Add(double dt, const ::dart::collision::Contact& contact,
           ::dart::constraint::ContactConstraint* constraint, const Options& options, Trees* trees);
  // Adds the blocks of a contact. Returns its velocity at v*, in the frame.
  Eigen::Vector3d AddJacobian(const ::dart::collision::Contact& contact,
                              const Eigen::Matrix3d& frame, Trees* trees);
  // Whether no motion of its trees changes the normal velocity of the last contact, whose blocks
  // begin there.
  bool IsGuided(const double* blocks, const Trees& trees) const;
  // v_hat_n of a contact with this last term.
  double Target(int contact, double shift) const;
  // Adds trees [contacts], or -1, to the contacts, along an axis of each.
  void AddSlipTrees(const Trees& trees, const std::vector<int>& slip_tree,
                    const std::vector<int>& slip_axis);
  // The last term of v_hat_n at a slip velocity.
  double Shift(int contact, double v_1, double v_2) const;

  struct Pair {
    int contacts = 0;
    Eigen::Vector3d way_out = Eigen::Vector3d::Zero();  // of the first object [m]
  };

  std::map<ObjectPair, Pair> pairs_;
  std::vector<::dart::constraint::ConstraintBase*> constraint_;
  std::vector<bool> swapped_;
  std::vector<int32_t> tree_a_, tree_b_;
  std::vector<double> jacobian_, relaxation_time_, stiffness_, friction_, friction_2_;
  std::vector<double> target_velocity_, surface_velocity_, regularization_t_, regularization_n_;
  std::vector<double> unshifted_;                     // [contacts] v_hat_n without its last term
  std::vector<Eigen::Vector2d> slip_regularization_;  // [contacts] R of a contact that slips, or 0
  // Where some contact has a tree for its slip, the trees of all; else tree_a_ and tree_b_ count.
  std::vector<uint32_t> parts_;
  std::vector<int32_t> part_tree_;
  std::vector<bool> bounces_;
  std::vector<bool> guided_;
  bool needs_regularization_ = false;
};

}  // namespace sap_islands::dart
