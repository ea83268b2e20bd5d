#include "client/mujoco/servos.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "client/mujoco/actuator_outputs.h"

namespace sap::mujoco {
namespace {

constexpr int kParameters = 10;  // length of a row of actuator_gainprm and actuator_biasprm
constexpr int kMaxGroups = 31;   // actuator groups that disableactuator has bits for

// Kinds of gain that not every version has: before, the number was the user's kind.
constexpr int32_t kGainDcMotor = 3;                        // since 3.7, as polynomials of dampers
constexpr int32_t kGainSo3 = 4;                            // since 3.11, as addresses of outputs
constexpr int32_t kGainPid = 5;                            // since 3.12
constexpr int kDcMotorPosition = 1, kDcMotorVelocity = 2;  // what its controller is given
constexpr double kLeastResistance = 1e-15;
constexpr int32_t kUnknownGain = 1000;

int32_t GainOf(const Fields& fields, int64_t actuator) {
  const int32_t kind = fields.actuator_gaintype[actuator];
  const bool is_known = kind <= mjGAIN_AFFINE || fields.actuator_outadr != nullptr ||
                        (kind == kGainDcMotor && fields.actuator_dampingpoly != nullptr);
  return is_known ? kind : kUnknownGain;
}

bool IsDisabled(const Fields& fields, int64_t actuator) {
  const int32_t group = fields.actuator_group[actuator];
  return 0 <= group && group < kMaxGroups && (fields.disableactuator >> group & 1);
}

double Clamp(double value, double lower, double upper) {
  return std::min(std::max(value, lower), upper);
}

// The servos of one step while their modes are determined.
class ServoClassifier {
 public:
  ServoClassifier(const Fields& fields, const Trees& trees, std::span<Servo> servos)
      : fields_(fields),
        trees_(trees),
        servos_(servos),
        members_(static_cast<size_t>(fields.njnt)),
        has_bad_control_(std::any_of(fields.ctrl, fields.ctrl + fields.nu, &IsBad)) {}

  void Classify();

  // Number of servos in the row of each joint.
  std::span<const int64_t> members() const { return members_; }

 private:
  Servo Make(int64_t actuator) const;
  ServoMode ModeOf(int64_t actuator) const;
  std::pair<double, double> Slopes(int64_t actuator) const;
  std::pair<double, double> SlopesOfDcMotor(int64_t actuator) const;
  std::pair<double, double> Limits(int64_t actuator) const;
  void RefineLimited(int64_t actuator);
  double ForceWithoutLimits(int64_t actuator) const;
  double Control(int64_t actuator) const;
  bool IsLimitedJoint(int64_t joint) const;
  int64_t ActuatorsOfTendon(int64_t tendon) const;
  int32_t Target(int64_t actuator) const { return fields_.actuator_trnid[2 * actuator]; }
  int64_t& Members(int64_t actuator) { return members_[static_cast<size_t>(Target(actuator))]; }

