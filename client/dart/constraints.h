// The constraints that DART has found for one step, which are protected members of its
// ConstraintSolver.
#pragma once

#include <dart/collision/CollisionResult.hpp>
#include <dart/constraint/SmartPointer.hpp>
#include <dart/dynamics/SmartPointer.hpp>
#include <vector>

namespace sap_islands::dart {

struct Constraints {
  double time_step;
  const std::vector<::dart::dynamics::SkeletonPtr>& skeletons;
  const ::dart::collision::CollisionResult& collisions;
  // Contacts of the collisions with a normal, depth >= 0 and no soft body, in their order.
  const std::vector<::dart::constraint::ContactConstraintPtr>& contacts;
  const std::vector<::dart::constraint::SoftContactConstraintPtr>& soft_contacts;
  // Constraints that users have added.
  const std::vector<::dart::constraint::ConstraintBasePtr>& manual;
};

}  // namespace sap_islands::dart
