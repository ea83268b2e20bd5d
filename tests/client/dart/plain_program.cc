// A program of DART that knows nothing of SAP: prints how far a box slides along a diagonal.
#include <cmath>
#include <cstdio>
#include <dart/collision/ode/OdeCollisionDetector.hpp>
#include <dart/constraint/ConstraintSolver.hpp>
#include <dart/dynamics/BoxShape.hpp>
#include <dart/dynamics/FreeJoint.hpp>
#include <dart/dynamics/Skeleton.hpp>
#include <dart/simulation/World.hpp>

namespace {

dart::dynamics::SkeletonPtr MakeBox(const char* name, const Eigen::Vector3d& size, double z) {
  auto skeleton = dart::dynamics::Skeleton::create(name);
  auto [joint, body] = skeleton->createJointAndBodyNodePair<dart::dynamics::FreeJoint>();
  const auto shape = std::make_shared<dart::dynamics::BoxShape>(size);
  auto* node =
      body->createShapeNodeWith<dart::dynamics::CollisionAspect, dart::dynamics::DynamicsAspect>(
          shape);
  node->getDynamicsAspect()->setFrictionCoeff(0.4);
  body->setInertia(dart::dynamics::Inertia(2, Eigen::Vector3d::Zero(), shape->computeInertia(2)));
  joint->setPosition(5, z);
  return skeleton;
}

}  // namespace

int main() {
  const auto world = dart::simulation::World::create();
  world->setGravity({0, 0, -9.81});
  world->getConstraintSolver()->setCollisionDetector(
      dart::collision::OdeCollisionDetector::create());
  world->addSkeleton(MakeBox("ground", {40, 40, 1}, -0.5));
  world->getSkeleton("ground")->setMobile(false);
  const auto box = MakeBox("box", {0.5, 0.5, 0.1}, 0.05);
  world->addSkeleton(box);
  box->setVelocity(3, std::sqrt(2.0));
  box->setVelocity(4, std::sqrt(2.0));
  for (int step = 0; step < 1500; ++step) world->step();
  std::printf("%.6f\n", box->getPositions().tail<3>().head<2>().norm());
}
