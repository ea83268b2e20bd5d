// The only file that includes FCL. It is compiled for the instruction set that the library itself
// was built for (see CMakeLists.txt): FCL's classes hold Eigen transforms, whose alignment, and
// with it the layout of the classes, depends on it.
#include "client/cpp/simulation/collision.h"

#include <fcl/broadphase/broadphase_dynamic_AABB_tree.h>
#include <fcl/geometry/shape/box.h>
#include <fcl/geometry/shape/sphere.h>
#include <fcl/narrowphase/collision.h>

#include <algorithm>

#include "client/cpp/simulation/box_manifold.h"

namespace sap::simulation {
namespace {

struct BodyPair {
  int a;
  int b;  // > a

  friend auto operator<=>(const BodyPair&, const BodyPair&) = default;
};

// Half sides of the bounding box of a body in world axes.
Vector3d BoundingHalfExtent(const Shape& shape, const Matrix3d& rotation) {
  if (shape.kind == ShapeKind::kSphere) return shape.half_extent;
  return rotation.cwiseAbs() * shape.half_extent;
}

void AddPlaneContacts(const Body& body, const Matrix3d& rotation, int index, const Plane& plane,
                      ContactSet* contacts) {
  const double height = plane.normal.dot(body.position) - plane.offset;
  if (height > body.shape.bounding_radius()) return;
  const auto add = [&](const Vector3d& lowest, double phi0) {
    contacts->Add(index, -1, lowest - 0.5 * phi0 * plane.normal, plane.normal, phi0);
  };
  if (body.shape.kind == ShapeKind::kSphere) {
    add(body.position - body.shape.radius() * plane.normal, height - body.shape.radius());
    return;
  }
  for (int corner = 0; corner < 8; ++corner) {
    const Vector3d sign((corner & 1) ? 1 : -1, (corner & 2) ? 1 : -1, (corner & 4) ? 1 : -1);
    const Vector3d arm = rotation * sign.cwiseProduct(body.shape.half_extent);
    const double phi0 = height + plane.normal.dot(arm);
    if (phi0 <= 0) add(body.position + arm, phi0);
  }
}

}  // namespace

void ContactSet::Clear() {
  body_a.clear();
  body_b.clear();
  point.clear();
  normal.clear();
  signed_distance.clear();
}

void ContactSet::Add(int a, int b, const Vector3d& position, const Vector3d& unit_normal,
                     double phi0) {
  body_a.push_back(a);
  body_b.push_back(b);
  point.insert(point.end(), position.data(), position.data() + 3);
  normal.insert(normal.end(), unit_normal.data(), unit_normal.data() + 3);
  signed_distance.push_back(phi0);
}

double ContactSet::LargestPenetration() const {
  double largest = 0;
  for (const double phi0 : signed_distance) largest = std::max(largest, -phi0);
  return largest;
}

struct CollisionDetector::Impl {
  // What the tree holds of a body: its bounding box in world axes as a box that never turns. FCL
  // would bound a turned shape by the cube around its bounding sphere, five times the volume.
  struct Bound {
    std::shared_ptr<fcl::Boxd> box;
    std::unique_ptr<fcl::CollisionObjectd> object;
  };

  std::vector<Plane> planes;
  std::vector<std::unique_ptr<fcl::CollisionGeometryd>> shapes;
  std::vector<Bound> bounds;
  fcl::DynamicAABBTreeCollisionManagerd tree;
  // Scratch of a call.
  std::vector<Matrix3d> rotations;
  std::vector<BodyPair> pairs;
  std::span<const Body> bodies;

  explicit Impl(const Scene& scene) : planes(scene.planes) {
    for (const Body& body : scene.bodies) {
      const Vector3d side = 2 * body.shape.half_extent;
      if (body.shape.kind == ShapeKind::kSphere) {
        shapes.push_back(std::make_unique<fcl::Sphered>(body.shape.radius()));
      } else {
        shapes.push_back(std::make_unique<fcl::Boxd>(side));
      }
      Bound bound{std::make_shared<fcl::Boxd>(side), nullptr};
      bound.object = std::make_unique<fcl::CollisionObjectd>(bound.box);
      bounds.push_back(std::move(bound));
    }
    rotations.resize(scene.bodies.size());
    UpdateBounds(scene.bodies);
    std::vector<fcl::CollisionObjectd*> objects;
    for (const Bound& bound : bounds) objects.push_back(bound.object.get());
    tree.registerObjects(objects);
    tree.setup();
  }

