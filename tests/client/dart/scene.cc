#include "tests/client/dart/scene.h"

#include <algorithm>
#include <dart/collision/CollisionObject.hpp>
#include <dart/collision/ode/OdeCollisionDetector.hpp>

namespace sap_islands::dart {

using ::dart::dynamics::BoxShape;
using ::dart::dynamics::CollisionAspect;
using ::dart::dynamics::DynamicsAspect;
using ::dart::dynamics::FreeJoint;
using ::dart::dynamics::Inertia;
using ::dart::dynamics::ShapePtr;
using ::dart::dynamics::Skeleton;
using ::dart::dynamics::SkeletonPtr;
using ::dart::dynamics::SphereShape;
using ::dart::dynamics::VisualAspect;
using Eigen::Vector3d;

Scene::Scene(double time_step, const Options& options)
    : world_(::dart::simulation::World::create("scene")) {
  world_->setTimeStep(time_step);
  world_->setGravity({0, 0, -kGravity});
  world_->getConstraintSolver()->setCollisionDetector(
      ::dart::collision::OdeCollisionDetector::create());
  world_->setConstraintSolver(std::make_unique<SapConstraintSolver>(options));
}

SapConstraintSolver& Scene::solver() const {
  return dynamic_cast<SapConstraintSolver&>(*world_->getConstraintSolver());
}

SkeletonPtr Scene::AddGround(double friction) {
  const auto ground =
      AddBody(std::make_shared<BoxShape>(Vector3d(40, 40, 1)), 1, {0, 0, -0.5}, friction);
  ground->setMobile(false);
  ground->setName("ground");
  return ground;
}

SkeletonPtr Scene::AddBox(double mass, const Vector3d& size, const Vector3d& position,
                          double friction) {
  return AddBody(std::make_shared<BoxShape>(size), mass, position, friction);
}

SkeletonPtr Scene::AddSphere(double mass, double radius, const Vector3d& position,
                             double friction) {
  return AddBody(std::make_shared<SphereShape>(radius), mass, position, friction);
}

SkeletonPtr Scene::AddBody(const ShapePtr& shape, double mass, const Vector3d& position,
                           double friction) {
  auto skeleton = Skeleton::create("body " + std::to_string(world_->getNumSkeletons()));
  auto [joint, body] = skeleton->createJointAndBodyNodePair<FreeJoint>();
  body->createShapeNodeWith<VisualAspect, CollisionAspect, DynamicsAspect>(shape);
  body->setInertia(Inertia(mass, Vector3d::Zero(), shape->computeInertia(mass)));
  Eigen::Isometry3d pose = Eigen::Isometry3d::Identity();
  pose.translation() = position;
  joint->setTransform(pose);
  world_->addSkeleton(skeleton);
  Surface(skeleton).setFrictionCoeff(friction);
  return skeleton;
}

void Scene::Run(double seconds) {
  const int steps = static_cast<int>(std::lround(seconds / world_->getTimeStep()));
  for (int i = 0; i < steps; ++i) world_->step();
}

Vector3d Scene::ContactForceOn(const Skeleton& skeleton) const {
  Vector3d force = Vector3d::Zero();
  const auto belongs = [&](const ::dart::collision::CollisionObject* object) {
    return object->getShapeFrame()->asShapeNode()->getSkeleton().get() == &skeleton;
  };
  for (const auto& contact : world_->getLastCollisionResult().getContacts()) {
    if (belongs(contact.collisionObject1)) force += contact.force;
    if (belongs(contact.collisionObject2)) force -= contact.force;
  }
  return force;
}

double Scene::DeepestPenetration() const {
  double depth = 0;
  for (const auto& contact : world_->getLastCollisionResult().getContacts()) {
    depth = std::max(depth, contact.penetrationDepth);
  }
  return depth;
}

DynamicsAspect& Surface(const SkeletonPtr& skeleton) {
  return *skeleton->getBodyNode(0)->getShapeNodesWith<DynamicsAspect>()[0]->getDynamicsAspect();
}

void SetVelocity(const SkeletonPtr& body, const Vector3d& velocity) {
  auto* joint = dynamic_cast<FreeJoint*>(body->getJoint(0));
  joint->setLinearVelocity(velocity);
}

}  // namespace sap_islands::dart
