// The constraints of one law: its parameters in an array, and functions over ranges of it.
//
// A law (bounded_row.h, general_cone.h, hunt_crossley.h) is a structure of functions of a single
// constraint; this class makes a pool of it. Calls are per range, so that a law is chosen once per
// range and inlined into the loop. Friction contacts have a pool of their own, which works on four
// contacts at once (friction_contacts.h).
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "solver/laws/law_types.h"
#include "solver/parallel/storage_bytes.h"

namespace sap {

// A value for each constraint of a pool.
template <typename Value>
struct ConstraintArray {
  std::vector<Value> values;

  void resize(size_t size) { values.resize(size); }
  size_t storage_bytes() const { return StorageBytes(values); }
  const Value& At(int i) const { return values[i]; }
  void Set(int i, const Value& value) { values[i] = value; }
};

template <int rows>
struct ConstraintVectors : ConstraintArray<LawVector<rows>> {
  using Vector = LawVector<rows>;

  void AddScaled(int i, double factor, const ConstraintVectors& other) {
    for (int r = 0; r < rows; ++r) this->values[i][r] += factor * other.values[i][r];
  }
};

// Values that a law computes, by constraint.
template <typename Law>
struct LawArrays {
  using Vectors = ConstraintVectors<Law::kRows>;
  using Matrices = ConstraintArray<LawMatrix<Law::kRows>>;
  using Directions = ConstraintArray<typename Law::DualDirection>;
};

// `Arrays`: the types of the arrays of v_c, gamma, G and s; the types of another pool with as many
// rows where the law replaces it.
template <typename Law, typename Arrays = LawArrays<Law>>
class LawArray {
 public:
  static constexpr int kRows = Law::kRows;
  static constexpr bool kIsQuadratic = requires { Law::kIsQuadratic; };
  static constexpr bool kIsCurved = requires { requires Law::kIsCurved; };
  using Vector = LawVector<Law::kRows>;

  using Parameters = typename Law::Parameters;
  using Vectors = typename Arrays::Vectors;
  using Matrices = typename Arrays::Matrices;
  using Directions = typename Arrays::Directions;

  // Parameters from the inputs of the problem, with their partial derivatives (law_inputs.h).
  using Inputs = typename Law::Inputs;
  static auto Make(const Inputs& in, auto& d, auto&& partials) {
    return Law::Make(in, d, partials);
  }

  void Resize(int size) { parameters_.resize(size); }
  void Set(int i, const Parameters& parameters) { parameters_[i] = parameters; }
  const Parameters& parameters(int i) const { return parameters_[i]; }
  Parameters& parameters(int i) { return parameters_[i]; }
  bool empty() const { return parameters_.empty(); }

  // The sizes of the parts of what v_c is subtracted from, added up.
  const Vector& target_size(int i) const { return parameters_[i].target_size; }
  // Whether the cost is negative at no velocity.
  bool HasNonNegativeCost(int i) const { return parameters_[i].HasNonNegativeCost(); }
  bool IsKinked(int i, const Vectors& v_c, const Vectors&) const {
    return Law::IsKinked(parameters_[i], PointAt(i, v_c));
  }

  // Impulses gamma at velocities v_c, for constraints in [begin, end), and their cost.
  CostSum Impulses(int begin, int end, const Vectors& v_c, Vectors* gamma) const {
    CostSum sum;
    for (int i = begin; i < end; ++i) {
      const auto point = PointAt(i, v_c);
      gamma->Set(i, point.gamma);
      sum.value += point.cost;
      sum.magnitude += std::abs(point.cost);
    }
    return sum;
  }

  // G of a law with a quadratic cost, which does not depend on v_c.
  struct ConstantHessians {
    const LawArray& laws;
    LawMatrix<Law::kRows> At(int i) const { return Law::Hessian(laws.parameters_[i], {}); }
  };
  ConstantHessians constant_hessians() const { return {*this}; }

  // G at v_c, of the cost itself.
  void Hessians(int begin, int end, const Vectors& v_c, Matrices* G) const {
    for (int i = begin; i < end; ++i) {
      G->Set(i, Law::Hessian(parameters_[i], PointAt(i, v_c)));
    }
  }