  const Fields& fields_;
  const Trees& trees_;
  std::span<Servo> servos_;
  std::vector<int64_t> members_;
  const bool has_bad_control_;  // of which MuJoCo warns, and takes all to be 0
};

void ServoClassifier::Classify() {
  const auto count = static_cast<int64_t>(servos_.size());
  for (int64_t actuator = 0; actuator < count; ++actuator) {
    Servo& servo = servos_[static_cast<size_t>(actuator)];
    servo = Make(actuator);
    if (servo.mode == ServoMode::kJointRow) ++Members(actuator);
  }
  for (int64_t actuator = 0; actuator < count; ++actuator) RefineLimited(actuator);
}

Servo ServoClassifier::Make(int64_t actuator) const {
  Servo servo;
  const int64_t output = OutputOf(fields_, actuator);
  if (output < 0) return servo;
  std::tie(servo.k_p, servo.k_v) = Slopes(actuator);
  if (servo.k_p <= 0.0 && servo.k_v <= 0.0) return servo;
  servo.mode = ModeOf(actuator);
  std::tie(servo.lower, servo.upper) = Limits(actuator);
  servo.force = fields_.actuator_force[output];
  return servo;
}

// A servo with limits is explicit where no row is exact; otherwise its force is that without them.
void ServoClassifier::RefineLimited(int64_t actuator) {
  Servo& servo = servos_[static_cast<size_t>(actuator)];
  const bool is_limited = servo.lower != -kInfinity || servo.upper != kInfinity;
  if (servo.mode == ServoMode::kExplicit || !is_limited) return;
  const bool is_shared = servo.mode == ServoMode::kJointRow && Members(actuator) > 1;
  const bool is_known = !IsDelayed(fields_, actuator) && GainOf(fields_, actuator) <= mjGAIN_AFFINE;
  const bool is_within = servo.lower < servo.force && servo.force < servo.upper;
  if ((is_shared || !is_known) && !is_within) {
    if (servo.mode == ServoMode::kJointRow) --Members(actuator);
    servo.mode = ServoMode::kExplicit;
  } else if (is_known) {
    servo.force = ForceWithoutLimits(actuator);
  }
}

ServoMode ServoClassifier::ModeOf(int64_t actuator) const {
  const int32_t kind = fields_.actuator_trntype[actuator];
  const int32_t target = Target(actuator);
  const int64_t output = OutputOf(fields_, actuator);
  const std::span<const int32_t> dofs = ArmsOfOutput(fields_, output).dofs;
  if (dofs.empty()) return ServoMode::kExplicit;
  const bool is_joint = kind == mjTRN_JOINT || kind == mjTRN_JOINTINPARENT;
  if (is_joint && IsLimitedJoint(target)) return ServoMode::kJointRow;
  for (const int32_t dof : dofs) {
    if (IsLimitedJoint(fields_.dof_jntid[dof])) return ServoMode::kExplicit;
  }
  if (kind == mjTRN_TENDON && fields_.tendon_actfrclimited[target]) {
    return ActuatorsOfTendon(target) == 1 ? ServoMode::kOwnRow : ServoMode::kExplicit;
  }
  const bool is_limited = fields_.actuator_forcelimited[output] != 0;
  return is_limited || !trees_.InOneTree(dofs) ? ServoMode::kOwnRow : ServoMode::kInA;
}

bool ServoClassifier::IsLimitedJoint(int64_t joint) const {
  const int32_t kind = fields_.jnt_type[joint];
  return fields_.jnt_actfrclimited[joint] && (kind == mjJNT_HINGE || kind == mjJNT_SLIDE);
}

int64_t ServoClassifier::ActuatorsOfTendon(int64_t tendon) const {
  int64_t count = 0;
  for (int64_t actuator = 0; actuator < fields_.nactuator; ++actuator) {
    count += fields_.actuator_trntype[actuator] == mjTRN_TENDON && Target(actuator) == tendon;
  }
  return count;
}

// k_p and k_v of an actuator, each 0 if it is not positive.
std::pair<double, double> ServoClassifier::Slopes(int64_t actuator) const {
  const int32_t gain_type = GainOf(fields_, actuator);
  const bool has_gain = gain_type == mjGAIN_AFFINE;
  const bool has_bias = fields_.actuator_biastype[actuator] == mjBIAS_AFFINE;
  if (IsDisabled(fields_, actuator)) return {0.0, 0.0};
  if (gain_type == kGainDcMotor) return SlopesOfDcMotor(actuator);
  const bool has_input = gain_type == mjGAIN_FIXED || gain_type == kGainPid;
  if (!has_gain && !(has_bias && has_input)) return {0.0, 0.0};
  double k_p = 0.0;
  double k_v = 0.0;
  if (has_bias) {  // parameters: constant, slope of length, slope of velocity
    const double* bias = fields_.actuator_biasprm + kParameters * actuator;
    k_p = -bias[1];
    k_v = -bias[2];
  }
  if (has_gain) {
    const double* gain = fields_.actuator_gainprm + kParameters * actuator;
    const double control = Control(actuator);
    k_p -= gain[1] * control;
    k_v -= gain[2] * control;
  }
  return {std::max(k_p, 0.0), std::max(k_v, 0.0)};
}

// The voltage V of the controller and the back-EMF K v drive the current, at once or, with an
// inductance, by a share of the step; LuGre's friction has a viscous part.
std::pair<double, double> ServoClassifier::SlopesOfDcMotor(int64_t actuator) const {
  const double* gain = fields_.actuator_gainprm + kParameters * actuator;
  const double* dynamics = fields_.actuator_dynprm + kParameters * actuator;
  const double resistance = std::max(gain[0], kLeastResistance);
  const double constant = gain[1];
  const auto mode = static_cast<int>(gain[8]);
  double voltage_p = 0.0;  // -dV/dl
  double voltage_v = 0.0;  // -dV/dl'
  if (mode == kDcMotorPosition) std::tie(voltage_p, voltage_v) = std::pair(gain[4], gain[6]);
  if (mode == kDcMotorVelocity) std::tie(voltage_p, voltage_v) = std::pair(gain[5], gain[4]);
  double current = constant / resistance;  // force over voltage
  const double time_constant = dynamics[0];
  if (time_constant > 0.0) current *= -std::expm1(-fields_.timestep / time_constant);
  const double friction = std::max(dynamics[6], 0.0);
  return {std::max(current * voltage_p, 0.0),
          std::max(current * (constant + voltage_v) + friction, 0.0)};
}

// Limits of the force of an actuator: its own, within those of its tendon.
std::pair<double, double> ServoClassifier::Limits(int64_t actuator) const {
  const int64_t output = OutputOf(fields_, actuator);
  double lower = -kInfinity;
  double upper = kInfinity;
  if (fields_.actuator_forcelimited[output]) {
    lower = fields_.actuator_forcerange[2 * output];
    upper = fields_.actuator_forcerange[2 * output + 1];
  }
  const int32_t tendon = Target(actuator);
  const bool is_tendon = fields_.actuator_trntype[actuator] == mjTRN_TENDON;
  if (is_tendon && fields_.tendon_actfrclimited[tendon]) {
    const double* range = fields_.tendon_actfrcrange + 2 * tendon;
    lower = Clamp(lower, range[0], range[1]);
    upper = Clamp(upper, range[0], range[1]);
  }
  return {lower, upper};
}

// Gain * input + bias, as MuJoCo has it before limits.
double ServoClassifier::ForceWithoutLimits(int64_t actuator) const {
  const int64_t output = OutputOf(fields_, actuator);
  const double length = fields_.actuator_length[output];
  const double velocity = fields_.actuator_velocity[output];
  const double* gain = fields_.actuator_gainprm + kParameters * actuator;
  double slope = gain[0];
  if (fields_.actuator_gaintype[actuator] == mjGAIN_AFFINE) {
    slope += gain[1] * length + gain[2] * velocity;
  }
  double force = slope * Control(actuator);
  if (fields_.actuator_biastype[actuator] == mjBIAS_AFFINE) {
    const double* bias = fields_.actuator_biasprm + kParameters * actuator;
    force += bias[0] + bias[1] * length + bias[2] * velocity;
  }
  return force;
}

// Input of an actuator: its last activation if it has any, otherwise its clamped control.
double ServoClassifier::Control(int64_t actuator) const {
  const int32_t activations = fields_.actuator_actnum[actuator];
  if (activations > 0) {
    const int32_t last = fields_.actuator_actadr[actuator] + activations - 1;
    double activation = fields_.act[last];
    if (fields_.actuator_actearly[actuator]) {
      activation += fields_.timestep * fields_.act_dot[last];
      const double* range = fields_.actuator_actrange + 2 * actuator;
      if (fields_.actuator_actlimited[actuator]) activation = Clamp(activation, range[0], range[1]);
    }
    return activation;
  }
  const int64_t place = ControlOf(fields_, actuator);
  const double control = has_bad_control_ ? 0.0 : fields_.ctrl[place];
  const bool is_clamped =
      fields_.actuator_ctrllimited[place] && !(fields_.disableflags & mjDSBL_CLAMPCTRL);
  const double* range = fields_.actuator_ctrlrange + 2 * place;
  return is_clamped ? Clamp(control, range[0], range[1]) : control;
}

// The row of all forces on a joint with `actuatorfrcrange`.
class JointRow {
 public:
  JointRow(const Fields& fields, std::span<const Servo> servos, int32_t joint)
      : fields_(fields), servos_(servos), joint_(joint), dof_(fields.jnt_dofadr[joint]) {}

