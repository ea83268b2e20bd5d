// Worlds of DART for the tests: a ground and bodies of simple shapes, solved by SAP, with contacts
// found by the detector of ODE.
#pragma once

#include <sap_islands/dart.h>

#include <dart/dynamics/BoxShape.hpp>
#include <dart/dynamics/FreeJoint.hpp>
#include <dart/dynamics/PrismaticJoint.hpp>
#include <dart/dynamics/RevoluteJoint.hpp>
#include <dart/dynamics/Skeleton.hpp>
#include <dart/dynamics/SoftBodyNode.hpp>
#include <dart/dynamics/SphereShape.hpp>
#include <dart/dynamics/WeldJoint.hpp>
#include <dart/simulation/World.hpp>
#include <string>

namespace sap_islands::dart {

inline constexpr double kGravity = 9.81;

class Scene {
 public:
  explicit Scene(double time_step = 1e-3, const Options& options = Options());

  // A plane, whose surface has the coefficient of friction; it is as wide as the detector needs.
  ::dart::dynamics::SkeletonPtr AddGround(double friction);
  // A free box at a position.
  ::dart::dynamics::SkeletonPtr AddBox(double mass, const Eigen::Vector3d& size,
                                       const Eigen::Vector3d& position, double friction = 1);
  ::dart::dynamics::SkeletonPtr AddSphere(double mass, double radius,
                                          const Eigen::Vector3d& position, double friction = 1);
  // A body on a joint with the world, without a shape that collides. The joint is at the origin.
  template <typename Joint>
  ::dart::dynamics::SkeletonPtr AddOnJoint(double mass, const Eigen::Vector3d& inertia,
                                           const Eigen::Vector3d& center_of_mass,
                                           const typename Joint::Properties& joint);

  void Run(double seconds);
  Report report() const { return solver().lastReport(); }
  ::dart::simulation::World& world() { return *world_; }
  SapConstraintSolver& solver() const;
  // Sum of the contact forces that act on the bodies of the skeleton.
  Eigen::Vector3d ContactForceOn(const ::dart::dynamics::Skeleton& skeleton) const;
  double DeepestPenetration() const;

 private:
  ::dart::dynamics::SkeletonPtr AddBody(const ::dart::dynamics::ShapePtr& shape, double mass,
                                        const Eigen::Vector3d& position, double friction);
  ::dart::simulation::WorldPtr world_;
};

// Friction, restitution and slip of the only shape of a skeleton.
::dart::dynamics::DynamicsAspect& Surface(const ::dart::dynamics::SkeletonPtr& skeleton);

inline Eigen::Vector3d PositionOf(const ::dart::dynamics::SkeletonPtr& body) {
  return body->getBodyNode(0)->getWorldTransform().translation();
}
inline Eigen::Vector3d VelocityOf(const ::dart::dynamics::SkeletonPtr& body) {
  return body->getBodyNode(0)->getLinearVelocity();
}
// Sets the velocity of a free body that does not turn.
void SetVelocity(const ::dart::dynamics::SkeletonPtr& body, const Eigen::Vector3d& velocity);

template <typename Joint>
::dart::dynamics::SkeletonPtr Scene::AddOnJoint(double mass, const Eigen::Vector3d& inertia,
                                                const Eigen::Vector3d& center_of_mass,
                                                const typename Joint::Properties& joint) {
  auto skeleton =
      ::dart::dynamics::Skeleton::create("joint " + std::to_string(world_->getNumSkeletons()));
  ::dart::dynamics::BodyNode::Properties body;
  body.mInertia = ::dart::dynamics::Inertia(mass, center_of_mass, inertia.asDiagonal());
  skeleton->createJointAndBodyNodePair<Joint>(nullptr, joint, body);
  world_->addSkeleton(skeleton);
  return skeleton;
}

}  // namespace sap_islands::dart
