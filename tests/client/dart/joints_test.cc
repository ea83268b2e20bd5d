// Joints, motors, welds and constraints of users under SAP, against the laws of mechanics.
#include <gtest/gtest.h>

#include <cmath>
#include <dart/constraint/BallJointConstraint.hpp>
#include <dart/constraint/WeldJointConstraint.hpp>

#include "tests/client/dart/scene.h"

namespace sap_islands::dart {
namespace {

using ::dart::dynamics::BodyNode;
using ::dart::dynamics::BoxShape;
using ::dart::dynamics::CollisionAspect;
using ::dart::dynamics::DegreeOfFreedom;
using ::dart::dynamics::DynamicsAspect;
using ::dart::dynamics::Joint;
using ::dart::dynamics::PrismaticJoint;
using ::dart::dynamics::RevoluteJoint;
using ::dart::dynamics::SkeletonPtr;
using Eigen::Vector3d;

const Vector3d kInertia(0.1, 0.1, 0.1);

// A mass of 2 kg that moves along x without gravity, 0.1 kg m^2 being idle.
SkeletonPtr AddSlider(Scene* scene) {
  PrismaticJoint::Properties joint;
  joint.mAxis = Vector3d::UnitX();
  return scene->AddOnJoint<PrismaticJoint>(2, kInertia, Vector3d::Zero(), joint);
}

// 2 kg at 0.5 m from an axis along y: hangs along -z at angle 0.
constexpr double kPendulum = 2 * 0.5 * 0.5 + 1e-3;  // its inertia about the axis [kg m^2]
SkeletonPtr AddPendulum(Scene* scene) {
  RevoluteJoint::Properties joint;
  joint.mAxis = Vector3d::UnitY();
  return scene->AddOnJoint<RevoluteJoint>(2, Vector3d(1e-3, 1e-3, 1e-3), {0, 0, -0.5}, joint);
}

TEST(DartJointsTest, ALimitHoldsAgainstGravityAndAMotor) {
  Scene scene;
  const SkeletonPtr pendulum = AddPendulum(&scene);
  Joint* joint = pendulum->getJoint(0);
  joint->setLimitEnforcement(true);
  joint->setPositionUpperLimit(0, 0.5);
  double largest = 0;
  for (int i = 0; i < 2000; ++i) {
    pendulum->setForce(0, 50);  // far more than its weight takes
    scene.world().step();
    largest = std::max(largest, pendulum->getPosition(0));
  }
  EXPECT_LT(largest, 0.5 + 1e-3);
  EXPECT_NEAR(pendulum->getPosition(0), 0.5, 1e-3);
  EXPECT_NEAR(pendulum->getVelocity(0), 0, 1e-4);
}

TEST(DartJointsTest, AContactCannotDriveAJointThroughItsLimit) {
  Scene scene;
  // A plate on a vertical slider whose lower limit is at 0, and 50 kg that fall on it.
  PrismaticJoint::Properties properties;
  properties.mAxis = Vector3d::UnitZ();
  const SkeletonPtr plate =
      scene.AddOnJoint<PrismaticJoint>(0.5, kInertia, Vector3d::Zero(), properties);
  plate->getBodyNode(0)->createShapeNodeWith<CollisionAspect, DynamicsAspect>(
      std::make_shared<BoxShape>(Vector3d(1, 1, 0.1)));
  plate->getJoint(0)->setLimitEnforcement(true);
  plate->getJoint(0)->setPositionLowerLimit(0, 0);
  const SkeletonPtr weight = scene.AddBox(50, {0.2, 0.2, 0.2}, {0, 0, 0.35});
  double lowest = 0;
  for (int i = 0; i < 1000; ++i) {
    scene.world().step();
    lowest = std::min(lowest, plate->getPosition(0));
  }
  EXPECT_GT(lowest, -1e-4);
  EXPECT_NEAR(PositionOf(weight).z(), 0.15, 2e-3);
}

TEST(DartJointsTest, ASpeedLimitHolds) {
  Scene scene;
  const SkeletonPtr slider = AddSlider(&scene);
  slider->getJoint(0)->setLimitEnforcement(true);
  slider->getJoint(0)->setVelocityUpperLimit(0, 0.3);
  for (int i = 0; i < 1000; ++i) {
    slider->setForce(0, 10);
    scene.world().step();
  }
  EXPECT_NEAR(slider->getVelocity(0), 0.3, 1e-4);
}

TEST(DartJointsTest, AServoReachesItsSpeedWithNoMoreThanItsForce) {
  Scene scene;
  const SkeletonPtr slider = AddSlider(&scene);
  Joint* joint = slider->getJoint(0);
  joint->setActuatorType(Joint::SERVO);
  joint->setForceLowerLimit(0, -4);
  joint->setForceUpperLimit(0, 4);
  const auto step = [&] {
    joint->setCommand(0, 1.0);
    scene.world().step();
  };
  for (int i = 0; i < 100; ++i) step();
  EXPECT_NEAR(slider->getVelocity(0), 4.0 / 2 * 0.1, 1e-9);  // F t / m
  for (int i = 0; i < 900; ++i) step();
  EXPECT_NEAR(slider->getVelocity(0), 1, 1e-6);
}

TEST(DartJointsTest, AMimicJointFollowsWithItsRatio) {
  Scene scene;
  scene.world().setGravity(Vector3d::Zero());
  PrismaticJoint::Properties joint;
  joint.mAxis = Vector3d::UnitX();
  const SkeletonPtr gripper =
      scene.AddOnJoint<PrismaticJoint>(1, kInertia, Vector3d::Zero(), joint);
  joint.mName = "follower";
  const BodyNode::Properties body(BodyNode::AspectProperties("finger"));
  auto [follower, finger] =
      gripper->createJointAndBodyNodePair<PrismaticJoint>(nullptr, joint, body);
  follower->setActuatorType(Joint::MIMIC);
  follower->setMimicJoint(gripper->getJoint(0), -2, 0.1);
  for (int i = 0; i < 1000; ++i) {
    gripper->setForce(0, std::sin(0.01 * i));
    scene.world().step();
  }
  const double moved = gripper->getPosition(0);
  EXPECT_GT(std::abs(moved), 0.01);
  // It follows the position of the step before.
  EXPECT_NEAR(gripper->getPosition(1), -2 * moved + 0.1,
              2.1 * std::abs(gripper->getVelocity(0)) * 1e-3 + 1e-6);
}

TEST(DartJointsTest, JointFrictionStopsAFlywheelInItsTimeAndThenHolds) {
  Scene scene;
  RevoluteJoint::Properties joint;
  joint.mAxis = Vector3d::UnitZ();
  const SkeletonPtr wheel = scene.AddOnJoint<RevoluteJoint>(1, kInertia, Vector3d::Zero(), joint);
  wheel->getJoint(0)->setCoulombFriction(0, 0.25);
  wheel->setVelocity(0, 5);
  scene.Run(1);
  EXPECT_NEAR(wheel->getVelocity(0), 5 - 0.25 / 0.1 * 1, 1e-3);  // w_0 - f t / I
  scene.Run(2);
  EXPECT_NEAR(wheel->getVelocity(0), 0, 1e-6);
  for (int i = 0; i < 1000; ++i) {
    wheel->setForce(0, 0.2);  // less than its friction
    scene.world().step();
  }
  EXPECT_LT(std::abs(wheel->getVelocity(0)), 1e-3 * 0.2 / 0.1 * 1e-3 * 2);
}

TEST(DartJointsTest, AJointOfInfiniteFrictionIsLocked) {
  for (const double servo : {0.0, 1e2, 1e5}) {
    Scene scene;
    const SkeletonPtr pendulum = AddPendulum(&scene);
    Joint* joint = pendulum->getJoint(0);
    pendulum->setPosition(0, 1);
    pendulum->setVelocity(0, 3);
    joint->setCoulombFriction(0, INFINITY);
    if (servo > 0) {
      joint->setActuatorType(Joint::SERVO);
      joint->setForceLowerLimit(0, -servo);
      joint->setForceUpperLimit(0, servo);
    }
    for (int i = 0; i < 1000; ++i) {
      if (servo > 0) joint->setCommand(0, 1);
      scene.world().step();
      ASSERT_TRUE(scene.report().solved);
    }
    // A millionth of what gravity and the servo would make in a step; R is a thousandth of that.
    const double torque = 2 * kGravity * 0.5 * std::sin(1) + servo;
    EXPECT_LT(std::abs(pendulum->getVelocity(0)), 1e-6 * torque * 1e-3 / kPendulum) << servo;
    EXPECT_NEAR(pendulum->getPosition(0), 1, 1e-6);
  }
}

TEST(DartJointsTest, JointFrictionThatHoldsCreepsByTheOptionAlone) {
  for (const double slip : {1e-3, 1e-6, 1e-9}) {
    Options options;
    options.joint_slip_parameter = slip;
    Scene scene(1e-3, options);
    const SkeletonPtr pendulum = AddPendulum(&scene);
    pendulum->setPosition(0, 0.5);
    const double torque = 2 * kGravity * 0.5 * std::sin(0.5);  // below 5 N m
    pendulum->getJoint(0)->setCoulombFriction(0, 5);
    scene.Run(0.01);
    const double free = torque * 1e-3 / kPendulum;  // what a step makes of it without friction
    EXPECT_NEAR(pendulum->getVelocity(0), -slip * free, (0.01 * slip + 1e-6) * free) << slip;
  }
}

TEST(DartJointsTest, ALoadedSpringRestsAtItsForceOverItsStiffness) {
  Scene scene;
  scene.AddGround(0.5);
  // A spring carries a plate, and the plate a box: m g / k, with all of the weight.
  PrismaticJoint::Properties properties;
  properties.mAxis = Vector3d::UnitZ();
  const SkeletonPtr plate =
      scene.AddOnJoint<PrismaticJoint>(1, kInertia, Vector3d::Zero(), properties);
  plate->getBodyNode(0)->createShapeNodeWith<CollisionAspect, DynamicsAspect>(
      std::make_shared<BoxShape>(Vector3d(1, 1, 0.1)));
  plate->setPosition(0, 1);
  plate->getDof(0)->setRestPosition(1);
  plate->getDof(0)->setSpringStiffness(2000);
  plate->getDof(0)->setDampingCoefficient(200);
  scene.AddBox(9, {0.2, 0.2, 0.2}, {0, 0, 1.15});
  scene.Run(3);
  EXPECT_NEAR(plate->getPosition(0), 1 - 10 * kGravity / 2000, 1e-6);
}

TEST(DartJointsTest, FingersHoldABoxIfTheirFrictionCarriesItsWeight) {
  for (const double press : {6.0, 3.0}) {  // N of each finger; 2 mu F carries 0.5 kg from 4.9 N on
    Scene scene;
    const SkeletonPtr box = scene.AddBox(0.5, {0.1, 0.1, 0.1}, {0, 0, 0}, 0.5);
    for (const double side : {-1.0, 1.0}) {
      PrismaticJoint::Properties properties;
      properties.mAxis = Vector3d::UnitX();
      const SkeletonPtr finger = scene.AddOnJoint<PrismaticJoint>(0.1, Vector3d(1e-3, 1e-3, 1e-3),
                                                                  Vector3d::Zero(), properties);
      finger->getBodyNode(0)->createShapeNodeWith<CollisionAspect, DynamicsAspect>(
          std::make_shared<BoxShape>(Vector3d(0.02, 0.2, 0.4)));
      Surface(finger).setFrictionCoeff(0.5);
      finger->setPosition(0, side * 0.06);
      finger->setName(side < 0 ? "left" : "right");
    }
    for (int i = 0; i < 300; ++i) {
      scene.world().getSkeleton("left")->setForce(0, press);
      scene.world().getSkeleton("right")->setForce(0, -press);
      scene.world().step();
    }
    const double missing = 0.5 * kGravity - 2 * 0.5 * press;
    EXPECT_NEAR(VelocityOf(box).z(), missing > 0 ? -missing / 0.5 * 0.3 : 0, 0.02) << press << " N";
  }
}

TEST(DartJointsTest, AWeldHoldsABodyInTheAirAndABallOneAtItsPoint) {
  Scene scene;
  const SkeletonPtr welded = scene.AddBox(2, {0.2, 0.2, 0.2}, {0, 0, 2});
  scene.solver().addConstraint(
      std::make_shared<::dart::constraint::WeldJointConstraint>(welded->getBodyNode(0)));
  const SkeletonPtr hung = scene.AddBox(2, {0.2, 0.2, 0.2}, {3, 0, 2});
  const Vector3d hook(3, 0, 2.5);
  scene.solver().addConstraint(
      std::make_shared<::dart::constraint::BallJointConstraint>(hung->getBodyNode(0), hook));
  SetVelocity(hung, {0.5, 0, 0});
  scene.Run(1);
  EXPECT_LT((PositionOf(welded) - Vector3d(0, 0, 2)).norm(), 1e-4);
  const Vector3d point = hung->getBodyNode(0)->getWorldTransform() * Vector3d(0, 0, 0.5);
  EXPECT_LT((point - hook).norm(), 2e-3);
  EXPECT_EQ(scene.report().rows, 9);
}

// Two sliders of any skeletons: v_1 + ratio v_2 = 0, as gears have it.
class Gear : public ::dart::constraint::ConstraintBase {
 public:
  Gear(DegreeOfFreedom* first, DegreeOfFreedom* second, double ratio)
      : dof_{first, second}, J_{1, ratio} {
    mDim = 1;
  }
  void update() override {}
  bool isActive() const override { return true; }
  void getInformation(::dart::constraint::ConstraintInfo* info) override {
    info->b[0] = -J_[0] * dof_[0]->getVelocity() - J_[1] * dof_[1]->getVelocity();
    info->lo[0] = -INFINITY;
    info->hi[0] = INFINITY;
    info->x[0] = 0;
  }
  void applyUnitImpulse(std::size_t) override {
    for (int i = 0; i < 2; ++i) {
      const SkeletonPtr skeleton = dof_[i]->getSkeleton();
      skeleton->clearConstraintImpulses();
      dof_[i]->setConstraintImpulse(J_[i]);
      skeleton->updateBiasImpulse(dof_[i]->getChildBodyNode());
      skeleton->updateVelocityChange();
      dof_[i]->setConstraintImpulse(0);
    }
  }
  void getVelocityChange(double* change, bool) override {
    change[0] = J_[0] * dof_[0]->getVelocityChange() + J_[1] * dof_[1]->getVelocityChange();
  }
  void excite() override { SetImpulseApplied(true); }
  void unexcite() override { SetImpulseApplied(false); }
  void applyImpulse(double* impulse) override {
    for (int i = 0; i < 2; ++i) {
      dof_[i]->setConstraintImpulse(dof_[i]->getConstraintImpulse() + J_[i] * impulse[0]);
    }
  }
  SkeletonPtr getRootSkeleton() const override { return dof_[0]->getSkeleton(); }

