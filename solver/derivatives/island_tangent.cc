// Forward mode: d(output) along one direction of the problem, for one island.
//
//   dw = dw/dW : dW,   dW = dJ A^-1 J' + J A^-1 dJ' - J A^-1 dA A^-1 J'
//   dgamma_v = G (dv_hat - dJ v) + dgamma/dtheta dtheta               at v held, less the offset
//   H dv = -dA D + A dv* + dJ' gamma + J' dgamma_v,   D = v - v*
//   dv_c = J dv + dJ v,   dgamma = dgamma_v - G J dv
//   dl = D' dA D / 2 - (A D)' dv* + gamma' (dv_hat - dJ v) + f_theta dtheta
#include "solver/derivatives/island_tangent.h"

#include <algorithm>

#include "solver/derivatives/island_numbers.h"

namespace sap {

namespace {

class IslandTangent {
 public:
  IslandTangent(const DerivativeScope& scope, const ProblemDifferential& direction,
                Tangent* tangent)
      : scope_(scope),
        problem_(scope.problem),
        view_(scope.view),
        data_(scope.data),
        adjoint_(*scope.adjoint),
        direction_(direction),
        tangent_(*tangent),
        unit_(scope.unit()) {}

  StepStatus Run(HessianSystem* system, double* cost) {
    double sum = 0;
    ForPoolsOf(view_, [&](auto pool) { sum += MoveConstraints(pool); });
    sum += MoveTrees();
    const StepStatus status = system->SolveForLambda();
    if (status == StepStatus::kStopped) return status;
    *cost = sum * unit_;
    WriteVelocities();
    ForConstraints(view_, [&](auto pool, int begin, int end) {
      for (int i = begin; i < end; ++i) WriteConstraint(pool, i);
    });
    return scope_.stop.Requested() ? StepStatus::kStopped : status;
  }

 private:
  // dJ, dgamma at v held, and its impulse as what J' is multiplied with. Returns what the cost
  // changes by.
  template <int index>
  double MoveConstraints(PoolIndex<index> pool) {
    const PoolRange range = view_.range(pool);
    auto& adjoint = adjoint_.pools[pool];
    ForChunks(view_.arena, range.unit_begin, range.unit_end, DerivativeChunks(pool),
              [&](int begin, int end, int chunk) {
                double& cost = adjoint.sums[range.begin + chunk].cost;
                cost = 0;
                if (scope_.stop.Requested()) return;
                for (int unit = begin; unit < end; ++unit) GatherJacobian(pool, unit);
                adjoint.dJ.Velocities(view_.graph, view_.layout(pool), begin, end, data_.v,
                                      &adjoint.dJ_v);
                ForConstraintsOfUnits(view_, pool, begin, end, [&](int unit, int i) {
                  cost += MoveConstraint(pool, unit, i);
                });
              });
    double cost = 0;
    for (const DerivativeSums& part : DerivativeChunks(pool).Parts(
             adjoint.sums, range.begin, range.unit_begin, range.unit_end)) {
      cost += part.cost;
    }
    return cost;
  }

  template <int index>
  void GatherJacobian(PoolIndex<index> pool, int unit) {
    constexpr int kRows = PoolAt<index>::Laws::kRows;
    auto& dJ = adjoint_.pools[pool].dJ;
    const auto& layout = view_.layout(pool);
    if constexpr (IsRow(pool)) {
      const std::span<const RowPart> parts = layout.parts_of_row(unit);
      const double* from = direction_.row_coefficients.data() +
                           problem_.row_start()[layout.order()[unit]] - parts.front().entry_begin;
      for (int64_t e = parts.front().entry_begin; e < parts.back().entry_end; ++e) {
        dJ.at(e) = from[e];
      }
    } else {
      const ContactGroup& group = layout.groups()[unit];
      for (int i = group.contact_begin; i < group.contact_end; ++i) {
        for (int p = group.part_begin; p < group.part_end; ++p) {
          const ContactPart& part = layout.parts()[p];
          const int n = part.dofs;
          const auto block = BlockOf(problem_, view_, pool, group, i, p, direction_);
          double* to = dJ.of(group, i, part);
          for (int r = 0; r < kRows; ++r) std::copy_n(block.row(r, kRows, n), n, to + r * n);
        }
      }
    }
  }

