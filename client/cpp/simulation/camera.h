// A perspective camera for pictures: world points to pixels.
//
//   x_px = scale (p . right) / (p . forward) + shift,   p = x - eye
//
// with y down, as in SVG.
#pragma once

#include <span>

#include "client/cpp/simulation/body.h"

namespace sap::simulation {

using Eigen::Vector2d;

class Camera {
 public:
  // Looks at the target from a direction (from the target to the eye; not vertical) and a distance.
  Camera(const Vector3d& target, const Vector3d& direction, double distance);

  // Scales and shifts so that the points just fill the rectangle [px]. They must be in front of the
  // camera.
  void Frame(std::span<const Vector3d> points, const Vector2d& low, const Vector2d& high);

  const Vector3d& eye() const { return eye_; }
  const Vector3d& right() const { return right_; }
  const Vector3d& up() const { return up_; }

  double Depth(const Vector3d& x) const { return forward_.dot(x - eye_); }
  Vector2d Project(const Vector3d& x) const { return scale_ * Flat(x) + shift_; }
  // Radius in pixels of a sphere around x.
  double ProjectRadius(const Vector3d& x, double radius) const;

 private:
  Vector2d Flat(const Vector3d& x) const;

  Vector3d eye_;
  Vector3d forward_;
  Vector3d right_;
  Vector3d up_;
  double scale_{1};
  Vector2d shift_{0, 0};
};

}  // namespace sap::simulation