 private:
  void SetImpulseApplied(bool applied) {
    for (DegreeOfFreedom* dof : dof_) dof->getSkeleton()->setImpulseApplied(applied);
  }
  DegreeOfFreedom* dof_[2];
  double J_[2];
};

TEST(DartJointsTest, AConstraintOfTheUserCouplesTwoSkeletons) {
  Scene scene;
  const SkeletonPtr first = AddSlider(&scene), second = AddSlider(&scene);
  // In the other order than their skeletons have.
  scene.solver().addConstraint(std::make_shared<Gear>(second->getDof(0), first->getDof(0), 3));
  for (int i = 0; i < 1000; ++i) {
    first->setForce(0, 10);
    scene.world().step();
  }
  // At the first one both are 2 kg + 2 kg 3^2, on which 10 N act.
  EXPECT_NEAR(first->getVelocity(0), 10.0 / (2 + 2 * 9), 1e-4);
  EXPECT_NEAR(second->getVelocity(0), -3 * first->getVelocity(0), 1e-4);
  EXPECT_EQ(scene.report().rows, 1);
}

TEST(DartJointsTest, AJointThatIsMovedPushesWhatItTouches) {
  Scene scene;
  scene.AddGround(0.5);
  PrismaticJoint::Properties properties;
  properties.mAxis = Vector3d::UnitX();
  const SkeletonPtr pusher =
      scene.AddOnJoint<PrismaticJoint>(1, kInertia, Vector3d::Zero(), properties);
  // A kinematic joint carries a free one: the same tree has velocities of both kinds.
  RevoluteJoint::Properties free_joint;
  free_joint.mName = "hinge";
  auto [hinge, paddle] = pusher->createJointAndBodyNodePair<RevoluteJoint>(
      pusher->getBodyNode(0), free_joint, BodyNode::AspectProperties("paddle"));
  hinge->setAxis(Vector3d::UnitX());
  hinge->setDampingCoefficient(0, 1);
  paddle->createShapeNodeWith<CollisionAspect, DynamicsAspect>(
      std::make_shared<BoxShape>(Vector3d(0.1, 0.3, 0.3)));
  pusher->getJoint(0)->setActuatorType(Joint::VELOCITY);
  Eigen::Isometry3d offset = Eigen::Isometry3d::Identity();
  offset.translation() = Vector3d(-0.2, 0, 0.2);
  pusher->getJoint(0)->setTransformFromParentBodyNode(offset);
  const SkeletonPtr box = scene.AddBox(3, {0.2, 0.2, 0.2}, {0, 0, 0.1}, 0.5);
  for (int i = 0; i < 1500; ++i) {
    pusher->getJoint(0)->setCommand(0, 0.2);
    scene.world().step();
  }
  EXPECT_NEAR(pusher->getVelocity(0), 0.2, 1e-12);
  EXPECT_NEAR(VelocityOf(box).x(), 0.2, 5e-3);
  EXPECT_NEAR(scene.ContactForceOn(*box).z(), 3 * kGravity, 0.1);
}

}  // namespace
}  // namespace sap_islands::dart
