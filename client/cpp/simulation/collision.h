// Contacts of a scene: pairs whose bounds overlap from FCL's dynamic tree of bounding boxes, then
// several points per face for boxes, one for spheres.
//
// What touches or overlaps is reported, and what may do so before contacts are found the next time:
// phi0 <= the reach of the pair. Otherwise a body that moves would first be seen as
// deep in another as it comes in one step. A contact with phi0 > 0 only acts on what would close
// the gap. Contacts are sorted by body_a, then body_b (the world first), then by plane and corner;
// they are a function of poses and motions alone, not of addresses, hashes or what the same object
// was asked before.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "client/cpp/simulation/scene.h"

namespace sap::simulation {

// Arrays as ContactProblemView::BodyContacts has them.
struct ContactSet {
  std::vector<int32_t> body_a;          // [C]
  std::vector<int32_t> body_b;          // [C], > body_a, or -1: a plane
  std::vector<double> point;            // [3 C] halfway between surfaces that overlap [m]
  std::vector<double> normal;           // [3 C] unit, from b to a: v_n > 0 separates
  std::vector<double> signed_distance;  // phi0 [C] [m]

  int size() const { return static_cast<int>(body_a.size()); }
  void Clear();
  void Add(int a, int b, const Vector3d& position, const Vector3d& unit_normal, double phi0);
  double LargestPenetration() const;  // [m], 0 where nothing overlaps
};

// How a body may move until contacts are found the next time.
struct Motion {
  Vector3d way{0, 0, 0};  // of its center if nothing pushes it [m]
  double reach{0};        // the most that any of its points may come [m]
};

class CollisionDetector {
 public:
  // Shapes and planes are taken from the scene once.
  explicit CollisionDetector(const Scene& scene);
  ~CollisionDetector();
  CollisionDetector(CollisionDetector&&) noexcept;
  CollisionDetector& operator=(CollisionDetector&&) noexcept;

  // Contacts of the bodies, as many and of the same shapes as in the scene, at their present poses.
  // motions: of each body, or empty: only what touches now.
  void FindContacts(std::span<const Body> bodies, std::span<const Motion> motions,
                    ContactSet* contacts);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sap::simulation
