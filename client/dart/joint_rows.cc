#include <algorithm>
#include <array>
#include <cmath>
#include <dart/dynamics/DegreeOfFreedom.hpp>
#include <dart/dynamics/Joint.hpp>

#include "client/dart/rows.h"

namespace sap_islands::dart {
namespace {

using ::dart::dynamics::DegreeOfFreedom;
using ::dart::dynamics::Joint;
using ::dart::dynamics::Skeleton;

// Largest speed at which a joint beyond its limit returns [rad/s, m/s].
constexpr double kLargestReturn = 10;
// R = this times w of a joint whose friction is infinite, as DART has it: a lock.
constexpr double kLock = 1e-9;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Least speed away from a limit that is at a distance of `room`: reaches it at the end of the step.
// Beyond it, half of the way back is made in a step.
double LimitSpeed(double room, double speed_limit, double dt) {
  const double to_limit = room >= 0 ? -room / dt : std::min(-room / (2 * dt), kLargestReturn);
  return std::max(to_limit, -speed_limit);
}

// One side of the limits of a joint: coefficient * v >= v_hat.
struct Limit {
  double coefficient;
  double v_hat;
};

std::array<Limit, 2> LimitsOf(const DegreeOfFreedom& dof, double dt) {
  const double q = dof.getPosition();
  return {Limit{1, LimitSpeed(q - dof.getPositionLowerLimit(), -dof.getVelocityLowerLimit(), dt)},
          Limit{-1, LimitSpeed(dof.getPositionUpperLimit() - q, dof.getVelocityUpperLimit(), dt)}};
}

bool HasLimits(const DegreeOfFreedom& dof) {
  return dof.getJoint()->areLimitsEnforced() && !dof.getJoint()->isKinematic();
}

bool BreaksLimit(const Skeleton& skeleton, double dt) {
  for (const DegreeOfFreedom* dof : skeleton.getDofs()) {
    if (!HasLimits(*dof)) continue;
    for (const Limit& limit : LimitsOf(*dof, dt)) {
      if (limit.coefficient * dof->getVelocity() < limit.v_hat) return true;
    }
  }
  return false;
}

// Speed that a motor asks for, within the limits of speed and position.
double MotorSpeed(const DegreeOfFreedom& dof, double speed, double dt) {
  speed = std::clamp(speed, dof.getVelocityLowerLimit(), dof.getVelocityUpperLimit());
  return std::clamp(speed, (dof.getPositionLowerLimit() - dof.getPosition()) / dt,
                    (dof.getPositionUpperLimit() - dof.getPosition()) / dt);
}

// Rows that act whatever the velocity is. Adds the skeleton if there are any.
void AddMotorsAndFriction(const DegreeOfFreedom& dof, double dt, const Options& options,
                          Skeleton* skeleton, Trees* trees, Rows* rows) {
  const Joint& joint = *dof.getJoint();
  const auto add = [&](const Rows::Target& target) {
    rows->AddJointRow(trees->Add(*skeleton).velocity[dof.getIndexInSkeleton()], 1, target);
  };
  const double friction = dof.getCoulombFriction();
  if (friction != 0) {
    add({0, -friction, friction, std::isinf(friction) ? kLock : options.joint_slip_parameter});
  }
  const double lower = dof.getForceLowerLimit(), upper = dof.getForceUpperLimit();
  if (joint.getActuatorType() == Joint::SERVO) {
    add({MotorSpeed(dof, dof.getCommand(), dt), lower, upper, 0});
  } else if (joint.getActuatorType() == Joint::MIMIC && joint.getMimicJoint() != nullptr) {
    const double q =
        joint.getMimicJoint()->getPosition(dof.getIndexInJoint()) * joint.getMimicMultiplier() +
        joint.getMimicOffset();
    const double speed = std::clamp((q - dof.getPosition()) / dt, dof.getVelocityLowerLimit(),
                                    dof.getVelocityUpperLimit());
    add({speed, lower, upper, 0});
  }
}

}  // namespace

void AddJointRows(const Constraints& constraints, const Options& options, Trees* trees,
                  Rows* rows) {
  const double dt = constraints.time_step;
  for (const auto& skeleton : constraints.skeletons) {
    if (!skeleton->isMobile()) continue;
    for (const DegreeOfFreedom* dof : skeleton->getDofs()) {
      if (!dof->getJoint()->isKinematic()) {
        AddMotorsAndFriction(*dof, dt, options, skeleton.get(), trees, rows);
      }
    }
    // Without another constraint nothing drives a joint into a limit that v* keeps.
    if (!trees->Has(*skeleton) && !BreaksLimit(*skeleton, dt)) continue;
    const SkeletonTrees& added = trees->Add(*skeleton);
    for (const DegreeOfFreedom* dof : skeleton->getDofs()) {
      if (!HasLimits(*dof)) continue;
      const double speed = dof->getVelocity();
      const double reach = 2 * std::abs(speed) + options.limit_reach_speed;
      for (const Limit& limit : LimitsOf(*dof, dt)) {
        if (limit.coefficient * speed - limit.v_hat > reach) continue;
        rows->AddJointRow(added.velocity[dof->getIndexInSkeleton()], limit.coefficient,
                          {limit.v_hat, 0, kInfinity, 0});
      }
    }
  }
}

}  // namespace sap_islands::dart
