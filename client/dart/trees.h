// The skeletons that constraints touch, as trees of the problem. Velocities are DART's generalized
// velocities without those of kinematic joints (ACCELERATION, VELOCITY, LOCKED), which take no
// impulse:
//
//   A = sum over bodies of J_b' I_b J_b + diag(dt d + dt^2 k),   v_0 = v* - dt a
//
// with d and k the dampers and springs of the joints, which DART integrates implicitly, v* the
// velocities that DART has integrated without constraints, and a its accelerations.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <dart/dynamics/BodyNode.hpp>
#include <dart/dynamics/Skeleton.hpp>
#include <deque>
#include <unordered_map>
#include <vector>

#include "client/c/sap_islands.h"

namespace sap_islands::dart {

// Where the velocities of one skeleton are.
struct SkeletonTrees {
  ::dart::dynamics::Skeleton* skeleton;
  std::vector<int> tree;      // [trees of the skeleton] tree of the problem; -1: all is kinematic
  std::vector<int> velocity;  // [dofs of the skeleton] velocity of the problem; -1: kinematic
  bool has_kinematic_dofs;
};

class Trees {
 public:
  void Clear(double time_step);

  // Adds the trees of a mobile skeleton, once. The reference is valid until Clear.
  const SkeletonTrees& Add(::dart::dynamics::Skeleton& skeleton);
  bool Has(const ::dart::dynamics::Skeleton& skeleton) const;
  // Adds a tree of one degree of freedom that is no skeleton's, at rest, and returns it. A: its
  // dynamics matrix.
  int AddSlip(double A);
  const std::deque<SkeletonTrees>& skeletons() const { return skeletons_; }

  int num_trees() const { return static_cast<int>(dofs_.size()); }
  int num_velocities() const { return static_cast<int>(v_star_.size()); }
  int dofs(int tree) const { return static_cast<int>(dofs_[tree]); }
  int first_velocity(int tree) const { return first_velocity_[tree]; }
  double v_star(int velocity) const { return v_star_[velocity]; }
  // Entry of the diagonal of A.
  double mass(int tree, int dof) const {
    return dynamics_matrix_[first_entry_[tree] + static_cast<size_t>(dof) * (dofs(tree) + 1)];
  }
  // Entry of diag(dt d + dt^2 k).
  double implicit_force(int velocity) const { return implicit_forces_[velocity]; }

  // Adds S J_b, 3 x dofs(tree of the body) and row-major, to the block.
  void AddJacobian(const SkeletonTrees& trees, const ::dart::dynamics::BodyNode& body,
                   const Eigen::Matrix<double, 3, 6>& S, double* block) const;

  // The impulse M dv of velocity changes dv in one tree, without implicit forces.
  Eigen::VectorXd Impulse(int tree, const Eigen::VectorXd& dv) const;

  const std::vector<double>& v_0() const { return v_0_; }
  // View of the arrays, valid until the next step. The guess is v_0, or what was set.
  sap_trees trees() const;
  void SetGuess(const sap_doubles& v) { guess_.assign(v.data, v.data + v.length); }

 private:
  void AddVelocities(SkeletonTrees* trees);
  void AddMasses(const SkeletonTrees& trees);

  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  double time_step_ = 0;
  std::unordered_map<const ::dart::dynamics::Skeleton*, size_t> index_;
  std::deque<SkeletonTrees> skeletons_;
  std::vector<uint32_t> dofs_;
  std::vector<int> first_velocity_;
  std::vector<size_t> first_entry_;  // of the block in dynamics_matrix_
  std::vector<double> dynamics_matrix_, v_star_, v_0_, guess_, implicit_forces_;
  Eigen::Matrix<double, 6, Eigen::Dynamic> momentum_;  // I_b J_b of one body
};

}  // namespace sap_islands::dart
