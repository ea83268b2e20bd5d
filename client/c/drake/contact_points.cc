#include "client/c/drake/contact_points.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "client/c/drake/plant.h"
#include "client/c/drake/vector3.h"

namespace sap::drake {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLeastArea = 1e-14;      // m^2; smaller faces are left out
constexpr double kLeastGradient = 1e-14;  // Pa/m; so are faces with a smaller gradient

// The part of a penetration that geometry B takes, as the springs of A and B are in series.
double ShareOfB(double k_a, double k_b) {
  if (std::isinf(k_a)) return 1.0;
  if (std::isinf(k_b) || k_a + k_b == 0.0) return 0.0;
  return k_a / (k_a + k_b);
}

double StiffnessInSeries(double k_a, double k_b) {
  if (std::isinf(k_a) || std::isinf(k_b)) return std::min(k_a, k_b);
  return ShareOfB(k_a, k_b) * k_b;
}

// The d of two geometries, of which the more compliant one counts more, as in Drake.
double Dissipation(const sap_drake_material& a, const sap_drake_material& b, double k_a,
                   double k_b) {
  if (std::isinf(k_a)) return b.dissipation;
  if (std::isinf(k_b)) return a.dissipation;
  if (k_a + k_b == 0.0) return 0.0;
  return (k_b * a.dissipation + k_a * b.dissipation) / (k_a + k_b);
}

double HarmonicMean(double a, double b) { return a + b > 0.0 ? 2.0 * a * b / (a + b) : 0.0; }

// Pressure gradients of one face; null if the geometry is rigid.
struct Gradients {
  const double* m;
  const double* n;
};

// From N to M. A face is where both pressures are equal, so its normal is along the difference of
// their gradients.
Vector3 NormalFromGradients(const Gradients& gradients) {
  const Vector3 difference = Load(gradients.m) - Load(gradients.n);
  return difference / std::max(Norm(difference), kLeastGradient);
}

// 1 / g along the normal; 0 if a gradient is too small.
double Compliance(const Gradients& gradients, const Vector3& normal) {
  double compliance = 0.0;
  if (gradients.m != nullptr) {
    const double along = Dot(Load(gradients.m), normal);
    if (along < kLeastGradient) return 0.0;
    compliance += 1.0 / along;
  }
  if (gradients.n != nullptr) {
    const double along = -Dot(Load(gradients.n), normal);
    if (along < kLeastGradient) return 0.0;
    compliance += 1.0 / along;
  }
  return compliance;
}

// Returns the vector at *next, which moves on; null if there is none.
const double* Take(bool is_there, const double** next) {
  if (!is_there) return nullptr;
  const double* taken = *next;
  *next += 3;
  return taken;
}

}  // namespace

void PointWriter::AddPairs(const sap_drake_pairs& pairs) {
  for (int64_t i = 0; i < pairs.count; ++i) {
    const sap_drake_material& a = materials_[pairs.geometries[i]];
    const sap_drake_material& b = materials_[pairs.geometries[pairs.count + i]];
    const double depth = pairs.depth[i];
    const Vector3 normal = Load(pairs.normal + 3 * i);
    const double into_b = ShareOfB(a.stiffness, b.stiffness) * depth;
    sap_drake_point point = {};
    Store(Load(pairs.position_on_b + 3 * i) - into_b * normal, point.position);
    Store(-normal, point.normal);
    point.signed_distance = -depth;
    point.stiffness = StiffnessInSeries(a.stiffness, b.stiffness);
    point.dissipation = Dissipation(a, b, a.stiffness, b.stiffness);
    Add(a, b, point);
  }
}

void PointWriter::AddFaces(const sap_drake_surfaces& surfaces) {
  int64_t face = 0;
  const double* next_normal = surfaces.normal;
  const double* next_m = surfaces.gradient_m;
  const double* next_n = surfaces.gradient_n;
  for (int64_t i = 0; i < surfaces.count; ++i) {
    const sap_drake_material& m = materials_[surfaces.geometries[i]];
    const sap_drake_material& n = materials_[surfaces.geometries[surfaces.count + i]];
    const bool has_m = surfaces.has_gradient[2 * i] != 0;
    const bool has_n = surfaces.has_gradient[2 * i + 1] != 0;
    const double dissipation =
        Dissipation(m, n, has_m ? m.modulus : kInfinity, has_n ? n.modulus : kInfinity);
    for (const int64_t end = face + surfaces.faces[i]; face < end; ++face) {
      const Gradients gradients = {Take(has_m, &next_m), Take(has_n, &next_n)};
      const Vector3 normal =
          has_m && has_n ? NormalFromGradients(gradients) : Load(Take(true, &next_normal));
      const double compliance = Compliance(gradients, normal);
      if (surfaces.area[face] <= kLeastArea || compliance == 0.0) continue;
      sap_drake_point point = {};
      Store(Load(surfaces.position + 3 * face), point.position);
      Store(-normal, point.normal);
      point.signed_distance = -surfaces.pressure[face] * compliance;
      point.stiffness = surfaces.area[face] / compliance;
      point.dissipation = dissipation;
      Add(m, n, point);
    }
  }
}

// Completes a point. Friction is the harmonic mean, as in Drake.
void PointWriter::Add(const sap_drake_material& a, const sap_drake_material& b,
                      sap_drake_point point) {
  const auto body_a = static_cast<int32_t>(a.body);
  const auto body_b = static_cast<int32_t>(b.body);
  if (plant_.tree_of_body[body_a] == kWorld && plant_.tree_of_body[body_b] == kWorld) return;
  point.friction = HarmonicMean(a.friction, b.friction);
  point.relaxation_time = a.relaxation_time + b.relaxation_time;
  points_[count_] = point;
  bodies_[2 * count_] = body_a;
  bodies_[2 * count_ + 1] = body_b;
  ++count_;
}

}  // namespace sap::drake
