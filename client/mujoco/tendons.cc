#include "client/mujoco/tendons.h"

#include <algorithm>

#include "client/mujoco/actuator_outputs.h"

namespace sap::mujoco {
namespace {

// Length of a tendon beyond the range in which its spring is slack [m, rad].
double Stretch(const Fields& fields, int64_t tendon) {
  const double length = fields.ten_length[tendon];
  const double* slack = fields.tendon_lengthspring + 2 * tendon;
  return std::max(length - slack[1], 0.0) + std::min(length - slack[0], 0.0);
}

// Adds a spring, with the force `spring` at the beginning of the step, and a damper.
void AddSpringAndDamper(const Fields& fields, const Trees& trees, const MomentArms& m, double k,
                        double d, double spring, double speed, ImplicitForces* implicit) {
  if (m.dofs.empty() || (k <= 0.0 && d <= 0.0)) return;
  if (trees.InOneTree(m.dofs)) {
    implicit->AddGains(m, k, d);
    return;
  }
  const double dt = fields.timestep;
  implicit->AddRow(m, spring - d * speed, dt * (d + dt * k), spring, -kInfinity, kInfinity);
}

void AddTendon(const Fields& fields, const Trees& trees, int64_t tendon, ImplicitForces* implicit) {
  double k = 0.0;
  double d = 0.0;
  double spring = 0.0;
  if (!(fields.disableflags & mjDSBL_SPRING)) {
    const double stretch = Stretch(fields, tendon);
    k = stretch != 0.0 ? fields.tendon_stiffness[tendon] : 0.0;
    spring = -k * stretch;
  }
  if (!(fields.disableflags & mjDSBL_DAMPER)) d = fields.tendon_damping[tendon];
  AddSpringAndDamper(fields, trees, ArmsOfTendon(fields, tendon), k, d, spring,
                     fields.ten_velocity[tendon], implicit);
}

bool HasDamping(int32_t transmission) {
  return transmission == mjTRN_JOINT || transmission == mjTRN_JOINTINPARENT ||
         transmission == mjTRN_TENDON;
}

void AddActuatorDampers(const Fields& fields, const Trees& trees, ImplicitForces* implicit) {
  for (int64_t actuator = 0; actuator < fields.nactuator; ++actuator) {
    const double d = fields.actuator_damping[actuator];
    const int64_t output = OutputOf(fields, actuator);
    if (d <= 0.0 || output < 0 || !HasDamping(fields.actuator_trntype[actuator])) continue;
    AddSpringAndDamper(fields, trees, ArmsOfOutput(fields, output), 0.0, d, 0.0,
                       fields.actuator_velocity[output], implicit);
  }
}

}  // namespace

void AddTendons(const Fields& fields, const Trees& trees, ImplicitForces* implicit) {
  for (int64_t tendon = 0; tendon < fields.ntendon; ++tendon) {
    AddTendon(fields, trees, tendon, implicit);
  }
  // MuJoCo before 4 has no dampers in actuators.
  const bool has_dampers = fields.actuator_damping != nullptr;
  if (has_dampers && !(fields.disableflags & mjDSBL_DAMPER)) {
    AddActuatorDampers(fields, trees, implicit);
  }
}

}  // namespace sap::mujoco
