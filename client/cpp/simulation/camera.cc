#include "client/cpp/simulation/camera.h"

#include <algorithm>
#include <cmath>

namespace sap::simulation {

Camera::Camera(const Vector3d& target, const Vector3d& direction, double distance)
    : eye_(target + distance * direction.normalized()),
      forward_(-direction.normalized()),
      right_(forward_.cross(Vector3d::UnitZ()).normalized()),
      up_(right_.cross(forward_)) {}

void Camera::Frame(std::span<const Vector3d> points, const Vector2d& low, const Vector2d& high) {
  if (points.empty()) return;
  Vector2d least = Flat(points.front());
  Vector2d most = least;
  for (const Vector3d& point : points) {
    least = least.cwiseMin(Flat(point));
    most = most.cwiseMax(Flat(point));
  }
  const Vector2d extent = (most - least).cwiseMax(1e-9);
  scale_ = (high - low).cwiseQuotient(extent).minCoeff();
  shift_ = 0.5 * (low + high) - 0.5 * scale_ * (least + most);
}

double Camera::ProjectRadius(const Vector3d& x, double radius) const {
  const double distance2 = (x - eye_).squaredNorm() - radius * radius;
  return scale_ * radius / std::sqrt(std::max(distance2, radius * radius));
}

Vector2d Camera::Flat(const Vector3d& x) const {
  const Vector3d p = x - eye_;
  return Vector2d(p.dot(right_), -p.dot(up_)) / p.dot(forward_);
}

}  // namespace sap::simulation
