#include "solver/newton/pair_certificate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "solver/newton/accuracy_certificate.h"
#include "solver/newton/dual_norm.h"
#include "solver/newton/hub_loops.h"
#include "solver/newton/slot_loops.h"

namespace sap {

namespace {

constexpr double kNoBound = std::numeric_limits<double>::infinity();
// Rounding steps of phi and of an impulse out of scaled axes, generously counted.
constexpr double kGapRoundoff = 64 * kUnitRoundoff;
constexpr double kImpulseRoundoff = 8 * kUnitRoundoff;

template <size_t rows>
LawVector<static_cast<int>(rows)> Times(double factor, std::array<double, rows> vector) {
  for (double& component : vector) component *= factor;
  return vector;
}

// phi of a cone with its allowance, where v_c is known to within `error`. Sets the impulse and the
// bound on its error.
template <int k>
double GapOf(const ScaledCone<k>& cone, const LawVector<k>& v_c, const LawVector<k>& error,
             const ConeVector<k>& z, LawVector<k>* gamma, LawVector<k>* gamma_error) {
  const auto gap = cone.GapAt(cone.e(v_c), z);
  const ConeVector<k> e_error = cone.Scaled(error);
  double allowance = kGapRoundoff * gap.size;
  for (int i = 0; i < k; ++i) {
    if (e_error[i] == 0) continue;
    allowance += (std::abs(gap.difference[i]) + 0.5 * e_error[i] / cone.R(i)) * e_error[i];
  }
  *gamma = cone.Impulse(z);
  *gamma_error = cone.Unscaled(z);
  for (double& component : *gamma_error) component = kImpulseRoundoff * std::abs(component);
  (*gamma_error)[ScaledCone<k>::kNormal] += kImpulseRoundoff * cone.p.adhesion_impulse;
  return gap.value + allowance;
}

// phi of a row with bounds, with its allowance.
double GapOf(const BoundedRow::Parameters& p, double v_c, double error, double g) {
  const auto gap = BoxBarrier::GapAt(p, p.v_hat - v_c, g);
  return gap.value + kGapRoundoff * gap.size +
         (std::abs(gap.difference) + 0.5 * error * p.inv_R) * error;
}

// phi of a bilateral row, whose impulse is that of v except for rounding.
double GapOf(const BilateralRow::Parameters& p, double error, double g) {
  const double difference = p.inv_R * error + kImpulseRoundoff * std::abs(g);
  return 0.5 * p.R * difference * difference;
}

template <typename PoolIndexType>
double GapOfUnits(const IslandView& view, PoolIndexType pool, const PairDuals& impulses, int begin,
                  int end, SapData* data, SapScratch* scratch) {
  const auto& laws = view.model.pools[pool].laws;
  const auto& jacobians = view.model.pools[pool].jacobians;
  auto& state = data->pools[pool];
  auto& errors = scratch->pools[pool].impulse_errors;
  constexpr int kRows = PoolAt<PoolIndexType::value>::Laws::kRows;
  double sum = 0;
  jacobians.ForSizes(
      view.graph, view.layout(pool), begin, end, data->v,
      [&](int i) { return laws.target_size(i); },
      [&](int i, const auto& size, int terms) {
        const auto error = Times((terms + kVelocitySteps) * kUnitRoundoff, ToLawVector(size));
        if constexpr (IsCone(PoolIndexType())) {
          using Cone = ScaledCone<kRows>;
          LawVector<kRows> gamma, gamma_error;
          sum += GapOf<kRows>(Cone{ConeOf(laws, i)}, ToLawVector(state.v_c.At(i)), error,
                              impulses[pool].At(i), &gamma, &gamma_error);
          state.gamma.Set(i, gamma);
          errors.Set(i, gamma_error);
        } else if constexpr (PoolIndexType() == kBoundedPool) {
          const auto& p = laws.parameters(i);
          const double g = std::clamp(impulses[pool].At(i)[0], p.lower, p.upper);
          sum += GapOf(p, state.v_c.At(i)[0], error[0], g);
          state.gamma.Set(i, {g});
          errors.Set(i, {0.0});
        } else if constexpr (IsQuadratic(PoolIndexType())) {
          sum += GapOf(laws.parameters(i), error[0], state.gamma.At(i)[0]);
          errors.Set(i, {0.0});
        }
      });
  return sum;
}

}  // namespace

double PairGapBound(const IslandView& view, const PairDuals& impulses, const StopToken& stop,
                    SapData* data, SapScratch* scratch) {
  CertificateSums<double> sums;
  double gap = 0;
  int terms = 0;
  ForPoolsOf(view, [&](auto pool) {
    const PoolRange units = view.range(pool);
    AddChunks(view.arena, units.unit_begin, units.unit_end, kCertifyUnits,
              scratch->pools[pool].cost_errors.data() + units.begin, &gap, [&](int begin, int end) {
                if (stop.Cancelled()) return 0.0;
                return GapOfUnits(view, pool, impulses, begin, end, data, scratch);
              });
    terms += units.end - units.begin;
  });
  SetMomentumResidual(
      view, stop, data, [&](auto pool) -> const auto& { return data->pools[pool].gamma; });
  AddDualNormsOfIsland(view, stop, data, scratch, nullptr, &sums);
  const double norm = std::sqrt(sums.gradient2) + std::sqrt(sums.error2);
  const double bound = (1 + (terms + 8) * kUnitRoundoff) * gap + 0.5 * norm * norm;
  return std::isfinite(bound) && view.constants().representable ? bound : kNoBound;
}

}  // namespace sap