  template <int index>
  double MoveConstraint(PoolIndex<index> pool, int unit, int i) {
    constexpr int kRows = PoolAt<index>::Laws::kRows;
    auto& adjoint = adjoint_.pools[pool];
    const auto& state = data_.pools[pool];
    const auto sensitivity = view_.model.pools[pool].laws.SensitivityAt(i, state.v_c);
    const auto inputs = scope_.InputsOf(pool, i);
    const auto d_inputs = DirectionOf(pool, unit, i);
    std::array<double, kRows + decltype(sensitivity)::kParameters> dtheta{};
    view_.model.pools[pool].laws.Make(inputs, d_inputs,
                                      EachPartial{[&](int k, double d_input, double partial) {
                                        dtheta[k] += partial * d_input;
                                      }});
    LawVector<kRows> moved;  // v_hat less J v
    double cost = 0;
    const LawVector<kRows> gamma = ToLawVector(state.gamma.At(i));
    for (int r = 0; r < kRows; ++r) {
      moved[r] = dtheta[r] - adjoint.dJ_v.At(i)[r];
      cost += gamma[r] * moved[r];
    }
    LawVector<kRows> dgamma = MultiplyG(view_, data_, pool, i, moved);
    for (int k = 0; k < decltype(sensitivity)::kParameters; ++k) {
      cost += sensitivity.cost[k] * dtheta[kRows + k];
      for (int r = 0; r < kRows; ++r) dgamma[r] += sensitivity.impulse[k][r] * dtheta[kRows + k];
    }
    adjoint.gamma.Set(i, dgamma);
    adjoint.v_c.Set(i, dgamma);
    return cost;
  }

  // The change of the inputs of a constraint, w among them.
  template <int index>
  auto DirectionOf(PoolIndex<index> pool, int unit, int i) {
    typename PoolAt<index>::Laws::Inputs change;
    change.shared = direction_;
    const int number = view_.layout(pool).order()[i];
    ForInputs(problem_, number, unit_, change, direction_,
              [](double& of_island, double value, double scale) { of_island = scale * value; });
    if constexpr (IsRow(pool)) {
      if (problem_.rows()[number].given_w != 0) change.w = change.given_w;
    }
    if (!adjoint_.pools[pool].w_by_W.At(i).IsZero()) change.w += DelassusOf(pool, unit, i);
    return change;
  }

  // dw/dW : dW.
  template <int index>
  double DelassusOf(PoolIndex<index> pool, int unit, int i) {
    if constexpr (IsRow(pool)) {
      double dw = 0;
      const RowLayout& layout = view_.layout(pool);
      for (const RowPart& part : layout.parts_of_row(unit)) {
        ForInverseOfPart(scope_, layout, view_.model.pools[pool].jacobians, part,
                         [&](const double* x) {
                           for (int64_t e = part.entry_begin; e < part.entry_end; ++e) {
                             dw += 2 * adjoint_.pools[pool].dJ.at(e) * x[layout.dof()[e]];
                           }
                           dw -= QuadraticForm(part.slot, x, x) / unit_;
                         });
      }
      return dw;
    } else {
      const ContactLayout& layout = view_.layout(pool);
      const ContactGroup& group = layout.groups()[unit];
      double dw = 0;
      for (const ContactPart& part : layout.parts_of(group)) {
        dw += BlockDelassus(pool, group, i, part);
      }
      return dw;
    }
  }

  // dw/dW : dW of one tree of a contact.
  template <int index>
  double BlockDelassus(PoolIndex<index> pool, const ContactGroup& group, int i,
                       const ContactPart& part) {
    const auto& w_by_W = adjoint_.pools[pool].w_by_W.At(i);
    const int slot = part.slot;
    const int n = part.dofs;
    const double* J = view_.model.pools[pool].jacobians.of(group, i, part);
    const double* dJ = adjoint_.pools[pool].dJ.of(group, i, part);
    double dw = 0;
    ForInverseColumns(scope_, slot, J, [&](int s, const double* x) {
      for (int r = 0; r < 3; ++r) {
        for (int j = 0; j < n; ++j) dw += 2 * w_by_W(r, s) * dJ[r * n + j] * x[j];
      }
    });
    return dw - BlockInertia(slot, n, w_by_W, J);
  }

  // dw/dW : X' dA X, with X = A^-1 J' of three rows.
  template <int rows>
  double BlockInertia(int slot, int n, const LawMatrix<rows>& w_by_W, const double* J) {
    double sum = 0;
    WithTreeScratch(3 * static_cast<size_t>(n), [&](double* X) {
      for (int r = 0; r < 3; ++r) {
        MultiplySymmetric(scope_.A_inverse(slot), n, J + r * n, X + r * n);
      }
      for (int r = 0; r < 3; ++r) {
        for (int s = 0; s < 3; ++s) {
          sum += w_by_W(r, s) * QuadraticForm(slot, X + r * n, X + s * n);
        }
      }
    });
    return sum / unit_;
  }

  // x' dA y, by the diagonal of dA alone where the rule for w has it so.
  double QuadraticForm(int slot, const double* x, const double* y) const {
    const int n = view_.graph.dofs()[slot];
    const double* dA = OfTree(slot);
    double sum = 0;
    for (int i = 0; i < n; ++i) {
      if (problem_.regularization().rule == DelassusRule::kDiagonal) {
        sum += x[i] * dA[i * n + i] * y[i];
      } else {
        for (int j = 0; j < n; ++j) sum += x[i] * dA[i * n + j] * y[j];
      }
    }
    return sum;
  }
  const double* OfTree(int slot) const {
    const int tree = view_.graph.islands().tree_of_slot()[slot];
    return direction_.dynamics_matrix.data() + problem_.matrix_start()[tree];
  }

