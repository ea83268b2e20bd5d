// Rigid bodies and the fixed planes around them.
//
// The frame of a body is at its center of mass, along its principal axes, so that its inertia is
// three moments. SI units; vectors are in world axes unless their name says body.
#pragma once

#include <Eigen/Geometry>
#include <cstdint>
#include <vector>

namespace sap::simulation {

using Eigen::Matrix3d;
using Eigen::Quaterniond;
using Eigen::Vector3d;

enum class ShapeKind : uint8_t { kSphere, kBox };

struct Shape {
  ShapeKind kind{ShapeKind::kBox};
  Vector3d half_extent{0.05, 0.05, 0.05};  // of a box; the radius three times for a sphere

  double radius() const { return half_extent.x(); }  // of a sphere
  double bounding_radius() const {
    return kind == ShapeKind::kSphere ? radius() : half_extent.norm();
  }

  static Shape Sphere(double radius) { return {ShapeKind::kSphere, Vector3d::Constant(radius)}; }
  static Shape Box(const Vector3d& half_extent) { return {ShapeKind::kBox, half_extent}; }
};

struct Body {
  Shape shape;
  double mass{1};                       // kg
  Vector3d inertia{1, 1, 1};            // principal moments, body axes [kg m^2]
  Vector3d position{0, 0, 0};           // of the center of mass [m]
  Quaterniond orientation{1, 0, 0, 0};  // from body axes to world axes
  Vector3d velocity{0, 0, 0};           // of the center of mass [m/s]
  Vector3d angular_velocity{0, 0, 0};   // [rad/s]

  Matrix3d rotation() const { return orientation.toRotationMatrix(); }
};

// A body of uniform density [kg/m^3] at rest at the origin.
Body MakeBody(const Shape& shape, double density);

// Fixed half-space of all x with normal . x < offset, which bodies cannot enter.
struct Plane {
  Vector3d normal{0, 0, 1};  // unit, pointing out of the half-space
  double offset{0};          // [m]
};

}  // namespace sap::simulation
