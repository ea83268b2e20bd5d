// The only file that includes FCL. Debian compiles FCL for the baseline processor of the
// architecture. With wider vectors, classes of FCL that hold an Eigen transform have another
// layout, so that only its tree of bounding boxes, its shapes and collide() are used.
#include "client/cpp/simulation/collision.h"

#include <fcl/broadphase/detail/hierarchy_tree.h>
#include <fcl/geometry/shape/box.h>
#include <fcl/geometry/shape/sphere.h>
#include <fcl/narrowphase/collision.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "client/cpp/simulation/box_manifold.h"
#include "client/cpp/simulation/box_separation.h"

namespace sap::simulation {
namespace {

using Tree = fcl::detail::HierarchyTree<fcl::AABBd>;
using Node = fcl::detail::NodeBase<fcl::AABBd>;

template <typename... Types>
constexpr bool kLayoutWithoutWideVectors = ((alignof(Types) <= alignof(double)) && ...);
static_assert(
    kLayoutWithoutWideVectors<Tree, Node, fcl::AABBd, fcl::Boxd, fcl::Sphered,
                              fcl::CollisionRequestd, fcl::CollisionResultd, fcl::Contactd>);

// The tree of moving bodies is refitted at every call, which degrades it as bodies move; it is
// rebuilt after this many calls.
constexpr int kCallsBetweenBuilds = 20;

// Depth, as a fraction of the smaller body, up to which a direction may serve as the normal of a
// gap: a body that rests on another overlaps it by a little along that direction.
constexpr double kShallow = 0.01;

// Two bodies a < b packed into one number, for fast sorting.
using BodyPair = uint64_t;

BodyPair MakePair(uint64_t i, uint64_t j) { return i < j ? i << 32 | j : j << 32 | i; }
int First(BodyPair pair) { return static_cast<int>(pair >> 32); }
int Second(BodyPair pair) { return static_cast<int>(pair & 0xffffffff); }

bool Overlap(const fcl::AABBd& a, const fcl::AABBd& b) {
  return a.min_.x() <= b.max_.x() && b.min_.x() <= a.max_.x() && a.min_.y() <= b.max_.y() &&
         b.min_.y() <= a.max_.y() && a.min_.z() <= b.max_.z() && b.min_.z() <= a.max_.z();
}

// Pairs of leaves of one subtree, or of two, whose boxes overlap.
void CollectPairs(const Node* a, const Node* b, std::vector<BodyPair>* pairs) {
  if (!Overlap(a->bv, b->bv)) return;
  if (!a->isLeaf()) {
    CollectPairs(a->children[0], b, pairs);
    CollectPairs(a->children[1], b, pairs);
  } else if (!b->isLeaf()) {
    CollectPairs(a, b->children[0], pairs);
    CollectPairs(a, b->children[1], pairs);
  } else {
    pairs->push_back(
        MakePair(reinterpret_cast<uintptr_t>(a->data), reinterpret_cast<uintptr_t>(b->data)));
  }
}

void CollectPairs(const Node* node, std::vector<BodyPair>* pairs) {
  if (node->isLeaf()) return;
  CollectPairs(node->children[0], pairs);
  CollectPairs(node->children[1], pairs);
  CollectPairs(node->children[0], node->children[1], pairs);
}

// Half sides of the bounding box of a body in world axes.
Vector3d BoundingHalfExtent(const Shape& shape, const Matrix3d& rotation) {
  if (shape.kind == ShapeKind::kSphere) return shape.half_extent;
  return rotation.cwiseAbs() * shape.half_extent;
}

void AddPlaneContacts(const Body& body, const Matrix3d& rotation, int index, const Plane& plane,
                      double reach, ContactSet* contacts) {
  const double height = plane.normal.dot(body.position) - plane.offset;
  if (height > body.shape.bounding_radius() + reach) return;
  const auto add = [&](const Vector3d& lowest, double phi0) {
    contacts->Add(index, -1, lowest - 0.5 * std::min(0.0, phi0) * plane.normal, plane.normal, phi0);
  };
  if (body.shape.kind == ShapeKind::kSphere) {
    add(body.position - body.shape.radius() * plane.normal, height - body.shape.radius());
    return;
  }
  for (int corner = 0; corner < 8; ++corner) {
    const Vector3d sign((corner & 1) ? 1 : -1, (corner & 2) ? 1 : -1, (corner & 4) ? 1 : -1);
    const Vector3d arm = rotation * sign.cwiseProduct(body.shape.half_extent);
    const double phi0 = height + plane.normal.dot(arm);
    if (phi0 <= reach) add(body.position + arm, phi0);
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
  std::vector<Plane> planes;
  std::vector<std::unique_ptr<fcl::CollisionGeometryd>> shapes;
  std::vector<double> bounding_radii;
  // The trees own the nodes. That of resting bodies is rebuilt after half of it was inserted.
  Tree moving, still;
  std::vector<Node*> leaf_of_body;
  std::vector<uint8_t> is_still;  // in which tree each leaf is
  int calls{0};
  size_t insertions{0};  // into the tree of resting bodies since it was built
  std::vector<Matrix3d> rotations;
  // Scratch of one call.
  std::vector<BodyPair> pairs;
  std::span<const Body> bodies;
  std::span<const Motion> motions;

  explicit Impl(const Scene& scene) : planes(scene.planes) {
    for (const Body& body : scene.bodies) {
      if (body.shape.kind == ShapeKind::kSphere) {
        shapes.push_back(std::make_unique<fcl::Sphered>(body.shape.radius()));
      } else {
        shapes.push_back(std::make_unique<fcl::Boxd>(Vector3d(2 * body.shape.half_extent)));
      }
      bounding_radii.push_back(body.shape.bounding_radius());
      const uintptr_t index = leaf_of_body.size();
      leaf_of_body.push_back(
          moving.insert(fcl::AABBd(body.position), reinterpret_cast<void*>(index)));
    }
    rotations.resize(scene.bodies.size());
    is_still.resize(scene.bodies.size());
  }

  double Reach(int i) const { return motions.empty() ? 0 : motions[i].reach; }

  Vector3d DisplacementOfFirst(int index_a, int index_b) const {  // relative to the second
    if (motions.empty()) return Vector3d::Zero();
    return motions[index_a].displacement - motions[index_b].displacement;
  }

  void UpdateTrees(std::span<const uint8_t> resting) {
    for (size_t i = 0; i < bodies.size(); ++i) {
      const bool rests = !resting.empty() && resting[i] != 0;
      if (rests && is_still[i] != 0) continue;
      rotations[i] = bodies[i].rotation();
      const Vector3d half = BoundingHalfExtent(bodies[i].shape, rotations[i]) +
                            Vector3d::Constant(Reach(static_cast<int>(i)));
      const fcl::AABBd bounds(bodies[i].position - half, bodies[i].position + half);
      if (rests == (is_still[i] != 0)) {
        leaf_of_body[i]->bv = bounds;
        continue;
      }
      (rests ? moving : still).remove(leaf_of_body[i]);
      leaf_of_body[i] = (rests ? still : moving).insert(bounds, reinterpret_cast<void*>(i));
      is_still[i] = rests ? 1 : 0;
      if (rests) ++insertions;
    }
    if (calls++ % kCallsBetweenBuilds == 0) {
      moving.balanceTopdown();
    } else {
      moving.refit();
    }
    if (2 * insertions > still.size()) {
      still.balanceTopdown();
      insertions = 0;
    }
  }

  // Pairs whose boxes overlap, except those of two resting bodies.
  void FindPairs() {
    pairs.clear();
    if (moving.empty()) return;
    CollectPairs(moving.getRoot(), &pairs);
    if (!still.empty()) CollectPairs(moving.getRoot(), still.getRoot(), &pairs);
    std::sort(pairs.begin(), pairs.end());
  }

  fcl::Transform3d Pose(int i) const {
    fcl::Transform3d pose;
    pose.linear() = rotations[i];
    pose.translation() = bodies[i].position;
    return pose;
  }

  OrientedBox Box(int i) const {
    return {bodies[i].position, rotations[i], bodies[i].shape.half_extent};
  }

  double HalfWidth(int i, const Vector3d& direction) const {
    const Shape& shape = bodies[i].shape;
    if (shape.kind == ShapeKind::kSphere) return shape.radius();
    return (rotations[i].transpose() * direction).cwiseAbs().dot(shape.half_extent);
  }

  double Shallow(int index_a, int index_b) const {
    return kShallow * std::min(bodies[index_a].shape.half_extent.minCoeff(),
                               bodies[index_b].shape.half_extent.minCoeff());
  }

  static std::optional<fcl::Contactd> Collide(const fcl::CollisionGeometryd& from,
                                              const fcl::Transform3d& from_pose,
                                              const fcl::CollisionGeometryd& to,
                                              const fcl::Transform3d& to_pose) {
    const fcl::CollisionRequestd request(1, true);
    fcl::CollisionResultd result;
    if (fcl::collide(&from, from_pose, &to, to_pose, request, result) == 0) return std::nullopt;
    return result.getContact(0);
  }

  // FCL's contact of a displaced sphere, inflated by reach, with another body. Its normal points to
  // the sphere.
  std::optional<fcl::Contactd> CollideSphere(int sphere, const Vector3d& displacement, int other,
                                             double reach) const {
    const fcl::Sphered inflated(bodies[sphere].shape.radius() + reach);
    fcl::Transform3d pose = Pose(sphere);
    pose.translation() += displacement;
    return Collide(*shapes[other], Pose(other), inflated, pose);
  }

  // Normal between a sphere and a body that it does not touch yet. Two spheres: the normal where
  // they meet or are nearest within the step. Sphere and box: the normal at the end of the step,
  // for the reason given in box_separation.h, or the current one.
  Vector3d NormalOfSphereApart(int sphere, int other, const Vector3d& current, double reach) const {
    const Vector3d displacement = DisplacementOfFirst(sphere, other);
    const Vector3d between = bodies[sphere].position - bodies[other].position;
    if (bodies[other].shape.kind == ShapeKind::kSphere) {
      const double length2 = displacement.squaredNorm();
      const double nearing = -between.dot(displacement);
      if (nearing <= 0) return current;
      const double sum = bodies[sphere].shape.radius() + bodies[other].shape.radius();
      const double root2 = nearing * nearing - length2 * (between.squaredNorm() - sum * sum);
      const double time = (nearing - std::sqrt(std::max(0.0, root2))) / length2;
      return (between + std::min(time, 1.0) * displacement).normalized();
    }
    // The current normal is kept if the motion stays on its side.
    if (DistanceAlong(sphere, other, current) + current.dot(displacement) >= 0) return current;
    const auto later = CollideSphere(sphere, displacement, other, reach);
    if (later && DistanceAlong(sphere, other, later->normal) >= -Shallow(sphere, other)) {
      return later->normal;
    }
    return current;
  }

  double DistanceAlong(int index_a, int index_b, const Vector3d& normal) const {
    return normal.dot(bodies[index_a].position - bodies[index_b].position) -
           HalfWidth(index_a, normal) - HalfWidth(index_b, normal);
  }

  void AddSphereContact(int sphere, int other, double reach, ContactSet* contacts) const {
    const auto contact = CollideSphere(sphere, Vector3d::Zero(), other, reach);
    if (!contact) return;
    Vector3d normal = contact->normal;
    double phi0 = reach - contact->penetration_depth;
    if (phi0 > 0) {
      normal = NormalOfSphereApart(sphere, other, normal, reach);
      phi0 = std::max(0.0, DistanceAlong(sphere, other, normal));
    }
    const Vector3d middle =
        bodies[sphere].position - (bodies[sphere].shape.radius() + 0.5 * phi0) * normal;
    if (sphere < other) {
      AddContact(sphere, other, middle, normal, phi0, contacts);
    } else {
      AddContact(other, sphere, middle, -normal, phi0, contacts);
    }
  }

  // The contact point of a gap is placed on the surface of the smaller body: the gap may be large
  // compared with it, and elsewhere the lever arm, and so the compliance, would grow with the gap.
  void AddContact(int index_a, int index_b, const Vector3d& middle, const Vector3d& normal,
                  double phi0, ContactSet* contacts) const {
    const double size_a = bounding_radii[index_a];
    const double size_b = bounding_radii[index_b];
    const double side = size_a < size_b ? 0.5 : size_a > size_b ? -0.5 : 0;
    contacts->Add(index_a, index_b, middle + side * std::max(0.0, phi0) * normal, normal, phi0);
  }

  // The points at the end of the step, moved back by the displacement of a.
  void AddContactsOfBoxesApart(int index_a, int index_b, const Vector3d& direction, double reach,
                               ContactSet* contacts) const {
    const Vector3d displacement = DisplacementOfFirst(index_a, index_b);
    OrientedBox a = Box(index_a);
    a.center += displacement;
    const BoxManifold manifold =
        FindBoxManifold(a, Box(index_b), direction, std::nullopt, reach + displacement.norm());
    for (int i = 0; i < manifold.count; ++i) {
      const double phi0 =
          std::max(0.0, manifold.points[i].signed_distance - manifold.normal.dot(displacement));
      if (phi0 > reach) continue;
      const Vector3d middle = manifold.points[i].position - 0.5 * displacement;
      AddContact(index_a, index_b, middle, manifold.normal, phi0, contacts);
    }
  }

  void AddBoxContacts(int index_a, int index_b, double reach, ContactSet* contacts) const {
    const OrientedBox a = Box(index_a);
    const OrientedBox b = Box(index_b);
    if (reach > 0) {
      const BoxSeparation separation =
          FindBoxSeparation(a, b, DisplacementOfFirst(index_a, index_b), Shallow(index_a, index_b));
      if (separation.distance > reach) return;
      if (separation.distance > 0) {
        AddContactsOfBoxesApart(index_a, index_b, separation.normal, reach, contacts);
        return;
      }
    }
    const auto contact = Collide(*shapes[index_b], Pose(index_b), *shapes[index_a], Pose(index_a));
    if (!contact) return;
    const BoxManifold manifold = FindBoxManifold(
        a, b, contact->normal, ManifoldPoint{contact->pos, -contact->penetration_depth}, reach);
    for (int i = 0; i < manifold.count; ++i) {
      AddContact(index_a, index_b, manifold.points[i].position, manifold.normal,
                 manifold.points[i].signed_distance, contacts);
    }
  }

  void AddPairContacts(int index_a, int index_b, ContactSet* contacts) const {
    const Body& a = bodies[index_a];
    const Body& b = bodies[index_b];
    const double reach = Reach(index_a) + Reach(index_b);
    const double farthest = bounding_radii[index_a] + bounding_radii[index_b] + reach;
    if ((a.position - b.position).squaredNorm() > farthest * farthest) return;
    if (a.shape.kind == ShapeKind::kSphere) {
      AddSphereContact(index_a, index_b, reach, contacts);
    } else if (b.shape.kind == ShapeKind::kSphere) {
      AddSphereContact(index_b, index_a, reach, contacts);
    } else {
      AddBoxContacts(index_a, index_b, reach, contacts);
    }
  }
};

CollisionDetector::CollisionDetector(const Scene& scene) : impl_(std::make_unique<Impl>(scene)) {}
CollisionDetector::~CollisionDetector() = default;
CollisionDetector::CollisionDetector(CollisionDetector&&) noexcept = default;
CollisionDetector& CollisionDetector::operator=(CollisionDetector&&) noexcept = default;

void CollisionDetector::FindContacts(std::span<const Body> bodies, std::span<const Motion> motions,
                                     std::span<const uint8_t> resting, ContactSet* contacts) {
  contacts->Clear();
  impl_->bodies = bodies;
  impl_->motions = motions;
  impl_->UpdateTrees(resting);
  impl_->FindPairs();
  auto pair = impl_->pairs.begin();
  for (int a = 0; a < static_cast<int>(bodies.size()); ++a) {
    if (impl_->is_still[a] == 0) {
      for (const Plane& plane : impl_->planes) {
        AddPlaneContacts(bodies[a], impl_->rotations[a], a, plane, impl_->Reach(a), contacts);
      }
    }
    for (; pair != impl_->pairs.end() && First(*pair) == a; ++pair) {
      impl_->AddPairContacts(a, Second(*pair), contacts);
    }
  }
}

}  // namespace sap::simulation
