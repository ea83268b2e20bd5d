// Contacts of a scene: pairs whose bounds overlap from FCL's dynamic tree of bounding boxes, then
// several points per face for boxes, one for spheres.
//
// Reported are pairs that touch or overlap, and pairs that may do so before contacts are found
// again: phi0 <= the reach of the pair. Otherwise a moving body would be detected only after it has
// penetrated by the distance of one step. A contact with phi0 > 0 acts only if the gap would close.
// Contacts are sorted by body_a, then body_b (the world first), then by plane and corner. They are
// a function of poses and motions alone, not of addresses, hashes or previous calls.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "client/cpp/simulation/scene.h"

namespace sap::simulation {

// Arrays as in ContactProblemView::BodyContacts.
struct ContactSet {
  std::vector<int32_t> body_a;          // [C]
  std::vector<int32_t> body_b;          // [C], > body_a, or -1: a plane
  std::vector<double> point;            // [3 C] halfway between overlapping surfaces [m]
  std::vector<double> normal;           // [3 C] unit, from b to a: v_n > 0 separates
  std::vector<double> signed_distance;  // phi0 [C] [m]

  int size() const { return static_cast<int>(body_a.size()); }
  void Clear();
  void Add(int a, int b, const Vector3d& position, const Vector3d& unit_normal, double phi0);
  double LargestPenetration() const;  // [m], 0 where nothing overlaps
};

// How a body may move until contacts are found again.
struct Motion {
  Vector3d displacement{0, 0, 0};  // of its center without contact [m]
  double reach{0};                 // upper bound on the displacement of any of its points [m]
};

class CollisionDetector {
 public:
  // Reads shapes and planes from the scene.
  explicit CollisionDetector(const Scene& scene);
  ~CollisionDetector();
  CollisionDetector(CollisionDetector&&) noexcept;
  CollisionDetector& operator=(CollisionDetector&&) noexcept;

  // Contacts at the current poses. The bodies must have the number and shapes of the scene's.
  // motions: one per body, or empty: only pairs that touch. resting: one per body, or empty: none
  // rests. Contacts of resting bodies with each other and with planes are left out, at no cost;
  // poses and motions of those that also rested in the call before must not have changed.
  void FindContacts(std::span<const Body> bodies, std::span<const Motion> motions,
                    std::span<const uint8_t> resting, ContactSet* contacts);
  void FindContacts(std::span<const Body> bodies, std::span<const Motion> motions,
                    ContactSet* contacts) {
    FindContacts(bodies, motions, {}, contacts);
  }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sap::simulation
