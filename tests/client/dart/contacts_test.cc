// Contacts of DART under SAP, against the laws of Newton and Coulomb.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

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

// Gravity is inclined in the place of the ground.
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

TEST(DartContactsTest, AContactWithSlipMovesUnderLoadWithItsCompliance) {
  const double compliance = 0.02, load = 5;  // m/(s N), N
  Scene scene;
  scene.AddGround(1);
  const SkeletonPtr box = scene.AddBox(2, {0.4, 0.4, 0.1}, {0, 0, 0.05}, 1);
  Surface(box).setPrimarySlipCompliance(compliance);
  Surface(box).setSecondarySlipCompliance(compliance);
  for (int i = 0; i < 2000; ++i) {
    // At the height of the ground, so that all corners keep their load.
    box->getBodyNode(0)->addExtForce({load, 0, 0}, {0, 0, -0.05}, false, true);
    scene.world().step();
  }
  EXPECT_NEAR(VelocityOf(box).x(), compliance * load, 1e-4);
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
