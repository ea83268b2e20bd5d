#include "client/mujoco/tendons.h"

#include <algorithm>
#include <cmath>

#include "client/mujoco/actuator_outputs.h"
#include "client/mujoco/polynomial.h"

namespace sap::mujoco {
namespace {

// Length of a tendon beyond the range in which its spring is slack [m, rad].
double Stretch(const Fields& fields, int64_t tendon) {
  const double length = fields.ten_length[tendon];
  const double* slack = fields.tendon_lengthspring + 2 * tendon;
  return std::max(length - slack[1], 0.0) + std::min(length - slack[0], 0.0);
}

// A spring and a damper, linear about the beginning of the step.
struct SpringAndDamper {
  double k = 0.0;       // slope of the spring
  double d = 0.0;       // slope of the damper
  double spring = 0.0;  // forces at the beginning of the step
  double damper = 0.0;
};

void Add(const Fields& fields, const Trees& trees, const MomentArms& m, const SpringAndDamper& of,
         double speed, ImplicitForces* implicit) {
  if (m.dofs.empty() || (of.k <= 0.0 && of.d <= 0.0)) return;
  if (trees.InOneTree(m.dofs)) {
    implicit->AddGains(m, of.k, of.d);
    return;
  }
  const double dt = fields.timestep;
  const double offset = of.spring + (of.damper + of.d * speed);
  implicit->AddRow(m, of.spring + of.damper, dt * (of.d + dt * of.k), offset, -kInfinity,
                   kInfinity);
}

void AddTendon(const Fields& fields, const Trees& trees, int64_t tendon, ImplicitForces* implicit) {
  const double speed = fields.ten_velocity[tendon];
  SpringAndDamper of;
  if (!(fields.disableflags & mjDSBL_SPRING)) {
    const double stretch = Stretch(fields, tendon);
    const double k = fields.tendon_stiffness[tendon];
    const double* poly = PolynomialOf(fields.tendon_stiffnesspoly, tendon);
    of.k = stretch != 0.0 ? Slope(k, poly, stretch) : 0.0;
    of.spring = -Coefficient(k, poly, stretch) * stretch;
  }
  if (!(fields.disableflags & mjDSBL_DAMPER)) {
    const double d = fields.tendon_damping[tendon];
    const double* poly = PolynomialOf(fields.tendon_dampingpoly, tendon);
    of.d = Slope(d, poly, std::abs(speed));
    of.damper = -Coefficient(d, poly, std::abs(speed)) * speed;
  }
  Add(fields, trees, ArmsOfTendon(fields, tendon), of, speed, implicit);
}

bool HasDamping(int32_t transmission) {
  return transmission == mjTRN_JOINT || transmission == mjTRN_JOINTINPARENT ||
         transmission == mjTRN_TENDON;
}

// Speed of the joint or tendon of an actuator, by which its polynomial is, before the gear.
double SpeedBeforeGear(const Fields& fields, int64_t actuator) {
  const int32_t target = fields.actuator_trnid[2 * actuator];
  const bool is_tendon = fields.actuator_trntype[actuator] == mjTRN_TENDON;
  return is_tendon ? fields.ten_velocity[target] : fields.qvel[fields.jnt_dofadr[target]];
}

void AddActuatorDampers(const Fields& fields, const Trees& trees, ImplicitForces* implicit) {
  for (int64_t actuator = 0; actuator < fields.nactuator; ++actuator) {
    const int64_t output = OutputOf(fields, actuator);
    if (output < 0 || !HasDamping(fields.actuator_trntype[actuator])) continue;
    const double d = fields.actuator_damping[actuator];
    const double* poly = PolynomialOf(fields.actuator_dampingpoly, actuator);
    const double before_gear = std::abs(SpeedBeforeGear(fields, actuator));
    const double speed = fields.actuator_velocity[output];
    Add(fields, trees, ArmsOfOutput(fields, output),
        {.d = Slope(d, poly, before_gear), .damper = -Coefficient(d, poly, before_gear) * speed},
        speed, implicit);
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