  // G at v_c with dual directions s.
  void Hessians(int begin, int end, const Vectors& v_c, const Directions& s, Matrices* G) const {
    for (int i = begin; i < end; ++i) {
      G->Set(i, Law::Hessian(parameters_[i], PointAt(i, v_c), s.At(i)));
    }
  }

  // Derivatives with respect to the parameters at fixed v_c, and the distance from the kinks.
  auto SensitivityAt(int i, const Vectors& v_c) const {
    return Law::SensitivityAt(parameters_[i], v_c.At(i));
  }
  double KinkMargin(int i, const Vectors& v_c, const KinkScales& scales) const {
    return Law::KinkMargin(parameters_[i], v_c.At(i), scales);
  }

  // Derivatives of the cost along v_c + alpha dv_c at alpha.
  LineSlope AlongLine(int begin, int end, const Vectors& v_c, const Vectors& dv_c,
                      double alpha) const {
    LineSlope slope;
    for (int i = begin; i < end; ++i) {
      const Vector& direction = ToLawVector(dv_c.At(i));
      Vector v = ToLawVector(v_c.At(i));
      for (int r = 0; r < Law::kRows; ++r) v[r] += alpha * direction[r];
      const auto point = Law::At(parameters_[i], v);
      const LawMatrix<Law::kRows> G = Law::Hessian(parameters_[i], point);
      for (int r = 0; r < Law::kRows; ++r) {
        double product = 0;
        for (int c = 0; c < Law::kRows; ++c) product += G(r, c) * direction[c];
        slope.first -= direction[r] * point.gamma[r];
        slope.second += direction[r] * product;
      }
    }
    return slope;
  }

  // AlongLine for the cost without the curvature of constraints that a curved law stands for.
  LineSlope LinearizedAlongLine(int begin, int end, const Vectors& v_c, const Vectors& dv_c,
                                const Directions& s, double alpha) const requires kIsCurved {
    LineSlope slope;
    for (int i = begin; i < end; ++i) {
      slope += Law::LinearizedAlongLine(parameters_[i], ToLawVector(v_c.At(i)),
                                        ToLawVector(dv_c.At(i)), s.At(i), alpha);
    }
    return slope;
  }

  // Dual directions at v_c, and those after a full Newton step of dv_c from v_c.
  void StartDualDirections(int begin, int end, const Vectors& v_c, const Vectors&,
                           Directions* s) const {
    for (int i = begin; i < end; ++i) {
      s->Set(i, Law::StartDirection(parameters_[i], PointAt(i, v_c)));
    }
  }
  void UpdateDualDirections(int begin, int end, const Vectors& v_c, const Vectors& dv_c,
                            Directions* s) const {
    for (int i = begin; i < end; ++i) {
      typename Law::DualDirection direction = s->At(i);
      Law::UpdateDirection(parameters_[i], PointAt(i, v_c), ToLawVector(dv_c.At(i)), &direction);
      s->Set(i, direction);
    }
  }

  // Bound on the error of the impulse of one constraint, by component, where v_c is known to
  // within `error`: by that, and by the rounding of the law's own evaluation.
  typename Vectors::Vector ImpulseError(int i, const Vectors& v_c, const Vectors&,
                                        const typename Vectors::Vector& error) const {
    constexpr double kLawSteps = 32;  // rounding steps of an evaluation, generously counted
    constexpr double kUnitRoundoff = 0.5 * std::numeric_limits<double>::epsilon();
    const auto point = PointAt(i, v_c);
    Vector bound =
        Law::ImpulseError(parameters_[i], point, ToLawVector(v_c.At(i)), ToLawVector(error));
    for (int r = 0; r < Law::kRows; ++r) {
      bound[r] += kLawSteps * kUnitRoundoff * std::abs(point.gamma[r]);
    }
    typename Vectors::Vector as_in_arrays;
    FromLawVector(bound, &as_in_arrays);
    return as_in_arrays;
  }
  size_t storage_bytes() const { return StorageBytes(parameters_); }

 private:
  auto PointAt(int i, const Vectors& v_c) const {
    return Law::At(parameters_[i], ToLawVector(v_c.At(i)));
  }

  std::vector<Parameters> parameters_;
};

}  // namespace sap
