// Rows of the problem: of joints, each along one velocity, and of the constraints of users. Signs
// are such that impulses of a row act along its coefficients.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "client/c/sap_islands.h"
#include "client/dart/constraints.h"
#include "client/dart/sap_islands/dart.h"
#include "client/dart/trees.h"

namespace sap_islands::dart {

class Rows {
 public:
  void Clear();
  int size() const { return static_cast<int>(entries_.size()); }

  // A row: v_c = v_hat, with an impulse between dt lower and dt upper.
  struct Target {
    double v_hat;
    double force_lower = -std::numeric_limits<double>::infinity();
    double force_upper = std::numeric_limits<double>::infinity();
    double slip_parameter = 0;
  };
  void AddJointRow(int velocity, double coefficient, const Target& target);

  // Adds the rows of a user's constraint by unit impulses, and the skeletons that they move. False
  // if it cannot be rows, as where an impulse bounds another.
  bool AddConstraint(const Constraints& constraints, ::dart::constraint::ConstraintBase* constraint,
                     Trees* trees);

  sap_rows rows() const;

  // Adds the impulses of joint rows to those of each velocity, and hands those of users'
  // constraints to them.
  void Apply(const double* impulse, double* joint_impulse) const;

 private:
  struct UserConstraint {
    ::dart::constraint::ConstraintBase* constraint;
    int first_row;
  };
  void AddTarget(const Target& target);
  void AddResponse(const Trees& trees, const std::vector<const SkeletonTrees*>& moved, double b,
                   Target target);

  std::vector<uint32_t> entries_, velocity_index_;
  std::vector<double> coefficient_, target_velocity_, force_lower_, force_upper_, slip_parameter_;
  std::vector<int> joint_row_;       // rows of joints
  std::vector<size_t> joint_entry_;  // and their entry
  std::vector<UserConstraint> users_;
};

// Adds the rows of joints: Coulomb friction, servo and mimic motors, limits within reach.
void AddJointRows(const Constraints& constraints, const Options& options, Trees* trees, Rows* rows);

}  // namespace sap_islands::dart
