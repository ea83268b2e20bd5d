// The only file that includes FCL, in its form for Debian: compiled for the oldest processor of the
// architecture. Classes of FCL that hold an Eigen transform are laid out otherwise with wider
// vectors, so none of them is used but FCL's tree of bounding boxes, shapes, and collide().
#include "client/cpp/simulation/collision.h"

#include <fcl/broadphase/detail/hierarchy_tree.h>
#include <fcl/geometry/shape/box.h>
#include <fcl/geometry/shape/sphere.h>
#include <fcl/narrowphase/collision.h>

#include <algorithm>

#include "client/cpp/simulation/box_manifold.h"

namespace sap::simulation {
namespace {

using Tree = fcl::detail::HierarchyTree<fcl::AABBd>;
using Node = fcl::detail::NodeBase<fcl::AABBd>;

template <typename... Types>
constexpr bool kLayoutWithoutWideVectors = ((alignof(Types) <= alignof(double)) && ...);
static_assert(kLayoutWithoutWideVectors<Tree, Node, fcl::AABBd, fcl::Boxd, fcl::Sphered,
                                        fcl::CollisionRequestd, fcl::CollisionResultd>);

// The tree is refitted at every call; the boxes drift apart in it, so after this many calls it is
// built anew.
constexpr int kCallsBetweenBuilds = 20;

// Two bodies a < b as one number, so that sorting is fast.
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
  std::vector<Plane> planes;
  std::vector<std::unique_ptr<fcl::CollisionGeometryd>> shapes;
  std::vector<double> bounding_radii;
  Tree tree;  // owns the nodes
  std::vector<Node*> leaf_of_body;
  int calls{0};
  // Scratch of a call.
  std::vector<Matrix3d> rotations;
  std::vector<BodyPair> pairs;
  std::span<const Body> bodies;

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
          tree.insert(fcl::AABBd(body.position), reinterpret_cast<void*>(index)));
    }
    rotations.resize(scene.bodies.size());
  }

  void UpdateTree() {
    for (size_t i = 0; i < bodies.size(); ++i) {
      rotations[i] = bodies[i].rotation();
      const Vector3d half = BoundingHalfExtent(bodies[i].shape, rotations[i]);
      leaf_of_body[i]->bv = fcl::AABBd(bodies[i].position - half, bodies[i].position + half);
    }
    if (calls++ % kCallsBetweenBuilds == 0) {
      tree.balanceTopdown();
    } else {
      tree.refit();
    }
  }

  fcl::Transform3d Pose(int i) const {
    fcl::Transform3d pose;
    pose.linear() = rotations[i];
    pose.translation() = bodies[i].position;
    return pose;
  }

  void AddPairContacts(int index_a, int index_b, ContactSet* contacts) const {
    const Body& a = bodies[index_a];
    const Body& b = bodies[index_b];
    const double reach = bounding_radii[index_a] + bounding_radii[index_b];
    if ((a.position - b.position).squaredNorm() > reach * reach) return;
    const fcl::CollisionRequestd request(1, true);
    fcl::CollisionResultd result;
    // FCL's normal points from its first object to its second.
    if (fcl::collide(shapes[index_b].get(), Pose(index_b), shapes[index_a].get(), Pose(index_a),
                     request, result) == 0) {
      return;
    }
    const fcl::Contactd& contact = result.getContact(0);
    if (a.shape.kind == ShapeKind::kSphere || b.shape.kind == ShapeKind::kSphere) {
      contacts->Add(index_a, index_b, contact.pos, contact.normal, -contact.penetration_depth);
      return;
    }
    const BoxManifold manifold =
        FindBoxManifold({a.position, rotations[index_a], a.shape.half_extent},
                        {b.position, rotations[index_b], b.shape.half_extent}, contact.normal,
                        {contact.pos, -contact.penetration_depth});
    for (int i = 0; i < manifold.count; ++i) {
      contacts->Add(index_a, index_b, manifold.points[i].position, manifold.normal,
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
  impl_->UpdateTree();
  impl_->pairs.clear();
  if (!impl_->tree.empty()) CollectPairs(impl_->tree.getRoot(), &impl_->pairs);
  std::sort(impl_->pairs.begin(), impl_->pairs.end());
  auto pair = impl_->pairs.begin();
  for (int a = 0; a < static_cast<int>(bodies.size()); ++a) {
    for (const Plane& plane : impl_->planes) {
      AddPlaneContacts(bodies[a], impl_->rotations[a], a, plane, contacts);
    }
    for (; pair != impl_->pairs.end() && First(*pair) == a; ++pair) {
      impl_->AddPairContacts(a, Second(*pair), contacts);
    }
  }
}

}  // namespace sap::simulation
