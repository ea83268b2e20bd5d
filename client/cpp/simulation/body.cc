#include "client/cpp/simulation/body.h"

#include <numbers>

namespace sap::simulation {

Body MakeBody(const Shape& shape, double density) {
  Body body;
  body.shape = shape;
  if (shape.kind == ShapeKind::kSphere) {
    const double r = shape.radius();
    body.mass = density * 4.0 / 3.0 * std::numbers::pi * r * r * r;
    body.inertia = Vector3d::Constant(0.4 * body.mass * r * r);
  } else {
    const Vector3d square = shape.half_extent.cwiseAbs2();
    body.mass = density * 8 * shape.half_extent.prod();
    body.inertia = body.mass / 3 * (Vector3d::Constant(square.sum()) - square);
  }
  return body;
}

}  // namespace sap::simulation
