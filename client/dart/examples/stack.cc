// Ten boxes of 1 kg with one of 100 kg on top, in DART, for a second.
#include <sap_islands/dart.h>

#include <cstdio>
#include <dart/collision/ode/OdeCollisionDetector.hpp>
#include <dart/dynamics/BoxShape.hpp>
#include <dart/dynamics/FreeJoint.hpp>
#include <dart/dynamics/Skeleton.hpp>
#include <dart/simulation/World.hpp>

namespace {

dart::dynamics::SkeletonPtr MakeBox(int i, double mass, const Eigen::Vector3d& size, double z) {
  auto skeleton = dart::dynamics::Skeleton::create("box " + std::to_string(i));
  auto [joint, body] = skeleton->createJointAndBodyNodePair<dart::dynamics::FreeJoint>();
  const auto shape = std::make_shared<dart::dynamics::BoxShape>(size);
  body->createShapeNodeWith<dart::dynamics::CollisionAspect, dart::dynamics::DynamicsAspect>(shape);
  body->setInertia(
      dart::dynamics::Inertia(mass, Eigen::Vector3d::Zero(), shape->computeInertia(mass)));
  joint->setPosition(5, z);
  return skeleton;
}

}  // namespace

int main() {
  const auto world = dart::simulation::World::create();
  world->setGravity({0, 0, -9.81});
  world->getConstraintSolver()->setCollisionDetector(
      dart::collision::OdeCollisionDetector::create());
  auto solver = std::make_unique<sap_islands::dart::SapConstraintSolver>();
  const auto* sap = solver.get();
  world->setConstraintSolver(std::move(solver));

  world->addSkeleton(MakeBox(0, 1, {5, 5, 1}, -0.5));
  world->getSkeleton(0)->setMobile(false);
  for (int i = 1; i <= 10; ++i) {
    world->addSkeleton(MakeBox(i, i == 10 ? 100 : 1, {0.1, 0.1, 0.1}, 0.1 * i - 0.05));
  }
  for (int step = 0; step < 1000; ++step) world->step();

  const sap_islands::dart::Report report = sap->lastReport();
  std::printf("%d contacts in %d island, %s; the top is at %.4f m\n", report.contacts,
              report.islands, report.solved ? "solved" : "not solved",
              world->getSkeleton(10)->getPosition(5));
}