  // right_side := -dA D + A dv* + dJ' gamma. Returns what the cost changes by.
  double MoveTrees() {
    const IslandRange& range = view_.range();
    ForChunks(view_.arena, range.slot_begin, range.slot_end, kDifferentiateSlots,
              [&](int begin, int end, int chunk) {
                double& cost = adjoint_.slot_sums[range.slot_begin + chunk].cost;
                cost = 0;
                if (scope_.stop.Requested()) return;
                for (int slot = begin; slot < end; ++slot) {
                  ForSize(view_.graph.dofs()[slot], [&](auto n) { cost += MoveTree(slot, n); });
                }
              });
    double cost = 0;
    for (const DerivativeSums& part : kDifferentiateSlots.Parts(
             adjoint_.slot_sums, range.slot_begin, range.slot_begin, range.slot_end)) {
      cost += part.cost;
    }
    return cost;
  }

  template <typename Size>
  double MoveTree(int slot, Size n) {
    const int start = view_.graph.velocity_start()[slot];
    const double* dA = OfTree(slot);
    const double* dv_star = direction_.v_star.data() +
                            problem_.velocity_start()[view_.graph.islands().tree_of_slot()[slot]];
    const double* v = data_.v.data() + start;
    const double* v_star = view_.model.v_star().data() + start;
    const double* change = data_.momentum_change.data() + start;
    double* out = adjoint_.right_side.data() + start;
    MultiplySymmetric(view_.model.A(view_.graph, slot), n, dv_star, out);
    double cost = 0;
    for (int i = 0; i < n; ++i) {
      double product = 0;
      for (int j = 0; j < n; ++j) product += dA[i * n + j] * (v[j] - v_star[j]);
      out[i] -= product / unit_;
      cost += 0.5 * (v[i] - v_star[i]) * (product / unit_) - change[i] * dv_star[i];
    }
    ForPoolsOf(view_, [&](auto pool) {
      const auto& dJ = adjoint_.pools[pool].dJ;
      dJ.AddImpulse(view_.layout(pool), dJ.SidesOf(view_.layout(pool), slot), n,
                    data_.pools[pool].gamma, out);
    });
    return cost;
  }

  void WriteVelocities() {
    for (int slot = view_.range().slot_begin; slot < view_.range().slot_end; ++slot) {
      const int tree = view_.graph.islands().tree_of_slot()[slot];
      std::copy_n(adjoint_.lambda.begin() + view_.graph.velocity_start()[slot],
                  view_.graph.dofs()[slot],
                  tangent_.velocity.begin() + problem_.velocity_start()[tree]);
    }
  }

  template <int index>
  void WriteConstraint(PoolIndex<index> pool, int i) {
    constexpr int kRows = PoolAt<index>::Laws::kRows;
    const auto& adjoint = adjoint_.pools[pool];
    const int number = view_.layout(pool).order()[i];
    const LawVector<kRows> J_dv = adjoint.v_c.At(i);
    const LawVector<kRows> back = MultiplyG(view_, data_, pool, i, J_dv);
    const LawVector<kRows> dJ_v = adjoint.dJ_v.At(i);
    LawVector<kRows> dgamma = adjoint.gamma.At(i);
    for (int r = 0; r < kRows; ++r) dgamma[r] = unit_ * (dgamma[r] - back[r]);
    const auto to = OutputsOf(problem_, pool, number, tangent_);
    for (int r = 0; r < kRows; ++r) {
      if (r < 3) {
        to.impulse[r] = dgamma[r];
        to.velocity[r] = J_dv[r] + dJ_v[r] + OffsetOf(pool, number, r);
      } else {
        to.angular_impulse[r - kRows + 3] = dgamma[r];
      }
    }
  }
  template <int index>
  double OffsetOf(PoolIndex<index> pool, int number, int row) const {
    if constexpr (IsRow(pool)) return direction_.rows[number].offset;
    return direction_.surface_velocity[3 * static_cast<int64_t>(number) + row];
  }

  const DerivativeScope& scope_;
  const ContactProblem& problem_;
  const IslandView& view_;
  const SapData& data_;
  AdjointData& adjoint_;
  const ProblemDifferential& direction_;
  Tangent& tangent_;
  const double unit_;
};

}  // namespace

StepStatus AddTangent(const DerivativeScope& scope, const ProblemDifferential& direction,
                      HessianSystem* system, double* cost, Tangent* tangent) {
  return IslandTangent(scope, direction, tangent).Run(system, cost);
}

}  // namespace sap
