#include "solver/derivatives/delassus_slopes.h"

#include <algorithm>
#include <cmath>

namespace sap {

namespace {

class DelassusSlopes : DerivativePass {
 public:
  explicit DelassusSlopes(const DerivativeScope& scope) : DerivativePass(scope) {}

  double Run(bool with_inverses) {
    if (with_inverses) InvertTrees();
    double margin = 1;
    ForPoolsOf(view_, [&](auto pool) {
      const PoolRange range = view_.range(pool);
      std::vector<DerivativeSums>& sums = adjoint_.pools[pool].sums;
      ForChunks(view_.arena, range.unit_begin, range.unit_end, kSlopeUnits,
                [&](int begin, int end, int chunk) {
                  double& least = sums[range.begin + chunk].kink_margin;
                  least = 1;
                  if (scope_.stop.Requested()) return;
                  ForConstraintsOfUnits(view_, pool, begin, end, [&](int unit, int i) {
                    least = std::min({least, SetDelassus(pool, unit, i), KinkMargin(pool, i)});
                  });
                });
      for (const DerivativeSums& part :
           kSlopeUnits.Parts(sums, range.begin, range.unit_begin, range.unit_end)) {
        margin = std::min(margin, part.kink_margin);
      }
    });
    return margin;
  }

 private:
  void InvertTrees() {
    const ConstraintGraph& graph = view_.graph;
    ForChunks(view_.arena, view_.range().slot_begin, view_.range().slot_end, kDifferentiateSlots,
              [&](int begin, int end, int) {
                for (int slot = begin; slot < end; ++slot) {
                  if (scope_.stop.Requested()) return;
                  if (delassus_.IsCoupled(slot)) continue;
                  ForSize(graph.dofs()[slot], [&](auto n) {
                    delassus_.Invert(slot, n,
                                     adjoint_.A_inverse.data() + graph.matrix_start()[slot]);
                  });
                }
              });
  }
  // Returns the distance of w from its kink.
  template <int index>
  double SetDelassus(PoolIndex<index> pool, int unit, int i) {
    auto& adjoint = adjoint_.pools[pool];
    const int number = view_.layout(pool).order()[i];
    adjoint.w_by_W.values[i] = {};
    if constexpr (HasRotation(pool)) adjoint.w_by_friction.Set(i, {});
    adjoint.w[i] = 0;
    const auto inputs = scope_.InputsOf(pool, i);
    if (!inputs.NeedsDelassus()) return 1;
    if constexpr (IsRow(pool)) {
      adjoint.w[i] = delassus_.OfRow(view_.layout(pool), view_.model.pools[pool].jacobians, unit);
      const bool held = scope_.hold_delassus || problem_.rows()[number].given_w != 0;
      adjoint.w_by_W.values[i](0, 0) = held ? 0 : 1;
      return 1;
    } else {
      adjoint.w[i] = view_.model.w[number];
      if (scope_.hold_delassus || problem_.given_w()[number] != 0) return 1;
      constexpr int kRows = PoolAt<index>::Laws::kRows;
      const ContactLayout& layout = view_.layout(pool);
      const ContactGroup& group = layout.groups()[unit];
      const auto slope = delassus_.SlopeOfContact<kRows>(
          layout.parts_of(group), view_.model.pools[pool].jacobians.of(group, i), inputs);
      adjoint.w_by_W.values[i] = slope.by_W;
      if constexpr (HasRotation(pool)) adjoint.w_by_friction.Set(i, slope.by_friction);
      return slope.kink_margin;
    }
  }

  template <int index>
  double KinkMargin(PoolIndex<index> pool, int i) const {
    const auto& laws = view_.model.pools[pool].laws;
    const auto& v_c = data_.pools[pool].v_c;
    const auto inputs = scope_.InputsOf(pool, i);
    LeastMargin rules;
    laws.Make(inputs, inputs, rules);
    KinkScales scales{.normal_speeds = 0, .regularization = rules.value};
    if constexpr (!IsRow(pool)) {
      scales.normal_speeds = std::abs(inputs.v_hat[2]) +
                             std::abs(ToLawVector(v_c.At(i))[2] + inputs.surface_velocity[2]);
    }
    return laws.KinkMargin(i, v_c, scales);
  }
};

}  // namespace

double SetDelassusSlopes(const DerivativeScope& scope, bool with_inverses) {
  return DelassusSlopes(scope).Run(with_inverses);
}

}  // namespace sap
