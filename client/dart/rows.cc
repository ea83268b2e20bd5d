#include "client/dart/rows.h"

#include <algorithm>
#include <cmath>
#include <dart/constraint/ConstraintBase.hpp>
#include <dart/dynamics/DegreeOfFreedom.hpp>
#include <utility>

namespace sap_islands::dart {

using ::dart::constraint::ConstraintBase;
using ::dart::dynamics::SkeletonPtr;

void Rows::Clear() {
  for (auto* array : {&entries_, &velocity_index_}) array->clear();
  for (auto* array :
       {&coefficient_, &target_velocity_, &force_lower_, &force_upper_, &slip_parameter_}) {
    array->clear();
  }
  joint_row_.clear();
  joint_entry_.clear();
  users_.clear();
}

void Rows::AddTarget(const Target& target) {
  target_velocity_.push_back(target.v_hat);
  force_lower_.push_back(target.force_lower);
  force_upper_.push_back(target.force_upper);
  slip_parameter_.push_back(target.slip_parameter);
}

void Rows::AddJointRow(int velocity, double coefficient, const Target& target) {
  joint_row_.push_back(size());
  joint_entry_.push_back(coefficient_.size());
  entries_.push_back(1);
  velocity_index_.push_back(velocity);
  coefficient_.push_back(coefficient);
  AddTarget(target);
}

bool Rows::AddConstraint(const Constraints& constraints, ConstraintBase* constraint, Trees* trees) {
  const size_t n = constraint->getDimension();
  std::vector<double> x(n, 0.0), w(n, 0.0), b(n, 0.0), lower(n, 0.0), upper(n, 0.0);
  std::vector<int> friction_index(n, -1);
  ::dart::constraint::ConstraintInfo info{x.data(),
                                          lower.data(),
                                          upper.data(),
                                          b.data(),
                                          w.data(),
                                          friction_index.data(),
                                          1 / constraints.time_step};
  constraint->getInformation(&info);
  for (int index : friction_index) {
    if (index != -1) return false;
  }
  constraint->excite();
  std::vector<const SkeletonTrees*> moved;
  for (const SkeletonPtr& skeleton : constraints.skeletons) {
    if (skeleton->isImpulseApplied()) moved.push_back(&trees->Add(*skeleton));
  }
  // In the order of their velocities, which rows have.
  std::sort(moved.begin(), moved.end(), [](const SkeletonTrees* a, const SkeletonTrees* b) {
    return *std::max_element(a->velocity.begin(), a->velocity.end()) <
           *std::max_element(b->velocity.begin(), b->velocity.end());
  });
  users_.push_back({constraint, size()});
  // DART has a number in place of infinity.
  const auto force = [&](double bound) {
    return std::abs(bound) < 1e30 ? bound / constraints.time_step
                                  : std::copysign(std::numeric_limits<double>::infinity(), bound);
  };
  for (size_t i = 0; i < n; ++i) {
    constraint->applyUnitImpulse(i);
    AddResponse(*trees, moved, b[i], {0, force(lower[i]), force(upper[i]), 0});
  }
  constraint->unexcite();
  return true;
}

// J' e_i = M (M^-1 J' e_i): of the velocity changes of a unit impulse, the impulse. DART's b is the
// change of velocity that the row is to make, so v_hat = b + J v*.
void Rows::AddResponse(const Trees& trees, const std::vector<const SkeletonTrees*>& moved, double b,
                       Target target) {
  const size_t first = coefficient_.size();
  target.v_hat = b;
  for (const SkeletonTrees* skeleton : moved) {
    for (size_t t = 0; t < skeleton->tree.size(); ++t) {
      const int tree = skeleton->tree[t];
      if (tree < 0) continue;
      const int first_velocity = trees.first_velocity(tree);
      Eigen::VectorXd dv(trees.dofs(tree));
      for (const auto* dof : std::as_const(*skeleton->skeleton).getTreeDofs(t)) {
        const int velocity = skeleton->velocity[dof->getIndexInSkeleton()];
        if (velocity >= 0) dv[velocity - first_velocity] = dof->getVelocityChange();
      }
      const Eigen::VectorXd impulse = trees.Impulse(tree, dv);
      for (int i = 0; i < impulse.size(); ++i) {
        if (impulse[i] == 0) continue;
        velocity_index_.push_back(first_velocity + i);
        coefficient_.push_back(impulse[i]);
        target.v_hat += impulse[i] * trees.v_star(first_velocity + i);
      }
    }
  }
  entries_.push_back(coefficient_.size() - first);
  AddTarget(target);
}

sap_rows Rows::rows() const {
  const auto view = [](const std::vector<double>& array) {
    return sap_doubles{array.data(), static_cast<int64_t>(array.size())};
  };
  sap_rows rows{};
  rows.struct_size = sizeof rows;
  rows.entries = {entries_.data(), size()};
  rows.velocity_index = {velocity_index_.data(), static_cast<int64_t>(velocity_index_.size())};
  rows.coefficient = view(coefficient_);
  rows.target_velocity = view(target_velocity_);
  rows.force_lower = view(force_lower_);
  rows.force_upper = view(force_upper_);
  rows.slip_parameter = view(slip_parameter_);
  return rows;
}

void Rows::Apply(const double* impulse, double* joint_impulse) const {
  for (size_t i = 0; i < joint_row_.size(); ++i) {
    const size_t entry = joint_entry_[i];
    joint_impulse[velocity_index_[entry]] += coefficient_[entry] * impulse[joint_row_[i]];
  }
  for (const UserConstraint& user : users_) {
    const int n = static_cast<int>(user.constraint->getDimension());
    std::vector<double> own(impulse + user.first_row, impulse + user.first_row + n);
    user.constraint->applyImpulse(own.data());
  }
}

}  // namespace sap_islands::dart
