// Contacts of DART under SAP, against the laws of Newton and Coulomb.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <dart/collision/fcl/FCLCollisionDetector.hpp>

#include "tests/client/dart/scene.h"

namespace sap_islands::dart {
namespace {

using ::dart::dynamics::SkeletonPtr;
using Eigen::Vector3d;
using ::testing::Lt;

TEST(DartContactsTest, ABoxRestsWithItsWeightOnTheGround) {
  Scene scene;
  const SkeletonPtr ground = scene.AddGround(0.5);
  const SkeletonPtr box = scene.AddBox(3, {0.2, 0.2, 0.2}, {0, 0, 0.1}, 0.5);
  scene.Run(1);
  EXPECT_NEAR(scene.ContactForceOn(*box).z(), 3 * kGravity, 1e-4);
  EXPECT_NEAR(scene.ContactForceOn(*ground).z(), -3 * kGravity, 1e-4);
  EXPECT_LT(scene.DeepestPenetration(), 1e-5);
  EXPECT_LT(VelocityOf(box).norm(), 1e-5);
  EXPECT_EQ(scene.report().islands, 1);
  EXPECT_EQ(scene.report().contacts, 4);
  EXPECT_TRUE(scene.report().solved);
}

// A force that friction holds: the box creeps at R_t times the impulse, in proportion to sigma.
TEST(DartContactsTest, ABoxThatIsPushedCreepsAThousandthByTheRigidOptions) {
  const auto creep = [](const Options& options) {
    Scene scene(1e-3, options);
    scene.AddGround(0.5);
    const SkeletonPtr box = scene.AddBox(3, {0.2, 0.2, 0.05}, {0, 0, 0.025}, 0.5);
    scene.Run(0.5);
    for (int i = 0; i < 100; ++i) {
      box->getBodyNode(0)->addExtForce(Vector3d(0.3 * 3 * kGravity, 0, 0));
      scene.world().step();
      EXPECT_TRUE(scene.report().solved);
    }
    return VelocityOf(box).x();
  };
  const double by_default = creep({});
  EXPECT_GT(by_default, 1e-7);
  EXPECT_NEAR(creep(Options::Rigid()), 1e-3 * by_default, 1e-4 * by_default);
}

TEST(DartContactsTest, AHundredKilogramsRestOnOneKilogramWithoutSinking) {
  Scene scene;
  scene.AddGround(0.8);
  SkeletonPtr top;
  for (int i = 0; i < 8; ++i) {
    top = scene.AddBox(i == 7 ? 100 : 1, {0.1, 0.1, 0.1}, {0, 0, 0.05 + 0.1 * i}, 0.8);
  }
  scene.Run(2);
  EXPECT_NEAR(scene.ContactForceOn(*top).z(), 100 * kGravity, 1e-2);
  EXPECT_LT(scene.DeepestPenetration(), 1e-4);
  EXPECT_NEAR(PositionOf(top).z(), 0.75, 1e-3);
  EXPECT_LT(std::hypot(PositionOf(top).x(), PositionOf(top).y()), 1e-6);
}

// Direction of the first velocity, in degrees about the vertical.
class SlidingTest : public ::testing::TestWithParam<double> {};

TEST_P(SlidingTest, ABoxSlidesHalfItsSpeedSquaredOverMuG) {
  const double mu = 0.4, speed = 2, angle = GetParam() * M_PI / 180;
  Scene scene;
  scene.AddGround(mu);
  const SkeletonPtr box = scene.AddBox(2, {0.5, 0.5, 0.1}, {0, 0, 0.05}, mu);
  SetVelocity(box, {speed * std::cos(angle), speed * std::sin(angle), 0});
  double highest = 0;
  for (int i = 0; i < 1500; ++i) {
    scene.world().step();
    highest = std::max(highest, PositionOf(box).z());
  }
  const Vector3d way = PositionOf(box);
  EXPECT_NEAR(std::hypot(way.x(), way.y()), speed * speed / (2 * mu * kGravity), 2e-3);
  EXPECT_NEAR(std::atan2(way.y(), way.x()), angle, 1e-3);
  EXPECT_LT(VelocityOf(box).norm(), 1e-4);
  EXPECT_LT(highest, 0.05 + 1e-6) << "it hops";
  EXPECT_TRUE(scene.report().settled);
}

INSTANTIATE_TEST_SUITE_P(Directions, SlidingTest, ::testing::Values(0.0, 30.0, 45.0, -120.0));

// Gravity is inclined in place of the ground.
void Incline(double angle, Scene* scene) {
  scene->world().setGravity({kGravity * std::sin(angle), 0, -kGravity * std::cos(angle)});
}

TEST(DartContactsTest, BelowTheFrictionAngleABoxStaysAndAboveItSlidesWithWhatIsLeft) {
  const double mu = 0.5;
  for (const double slope : {0.9 * mu, 1.2 * mu}) {
    const double angle = std::atan(slope);
    Scene scene;
    scene.AddGround(mu);
    const SkeletonPtr box = scene.AddBox(2, {0.4, 0.4, 0.1}, {0, 0, 0.05}, mu);
    Incline(angle, &scene);
    scene.Run(1);
    const double acceleration = std::max(0.0, kGravity * (std::sin(angle) - mu * std::cos(angle)));
    EXPECT_NEAR(VelocityOf(box).x(), acceleration, 5e-3) << "slope " << slope;
  }
}

TEST(DartContactsTest, FrictionAlongTheSecondDirectionHasItsOwnCoefficient) {
  // The first direction is x; y has a fifth of its friction. As steep as between both.
  for (const bool along_y : {false, true}) {
    Scene scene;
    const SkeletonPtr ground = scene.AddGround(1);
    const SkeletonPtr box = scene.AddBox(2, {0.4, 0.4, 0.1}, {0, 0, 0.05}, 1);
    for (const SkeletonPtr& body : {ground, box}) {
      Surface(body).setFirstFrictionDirection(Vector3d::UnitX());
      Surface(body).setFirstFrictionDirectionFrame(::dart::dynamics::Frame::World());
      Surface(body).setPrimaryFrictionCoeff(0.5);
      Surface(body).setSecondaryFrictionCoeff(0.1);
    }
    const double angle = std::atan(0.3);
    const double pull = kGravity * std::sin(angle);
    scene.world().setGravity({along_y ? 0 : pull, along_y ? pull : 0, -kGravity * std::cos(angle)});
    scene.Run(0.5);
    const double rest = kGravity * (std::sin(angle) - 0.1 * std::cos(angle)) * 0.5;
    EXPECT_NEAR(VelocityOf(box)[along_y ? 1 : 0], along_y ? rest : 0, 5e-3);
  }
}

TEST(DartContactsTest, AnImpactKeepsMomentumAndReboundsWithItsCoefficient) {
  const double e = 0.7;
  Scene scene(1e-4);
  scene.world().setGravity(Vector3d::Zero());
  const SkeletonPtr left = scene.AddSphere(1, 0.1, {-0.3, 0, 0}, 0);
  const SkeletonPtr right = scene.AddSphere(3, 0.1, {0, 0, 0}, 0);
  for (const SkeletonPtr& body : {left, right}) Surface(body).setRestitutionCoeff(std::sqrt(e));
  SetVelocity(left, {2, 0, 0});
  scene.Run(0.2);
  const double v_left = VelocityOf(left).x(), v_right = VelocityOf(right).x();
  EXPECT_NEAR(1 * v_left + 3 * v_right, 2, 1e-10);
  EXPECT_NEAR(v_right - v_left, e * 2, 0.02);
}

TEST(DartContactsTest, ABallThatIsDroppedRisesToTheSquareOfItsRestitution) {
  Scene scene(2e-4);
  Surface(scene.AddGround(0.5)).setRestitutionCoeff(1);
  const SkeletonPtr ball = scene.AddSphere(1, 0.1, {0, 0, 1.1}, 0.5);
  Surface(ball).setRestitutionCoeff(0.8);
  const double fall = std::sqrt(2 * 1.0 / kGravity);
  scene.Run(fall + 0.8 * fall);  // up to the top of the first rebound
  EXPECT_NEAR(PositionOf(ball).z() - 0.1, 0.64, 0.02);
}

// Compliances along the first and the second direction [m/(s N)], and coefficients of friction.
struct Slip {
  double slip_1, slip_2;
  double friction_1 = 1, friction_2 = 1;
};

class SlipTest : public ::testing::TestWithParam<Slip> {
 protected:
  // Velocity of a box of 2 kg under a load at the height of what carries it.
  static Vector3d VelocityUnder(const Vector3d& load, bool on_a_body_that_can_move) {
    Scene scene;
    if (on_a_body_that_can_move) {
      ::dart::dynamics::PrismaticJoint::Properties rail;
      rail.mAxis = Vector3d::UnitX();
      const SkeletonPtr plate = scene.AddOnJoint<::dart::dynamics::PrismaticJoint>(
          1e9, Vector3d::Ones(), Vector3d::Zero(), rail);
      auto* shape = plate->getBodyNode(0)
                        ->createShapeNodeWith<::dart::dynamics::CollisionAspect,
                                              ::dart::dynamics::DynamicsAspect>(
                            std::make_shared<::dart::dynamics::BoxShape>(Vector3d(40, 40, 1)));
      shape->setRelativeTranslation({0, 0, -0.5});
    } else {
      scene.AddGround(1);
    }
    const SkeletonPtr box = scene.AddBox(2, {0.4, 0.4, 0.1}, {0, 0, 0.05}, 1);
    auto& surface = Surface(box);
    surface.setFirstFrictionDirection(Vector3d::UnitX());
    surface.setFirstFrictionDirectionFrame(::dart::dynamics::Frame::World());
    surface.setPrimarySlipCompliance(GetParam().slip_1);
    surface.setSecondarySlipCompliance(GetParam().slip_2);
    surface.setPrimaryFrictionCoeff(GetParam().friction_1);
    surface.setSecondaryFrictionCoeff(GetParam().friction_2);
    for (int i = 0; i < 2000; ++i) {
      // At the height of the ground, so that all corners keep their load.
      box->getBodyNode(0)->addExtForce(load, {0, 0, -0.05}, false, true);
      scene.world().step();
    }
    EXPECT_TRUE(scene.report().solved && scene.report().settled) << scene.report().message;
    EXPECT_EQ(scene.report().islands, 1);
    return VelocityOf(box);
  }
};

TEST_P(SlipTest, ABoxMovesUnderLoadWithTheComplianceOfEachDirection) {
  const Vector3d slip(GetParam().slip_1, GetParam().slip_2, 0);
  for (const bool on_a_body_that_can_move : {false, true}) {
    for (const Vector3d& load : {Vector3d(5, 0, 0), Vector3d(0, 5, 0), Vector3d(4, -3, 0)}) {
      const Vector3d expected = slip.cwiseProduct(load);
      const Vector3d velocity = VelocityUnder(load, on_a_body_that_can_move);
      EXPECT_LT((velocity - expected).norm(), 2e-4)
          << velocity.transpose() << " instead of " << expected.transpose();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Compliances, SlipTest,
                         ::testing::Values(Slip{0.02, 0.02}, Slip{0.02, 0}, Slip{0, 0.03},
                                           Slip{0.02, 0.03}, Slip{0.03, 0.002},
                                           Slip{0.02, 0.03, 1, 0.5}, Slip{0.03, 0.01, 1, 0.5},
                                           Slip{0.02, 0.03, 0.5, 1}, Slip{0.01, 0.01, 0.6, 1},
                                           Slip{0, 0.02, 0.5, 1}));

TEST(DartContactsTest, WhatSlipsUnderLoadSlidesAboveItsFriction) {
  for (const bool along_y : {false, true}) {
    Scene scene;
    scene.AddGround(0.5);
    const SkeletonPtr box = scene.AddBox(2, {0.4, 0.4, 0.1}, {0, 0, 0.05}, 0.5);
    Surface(box).setFirstFrictionDirection(Vector3d::UnitX());
    Surface(box).setFirstFrictionDirectionFrame(::dart::dynamics::Frame::World());
    Surface(box).setPrimarySlipCompliance(0.001);
    Surface(box).setSecondarySlipCompliance(0.003);
    const double friction = 0.5 * 2 * kGravity;
    const Vector3d load = 2 * friction * Vector3d::Unit(along_y ? 1 : 0);
    for (int i = 0; i < 500; ++i) {
      box->getBodyNode(0)->addExtForce(load, {0, 0, -0.05}, false, true);
      scene.world().step();
    }
    const double sliding = friction / 2 * 0.5;
    EXPECT_NEAR(VelocityOf(box)[along_y ? 1 : 0], sliding, 0.01 * sliding);
  }
}

// Meshes have contacts with normals to all sides, whose points are close to each other.
TEST(DartContactsTest, MeshesThatOverlapDeeplyAreNotPushedApartFasterThanTheLimit) {
  for (const double friction : {0.0, 1.0}) {
    for (const Vector3d& ball : {Vector3d(0.03, 0.02, 0.3), Vector3d(0, 0, 0),
                                 Vector3d(0.05, 0.03, 0), Vector3d(0.1, 0, 0.12)}) {
      Scene scene;
      scene.world().getConstraintSolver()->setCollisionDetector(
          ::dart::collision::FCLCollisionDetector::create());
      scene.AddGround(friction);
      const SkeletonPtr bodies[] = {scene.AddBox(1, {0.24, 0.24, 0.24}, {0, 0, 0.12}, friction),
                                    scene.AddSphere(1, 0.12, ball, friction)};
      double largest = 0;
      for (int i = 0; i < 400; ++i) {
        scene.world().step();
        for (const SkeletonPtr& body : bodies) largest = std::max(largest, VelocityOf(body).norm());
      }
      // Out of the ground, and of what is pushed out of the ground.
      EXPECT_LT(largest, 2.05 * Options().max_push_out_speed)
          << "friction " << friction << ", ball at " << ball.transpose();
    }
  }
}

// No motion of the box changes the normal velocity, so the normal impulse is v_hat_n / R_n.
TEST(DartContactsTest, ABoxOnARailSlidesAlongTheGroundThatItTouches) {
  using ::dart::dynamics::PrismaticJoint;
  constexpr double kFriction = 0.5, kMass = 2, kForce = 10, kTimeStep = 1e-3;
  constexpr int kSteps = 200;
  for (const double overlap : {0.0, 1e-7}) {
    Scene scene(kTimeStep);
    scene.AddGround(kFriction);
    PrismaticJoint::Properties rail;
    rail.mAxis = Vector3d::UnitX();
    rail.mT_ParentBodyToJoint.translation() = Vector3d(0, 0, -overlap);
    const SkeletonPtr box =
        scene.AddOnJoint<PrismaticJoint>(kMass, {0.1, 0.1, 0.1}, Vector3d::Zero(), rail);
    auto* shape = box->getBodyNode(0)
                      ->createShapeNodeWith<::dart::dynamics::CollisionAspect,
                                            ::dart::dynamics::DynamicsAspect>(
                          std::make_shared<::dart::dynamics::BoxShape>(Vector3d(0.2, 0.2, 0.2)));
    shape->setRelativeTranslation({0, 0, 0.1});
    shape->getDynamicsAspect()->setFrictionCoeff(kFriction);
    for (int i = 0; i < kSteps; ++i) {
      box->setForce(0, kForce);
      scene.world().step();
    }
    EXPECT_EQ(scene.report().contacts, 4);
    const double R_n = 1 / (3 * kMass) / (4 * M_PI * M_PI);
    const double normal_impulse = 4 * overlap / (kTimeStep + 0.02) / R_n;
    const double expected = kSteps * (kForce * kTimeStep - kFriction * normal_impulse) / kMass;
    EXPECT_NEAR(box->getVelocity(0), expected, 1e-3) << overlap;
  }
}

TEST(DartContactsTest, AMovingBeltCarriesABoxAlong) {
  Scene scene;
  const SkeletonPtr belt = scene.AddBox(1, {40, 1, 0.2}, {0, 0, -0.1}, 0.6);
  auto* joint = belt->getJoint(0);
  joint->setActuatorType(::dart::dynamics::Joint::VELOCITY);
  const SkeletonPtr box = scene.AddBox(2, {0.2, 0.2, 0.2}, {0, 0, 0.1}, 0.6);
  for (int i = 0; i < 1000; ++i) {
    joint->setCommand(3, 0.5);  // along x
    scene.world().step();
  }
  EXPECT_NEAR(VelocityOf(belt).x(), 0.5, 1e-12);
  EXPECT_NEAR(VelocityOf(box).x(), 0.5, 1e-4);
  EXPECT_LT(std::abs(PositionOf(box).z() - 0.1), 1e-4);
}

TEST(DartContactsTest, IslandsAreThoseOfTheWorld) {
  Scene scene;
  scene.AddGround(0.5);
  for (int i = 0; i < 5; ++i) {
    scene.AddBox(1, {0.1, 0.1, 0.1}, {1.0 * i, 0, 0.05});
    scene.AddBox(1, {0.1, 0.1, 0.1}, {1.0 * i, 0, 0.15});
  }
  scene.Run(0.1);
  EXPECT_EQ(scene.report().islands, 5);
  EXPECT_EQ(scene.report().contacts, 40);
}

}  // namespace
}  // namespace sap_islands::dart