  void UpdateBounds(std::span<const Body> moved) {
    for (size_t i = 0; i < moved.size(); ++i) {
      rotations[i] = moved[i].rotation();
      Bound& bound = bounds[i];
      bound.box->side = 2 * BoundingHalfExtent(moved[i].shape, rotations[i]);
      bound.box->computeLocalAABB();
      bound.object->setTranslation(moved[i].position);
      bound.object->computeAABB();
      bound.object->setUserData(reinterpret_cast<void*>(i));
    }
  }

  // Called by FCL for every two objects whose bounds overlap; false: go on.
  static bool CollectPair(fcl::CollisionObjectd* first, fcl::CollisionObjectd* second,
                          void* context) {
    Impl& self = *static_cast<Impl*>(context);
    const int i = static_cast<int>(reinterpret_cast<intptr_t>(first->getUserData()));
    const int j = static_cast<int>(reinterpret_cast<intptr_t>(second->getUserData()));
    const Body& a = self.bodies[i];
    const Body& b = self.bodies[j];
    const double reach = a.shape.bounding_radius() + b.shape.bounding_radius();
    if ((a.position - b.position).squaredNorm() <= reach * reach) {
      self.pairs.push_back({std::min(i, j), std::max(i, j)});
    }
    return false;
  }

  fcl::Transform3d Pose(int i) const {
    fcl::Transform3d pose;
    pose.linear() = rotations[i];
    pose.translation() = bodies[i].position;
    return pose;
  }

  void AddPairContacts(const BodyPair& pair, ContactSet* contacts) const {
    const Body& a = bodies[pair.a];
    const Body& b = bodies[pair.b];
    const fcl::CollisionRequestd request(1, true);
    fcl::CollisionResultd result;
    // FCL's normal points from its first object to its second.
    if (fcl::collide(shapes[pair.b].get(), Pose(pair.b), shapes[pair.a].get(), Pose(pair.a),
                     request, result) == 0) {
      return;
    }
    const fcl::Contactd& contact = result.getContact(0);
    if (a.shape.kind == ShapeKind::kSphere || b.shape.kind == ShapeKind::kSphere) {
      contacts->Add(pair.a, pair.b, contact.pos, contact.normal, -contact.penetration_depth);
      return;
    }
    const BoxManifold manifold =
        FindBoxManifold({a.position, rotations[pair.a], a.shape.half_extent},
                        {b.position, rotations[pair.b], b.shape.half_extent}, contact.normal,
                        {contact.pos, -contact.penetration_depth});
    for (int i = 0; i < manifold.count; ++i) {
      contacts->Add(pair.a, pair.b, manifold.points[i].position, manifold.normal,
                    manifold.points[i].signed_distance);
    }
  }
};

CollisionDetector::CollisionDetector(const Scene& scene) : impl_(std::make_unique<Impl>(scene)) {}
CollisionDetector::~CollisionDetector() = default;
CollisionDetector::CollisionDetector(CollisionDetector&&) noexcept = default;
CollisionDetector& CollisionDetector::operator=(CollisionDetector&&) noexcept = default;

void CollisionDetector::FindContacts(std::span<const Body> bodies, ContactSet* contacts) {
  contacts->Clear();
  impl_->bodies = bodies;
  impl_->UpdateBounds(bodies);
  impl_->tree.update();
  impl_->pairs.clear();
  impl_->tree.collide(impl_.get(), &Impl::CollectPair);
  std::sort(impl_->pairs.begin(), impl_->pairs.end());
  auto pair = impl_->pairs.begin();
  for (int a = 0; a < static_cast<int>(bodies.size()); ++a) {
    for (const Plane& plane : impl_->planes) {
      AddPlaneContacts(bodies[a], impl_->rotations[a], a, plane, contacts);
    }
    for (; pair != impl_->pairs.end() && pair->a == a; ++pair) {
      impl_->AddPairContacts(*pair, contacts);
    }
  }
}

}  // namespace sap::simulation