  void Write(ImplicitForces* implicit) const;

 private:
  bool Has(size_t actuator) const;
  double OtherForces() const;
  double Arm(int64_t output) const;  // of a servo of the joint, which has one

  const Fields& fields_;
  std::span<const Servo> servos_;
  int32_t joint_;
  int32_t dof_;
};

void JointRow::Write(ImplicitForces* implicit) const {
  const double* range = fields_.jnt_actfrcrange + 2 * int64_t{joint_};
  const double dt = fields_.timestep;
  const double rest = OtherForces();
  double gain = 0.0;
  double force = rest;
  double one = 0.0;  // force at the limits of the last servo
  double other = 0.0;
  int members = 0;
  for (size_t actuator = 0; actuator < servos_.size(); ++actuator) {
    if (!Has(actuator)) continue;
    const Servo& servo = servos_[actuator];
    const int64_t output = OutputOf(fields_, static_cast<int64_t>(actuator));
    const double m = Arm(output);
    gain += m * m * dt * (servo.k_v + dt * servo.k_p);
    force += m * (servo.force + servo.k_v * fields_.actuator_velocity[output]);
    one = rest + m * servo.lower;
    other = rest + m * servo.upper;
    ++members;
  }
  double lower = range[0];
  double upper = range[1];
  if (members == 1) {  // within the limits of its only servo
    lower = Clamp(std::min(one, other), range[0], range[1]);
    upper = Clamp(std::max(one, other), range[0], range[1]);
  }
  const double unit = 1.0;
  const MomentArms m = {{&dof_, 1}, &unit};
  implicit->AddRow(m, fields_.qfrc_actuator[dof_], gain, force, lower, upper, joint_);
}

bool JointRow::Has(size_t actuator) const {
  return servos_[actuator].mode == ServoMode::kJointRow &&
         fields_.actuator_trnid[2 * actuator] == joint_;
}

double JointRow::Arm(int64_t output) const {
  return fields_.actuator_moment[fields_.moment_rowadr[output]];
}

// Force on the joint of all its actuators but those in its row, before the joint's limits.
double JointRow::OtherForces() const {
  double force = fields_.jnt_actgravcomp[joint_] ? fields_.qfrc_gravcomp[dof_] : 0.0;
  for (int64_t output = 0; output < fields_.nout; ++output) {
    const MomentArms m = ArmsOfOutput(fields_, output);
    for (size_t k = 0; k < m.dofs.size(); ++k) {
      if (m.dofs[k] == dof_) force += m.values[k] * fields_.actuator_force[output];
    }
  }
  for (size_t actuator = 0; actuator < servos_.size(); ++actuator) {
    if (!Has(actuator)) continue;
    const int64_t output = OutputOf(fields_, static_cast<int64_t>(actuator));
    force -= Arm(output) * fields_.actuator_force[output];
  }
  return force;
}

// Adds servos of orientations, of three outputs each, which their joints or trees do not limit.
void AddOrientationServos(const Fields& fields, const Trees& trees, ImplicitForces* implicit) {
  for (int64_t actuator = 0; actuator < fields.nactuator; ++actuator) {
    if (GainOf(fields, actuator) != kGainSo3 || IsDisabled(fields, actuator)) continue;
    const int64_t first = fields.actuator_outadr[actuator];
    const double* force = fields.actuator_force + first;
    const double norm = std::hypot(force[0], force[1], force[2]);
    const double limit = fields.actuator_forcerange[2 * actuator + 1];
    if (fields.actuator_forcelimited[actuator] && norm >= limit) continue;
    const double k_p = fields.actuator_gainprm[kParameters * actuator];
    const double k_v = -fields.actuator_biasprm[kParameters * actuator + 2];
    for (int64_t output = first; output < first + fields.actuator_outnum[actuator]; ++output) {
      const MomentArms m = ArmsOfOutput(fields, output);
      if (m.dofs.empty() || !trees.InOneTree(m.dofs)) continue;
      implicit->AddGains(m, std::max(k_p, 0.0), std::max(k_v, 0.0));
    }
  }
}

}  // namespace

void AddServos(const Fields& fields, const Trees& trees, std::span<Servo> servos,
               ImplicitForces* implicit) {
  std::ranges::fill(servos, Servo{});
  if (fields.disableflags & mjDSBL_ACTUATION) return;
  AddOrientationServos(fields, trees, implicit);
  ServoClassifier classifier(fields, trees, servos);
  classifier.Classify();
  const double dt = fields.timestep;
  for (size_t actuator = 0; actuator < servos.size(); ++actuator) {
    const Servo& servo = servos[actuator];
    const int64_t output = OutputOf(fields, static_cast<int64_t>(actuator));
    if (servo.mode == ServoMode::kInA) {
      implicit->AddGains(ArmsOfOutput(fields, output), servo.k_p, servo.k_v);
    } else if (servo.mode == ServoMode::kOwnRow) {
      const double offset = servo.force + servo.k_v * fields.actuator_velocity[output];
      const double gain = dt * (servo.k_v + dt * servo.k_p);
      implicit->AddRow(ArmsOfOutput(fields, output), fields.actuator_force[output], gain, offset,
                       servo.lower, servo.upper);
    }
  }
  for (size_t joint = 0; joint < classifier.members().size(); ++joint) {
    if (classifier.members()[joint] == 0) continue;
    JointRow(fields, servos, static_cast<int32_t>(joint)).Write(implicit);
  }
}

void StoreServoForces(const Fields& fields, std::span<const Servo> servos, const double* velocity,
                      std::span<const int32_t> joint, const double* row_impulse) {
  const double dt = fields.timestep;
  for (size_t actuator = 0; actuator < servos.size(); ++actuator) {
    const Servo& servo = servos[actuator];
    if (servo.mode == ServoMode::kExplicit) continue;
    const int64_t output = OutputOf(fields, static_cast<int64_t>(actuator));
    const MomentArms m = ArmsOfOutput(fields, output);
    const double speed = m.Times(velocity);
    const double change = speed - fields.actuator_velocity[output];
    const double force =
        Clamp(servo.force - dt * servo.k_p * speed - servo.k_v * change, servo.lower, servo.upper);
    for (size_t k = 0; k < m.dofs.size(); ++k) {
      fields.qfrc_actuator[m.dofs[k]] += m.values[k] * (force - fields.actuator_force[output]);
    }
    fields.actuator_force[output] = force;
  }
  for (size_t row = 0; row < joint.size(); ++row) {
    if (joint[row] < 0) continue;
    fields.qfrc_actuator[fields.jnt_dofadr[joint[row]]] = row_impulse[row] / dt;
  }
}

}  // namespace sap::mujoco
