#include "client/dart/trees.h"

#include <dart/dynamics/DegreeOfFreedom.hpp>
#include <dart/dynamics/Joint.hpp>

namespace sap_islands::dart {

using ::dart::dynamics::BodyNode;
using ::dart::dynamics::DegreeOfFreedom;
using ::dart::dynamics::Skeleton;

void Trees::Clear(double time_step) {
  time_step_ = time_step;
  index_.clear();
  skeletons_.clear();
  dofs_.clear();
  first_velocity_.clear();
  first_entry_.clear();
  dynamics_matrix_.clear();
  v_star_.clear();
  v_0_.clear();
  guess_.clear();
  implicit_forces_.clear();
}

bool Trees::Has(const Skeleton& skeleton) const { return index_.count(&skeleton) > 0; }

const SkeletonTrees& Trees::Add(Skeleton& skeleton) {
  const auto [place, is_new] = index_.emplace(&skeleton, skeletons_.size());
  if (is_new) {
    SkeletonTrees trees;
    trees.skeleton = &skeleton;
    AddVelocities(&trees);
    AddMasses(trees);
    skeletons_.push_back(std::move(trees));
  }
  return skeletons_[place->second];
}

int Trees::AddSlip(double A) {
  dofs_.push_back(1);
  first_velocity_.push_back(num_velocities());
  first_entry_.push_back(dynamics_matrix_.size());
  dynamics_matrix_.push_back(A);
  for (auto* array : {&v_star_, &v_0_, &implicit_forces_}) array->push_back(0);
  return num_trees() - 1;
}

void Trees::AddVelocities(SkeletonTrees* trees) {
  Skeleton& skeleton = *trees->skeleton;
  trees->tree.assign(skeleton.getNumTrees(), -1);
  trees->velocity.assign(skeleton.getNumDofs(), -1);
  trees->has_kinematic_dofs = false;
  for (size_t t = 0; t < skeleton.getNumTrees(); ++t) {
    const int first = num_velocities();
    for (DegreeOfFreedom* dof : skeleton.getTreeDofs(t)) {
      if (dof->getJoint()->isKinematic()) {
        trees->has_kinematic_dofs = true;
        continue;
      }
      trees->velocity[dof->getIndexInSkeleton()] = num_velocities();
      v_star_.push_back(dof->getVelocity());
      v_0_.push_back(dof->getVelocity() - time_step_ * dof->getAcceleration());
      implicit_forces_.push_back(
          time_step_ * (dof->getDampingCoefficient() + time_step_ * dof->getSpringStiffness()));
    }
    const int n = num_velocities() - first;
    if (n == 0) continue;
    trees->tree[t] = num_trees();
    dofs_.push_back(n);
    first_velocity_.push_back(first);
    first_entry_.push_back(dynamics_matrix_.size());
    dynamics_matrix_.resize(dynamics_matrix_.size() + n * n, 0.0);
    Eigen::Map<Matrix>(&dynamics_matrix_[first_entry_.back()], n, n).diagonal() =
        Eigen::Map<const Eigen::VectorXd>(&implicit_forces_[first], n);
  }
}

void Trees::AddMasses(const SkeletonTrees& trees) {
  for (size_t b = 0; b < trees.skeleton->getNumBodyNodes(); ++b) {
    const BodyNode& body = *trees.skeleton->getBodyNode(b);
    const int tree = trees.tree[body.getTreeIndex()];
    if (tree < 0) continue;
    const ::dart::math::Jacobian& J = body.getJacobian();
    const std::vector<size_t>& dof = body.getDependentGenCoordIndices();
    momentum_.noalias() = body.getSpatialInertia() * J;
    Eigen::Map<Matrix> A(&dynamics_matrix_[first_entry_[tree]], dofs(tree), dofs(tree));
    for (size_t i = 0; i < dof.size(); ++i) {
      const int row = trees.velocity[dof[i]] - first_velocity_[tree];
      if (trees.velocity[dof[i]] < 0) continue;
      for (size_t j = 0; j <= i; ++j) {
        if (trees.velocity[dof[j]] < 0) continue;
        const int column = trees.velocity[dof[j]] - first_velocity_[tree];
        const double mass = J.col(i).dot(momentum_.col(j));
        A(row, column) += mass;
        if (row != column) A(column, row) += mass;
      }
    }
  }
}

void Trees::AddJacobian(const SkeletonTrees& trees, const BodyNode& body,
                        const Eigen::Matrix<double, 3, 6>& S, double* block) const {
  const int tree = trees.tree[body.getTreeIndex()];
  const ::dart::math::Jacobian& J = body.getJacobian();
  const std::vector<size_t>& dof = body.getDependentGenCoordIndices();
  Eigen::Map<Matrix> columns(block, 3, dofs(tree));
  for (size_t j = 0; j < dof.size(); ++j) {
    const int velocity = trees.velocity[dof[j]];
    if (velocity >= 0) columns.col(velocity - first_velocity_[tree]) += S * J.col(j);
  }
}

Eigen::VectorXd Trees::Impulse(int tree, const Eigen::VectorXd& dv) const {
  const int n = dofs(tree);
  const Eigen::Map<const Matrix> A(&dynamics_matrix_[first_entry_[tree]], n, n);
  const Eigen::Map<const Eigen::VectorXd> implicit(&implicit_forces_[first_velocity_[tree]], n);
  return A * dv - implicit.cwiseProduct(dv);
}

sap_trees Trees::trees() const {
  const auto view = [](const std::vector<double>& array) {
    return sap_doubles{array.data(), static_cast<int64_t>(array.size())};
  };
  sap_trees trees{};
  trees.struct_size = sizeof trees;
  trees.dofs = {dofs_.data(), num_trees()};
  trees.dynamics_matrix = view(dynamics_matrix_);
  trees.free_motion_velocity = view(v_star_);
  trees.guess_velocity = view(guess_.empty() ? v_0_ : guess_);
  trees.initial_velocity = view(v_0_);
  return trees;
}

}  // namespace sap_islands::dart
