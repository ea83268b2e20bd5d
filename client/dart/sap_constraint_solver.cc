#include <dart/collision/CollisionDetector.hpp>
#include <dart/constraint/ConstrainedGroup.hpp>

#include "client/dart/sap_islands/dart.h"
#include "client/dart/step_solver.h"

namespace sap_islands::dart {

SapConstraintSolver::SapConstraintSolver(const Options& options)
    : step_(std::make_unique<StepSolver>(options)) {}

SapConstraintSolver::~SapConstraintSolver() = default;

Report SapConstraintSolver::lastReport() const {
  // Without active constraints DART calls nothing here.
  return mActiveConstraints.empty() ? Report() : step_->report();
}

void SapConstraintSolver::setFromOtherConstraintSolver(const ConstraintSolver& other) {
  // DART takes detectors without const, and gives them without it only from such a solver.
  setCollisionDetector(
      std::const_pointer_cast<::dart::collision::CollisionDetector>(other.getCollisionDetector()));
  getCollisionOption() = other.getCollisionOption();
  BoxedLcpConstraintSolver::setFromOtherConstraintSolver(other);
}

// DART calls this for each of its groups. All are one problem, solved at the first.
void SapConstraintSolver::solveConstrainedGroup(::dart::constraint::ConstrainedGroup& group) {
  if (&group == &mConstrainedGroups.front()) {
    step_is_solved_ = step_->Solve({mTimeStep, mSkeletons, mCollisionResult, mContactConstraints,
                                    mSoftContactConstraints, mManualConstraints},
                                   true);
  }
  if (!step_is_solved_) BoxedLcpConstraintSolver::solveConstrainedGroup(group);
}

}  // namespace sap_islands::dart
