// Derivatives of impulses and costs by the inputs of the problem: the partial derivatives that Make
// visits, times those of SensitivityAt, against differences of Make and At.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>

#include "solver/laws/bounded_row.h"
#include "solver/laws/general_cone.h"
#include "solver/laws/hunt_crossley.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

// Impulse, then cost.
template <typename Law>
using LawValue = std::array<double, Law::kRows + 1>;

template <typename Law>
LawValue<Law> ValueAt(const typename Law::Inputs& inputs, const LawVector<Law::kRows>& v_c) {
  const auto point = Law::At(Law::Make(inputs, inputs, NoPartials()), v_c);
  LawValue<Law> value;
  std::copy(point.gamma.begin(), point.gamma.end(), value.begin());
  value.back() = point.cost;
  return value;
}

// d(value) along a direction of the inputs, by the lists of the law.
template <typename Law>
LawValue<Law> TangentAt(const typename Law::Inputs& inputs, const typename Law::Inputs& direction,
                        const LawVector<Law::kRows>& v_c) {
  constexpr int kRows = Law::kRows, kParameters = Law::Sensitivity::kParameters;
  std::array<double, kRows + kParameters> d{};
  const auto p = Law::Make(
      inputs, direction,
      EachPartial{[&](int k, double d_input, double partial) { d[k] += partial * d_input; }});
  const auto point = Law::At(p, v_c);
  const auto G = Law::Hessian(p, point);
  const auto sensitivity = Law::SensitivityAt(p, v_c);
  LawValue<Law> tangent{};
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kRows; ++c) tangent[r] += G(r, c) * d[c];
    tangent[kRows] += point.gamma[r] * d[r];
  }
  for (int k = 0; k < kParameters; ++k) {
    for (int r = 0; r < kRows; ++r) tangent[r] += sensitivity.impulse[k][r] * d[kRows + k];
    tangent[kRows] += sensitivity.cost[k] * d[kRows + k];
  }
  return tangent;
}

// Every input that is not 0 or infinite, one after the other. Inputs of which two differences
// disagree are next to a kink and are not compared. Returns how many are.
template <typename Law>
int ExpectInputsMatchDifferences(const typename Law::Inputs& inputs,
                                 const LawVector<Law::kRows>& v_c) {
  using Inputs = typename Law::Inputs;
  using Numbers = std::array<double, sizeof(Inputs) / sizeof(double)>;
  const auto numbers = std::bit_cast<Numbers>(inputs);
  const LawValue<Law> here = ValueAt<Law>(inputs, v_c);
  int compared = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == 0 || !std::isfinite(numbers[i])) continue;
    Numbers direction{};
    direction[i] = 1;
    const auto tangent = TangentAt<Law>(inputs, std::bit_cast<Inputs>(direction), v_c);
    const auto difference = [&](double step, size_t k) {
      Numbers more = numbers, less = numbers;
      more[i] += step;
      less[i] -= step;
      return (ValueAt<Law>(std::bit_cast<Inputs>(more), v_c)[k] -
              ValueAt<Law>(std::bit_cast<Inputs>(less), v_c)[k]) /
             (2 * step);
    };
    const double step = 1e-5 * std::abs(numbers[i]);
    for (size_t k = 0; k < tangent.size(); ++k) {
      const double size = 1e-3 + std::abs(here[k]) + std::abs(tangent[k]) * std::abs(numbers[i]);
      const double tolerance = 1e-7 * size / std::abs(numbers[i]);
      const double fine = difference(step / 4, k);
      if (std::abs(difference(step, k) - fine) > tolerance) continue;
      EXPECT_NEAR(tangent[k], fine, tolerance) << "input " << i << ", row " << k;
      ++compared;
    }
  }
  return compared;
}

class LawInputsTest : public ::testing::TestWithParam<int> {
 protected:
  double Draw(double low, double high) { return Uniform(&random_, low, high); }
  bool Toss() { return Draw(0, 1) < 0.5; }
  template <int rows>
  LawVector<rows> DrawVector() {
    LawVector<rows> vector;
    for (double& x : vector) x = Draw(-1, 1);
    return vector;
  }
  // Both branches of every rule are drawn.
  void DrawShared(LawInputs* inputs) {
    inputs->shared = {Draw(0.05, 0.2), Draw(0.5, 2), Draw(0.05, 0.5), Draw(0.5, 2),
                      Draw(0.05, 0.2)};
    inputs->w = Draw(0.5, 2);
  }
  void DrawContact(ContactInputs* inputs) {
    DrawShared(inputs);
    inputs->v_hat = DrawVector<3>();
    inputs->surface_velocity = DrawVector<3>();
    inputs->mu = Draw(0.2, 1);
    inputs->stiffness = LogUniform(&random_, 10, 1e4);
    inputs->relaxation_time = Draw(0.01, 0.2);
  }
  template <int rows>
  int Cone() {
    ConeInputs inputs;
    DrawContact(&inputs);
    inputs.mu_2 = Draw(0.2, 1);
    inputs.adhesion = Draw(0.1, 2);
    if (Toss()) inputs.R_t = Draw(0.1, 1);
    if (Toss()) inputs.R_n = Draw(0.1, 1);
    if (rows > 3) {
      inputs.angular_friction = {Draw(0.2, 1), Draw(0.2, 1), Draw(0.2, 1)};
      inputs.angular_v_hat = DrawVector<3>();
    }
    return ExpectInputsMatchDifferences<GeneralCone<rows>>(inputs, DrawVector<rows>());
  }
  template <typename Law>
  int HuntCrossleyContact() {
    HuntCrossleyInputs inputs;
    DrawContact(&inputs);
    inputs.material = {Draw(-5, 20), Draw(0.05, 1), Draw(0.1, 2)};
    return ExpectInputsMatchDifferences<Law>(inputs, DrawVector<3>());
  }
  template <typename Law>
  int Row() {
    RowInputs inputs;
    DrawShared(&inputs);
    static_cast<RowParameters&>(inputs) = {.v_hat = Draw(-1, 1),
                                           .offset = Draw(-1, 1),
                                           .stiffness = LogUniform(&random_, 10, 1e4),
                                           .relaxation_time = Draw(0.01, 0.2),
                                           .force_lower = Draw(-20, -1),
                                           .force_upper = Draw(1, 20),
                                           .force_offset = Draw(-5, 5)};
    if (Toss()) inputs.given_R = Draw(0.1, 1);
    if (Toss()) inputs.slip_parameter = Draw(0.1, 1);
    return ExpectInputsMatchDifferences<Law>(inputs, DrawVector<1>());
  }

  Random random_{static_cast<uint64_t>(GetParam())};
};

TEST_P(LawInputsTest, DerivativesOfConesAreWhatDifferencesSay) {
  EXPECT_GE(Cone<3>(), 40);
  EXPECT_GE(Cone<4>(), 50);
  EXPECT_GE(Cone<6>(), 80);
}

TEST_P(LawInputsTest, DerivativesOfHuntCrossleyAreWhatDifferencesSay) {
  EXPECT_GE(HuntCrossleyContact<LaggedHuntCrossley>(), 40);
  EXPECT_GE(HuntCrossleyContact<SimilarHuntCrossley>(), 40);
}

TEST_P(LawInputsTest, DerivativesOfRowsAreWhatDifferencesSay) {
  EXPECT_GE(Row<BilateralRow>(), 20);
  EXPECT_GE(Row<BoundedRow>(), 20);
}

INSTANTIATE_TEST_SUITE_P(Random, LawInputsTest, ::testing::Range(0, 50));

}  // namespace
}  // namespace sap::test
