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

class IslandTangent : DerivativePass {
 public:
  IslandTangent(const DerivativeScope& scope, const ProblemDifferential& direction,
                Tangent* tangent)
      : DerivativePass(scope), direction_(direction), tangent_(*tangent) {}

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
      const int64_t first = layout.parts_of_row(unit).front().entry_begin;
      dJ.SetRow(layout, unit,
                ByEntries(problem_, layout, unit, direction_.row_coefficients) + first);
    } else {
      const ContactGroup& group = layout.groups()[unit];
      for (int i = group.contact_begin; i < group.contact_end; ++i) {
        for (int p = group.part_begin; p < group.part_end; ++p) {
          const ContactPart& part = layout.parts()[p];
          const int n = part.dofs;
          const auto block = BlockOf(problem_, view_, pool, group, i, p, direction_);
          double* to = dJ.of(group, i, part);
          for (int r = 0; r < kRows; ++r) std::copy_n(block.row(r, kRows, n), n, to + r * n);
          dJ.FindColumns(group, i, part);
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
    auto& adjoint = adjoint_.pools[pool];
    if (!adjoint.w_by_W.At(i).IsZero()) change.w += DelassusOf(pool, unit, i);
    if constexpr (HasRotation(pool)) {
      ForFrictionOfDelassus(adjoint, i, &change,
                            [&](double dmu, double w_by_mu) { change.w += w_by_mu * dmu; });
    }
    return change;
  }

  // dw/dW : dW.
  template <int index>
  double DelassusOf(PoolIndex<index> pool, int unit, int i) {
    if constexpr (IsRow(pool)) {
      double dw = CoupledDelassus(pool, unit, i);
      const RowLayout& layout = view_.layout(pool);
      for (const RowPart& part : layout.parts_of_row(unit)) {
        if (delassus_.IsCoupled(part.slot)) continue;
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
      double dw = CoupledDelassus(pool, unit, i);
      for (const ContactPart& part : layout.parts_of(group)) {
        if (!delassus_.IsCoupled(part.slot)) dw += BlockDelassus(pool, group, i, part);
      }
      return dw;
    }
  }

  // dw/dW : dW of the coupled trees of a constraint.
  template <int index>
  double CoupledDelassus(PoolIndex<index> pool, int unit, int i) {
    const auto& w_by_W = adjoint_.pools[pool].w_by_W.At(i);
    const auto& dJ = adjoint_.pools[pool].dJ;
    const auto& layout = view_.layout(pool);
    double dw = 0;
    const DelassusRows of = RowsOf(w_by_W);
    const auto add = [&](const CoupledColumns& X) {
      if constexpr (IsRow(pool)) {
        for (const RowPart& part : layout.parts_of_row(unit)) {
          if (!X.Has(part.slot)) continue;
          for (int64_t e = part.entry_begin; e < part.entry_end; ++e) {
            dw += 2 * w_by_W(0, 0) * dJ.at(e) * X.At(part.slot, layout.dof()[e])[0];
          }
        }
      } else {
        const ContactGroup& group = layout.groups()[unit];
        for (const ContactPart& part : layout.parts_of(group)) {
          if (!X.Has(part.slot)) continue;
          const double* block = dJ.of(group, i, part);
          for (int j = 0; j < part.dofs; ++j) {
            const Lanes4 x = MultiplyLanes(w_by_W, X.At(part.slot, j));
            for (int r = 0; r < of.count(); ++r) {
              dw += 2 * block[(of.begin + r) * part.dofs + j] * x[r];
            }
          }
        }
      }
      dw -= CoupledInertia(w_by_W, X) / unit_;
    };
    ForCoupledColumns(scope_, pool, unit, i, of, HalfSolve::Fronts::kAll, add);
    return dw;
  }

  // dw/dW : X' dA X.
  template <typename Matrix>
  double CoupledInertia(const Matrix& w_by_W, const CoupledColumns& X) const {
    const ConstraintGraph& graph = view_.graph;
    const auto sum_of_block = [&](int a, int b, const double* dA) {
      double sum = 0;
      for (int i = 0; i < graph.dofs()[a]; ++i) {
        const Lanes4 x = MultiplyLanes(w_by_W, X.At(a, i));
        for (int j = 0; j < graph.dofs()[b]; ++j) sum += *dA++ * Sum(x * X.At(b, j));
      }
      return sum;
    };
    double sum = 0;
    X.ForSlots([&](int slot) { sum += sum_of_block(slot, slot, OfTree(slot)); });
    ForCouplings(problem_, view_, [&](const TreePair& pair, const CoupledPair& coupled) {
      if (!X.Has(pair.high)) return;
      sum += 2 * sum_of_block(pair.high, pair.low,
                              direction_.coupling_block.data() + coupled.block_start);
    });
    return sum;
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
    const DelassusRows of = RowsOf(w_by_W);
    double dw = 0;
    ForInverseColumns(scope_, slot, J, of, [&](int s, const double* x) {
      for (int r = of.begin; r < of.end; ++r) {
        for (int j = 0; j < n; ++j) dw += 2 * w_by_W(r, s) * dJ[r * n + j] * x[j];
      }
    });
    return dw - BlockInertia(slot, n, w_by_W, J);
  }

  // dw/dW : X' dA X, with X = A^-1 J' of the rows by which w is estimated.
  template <int rows>
  double BlockInertia(int slot, int n, const LawMatrix<rows>& w_by_W, const double* J) {
    const DelassusRows of = RowsOf(w_by_W);
    double sum = 0;
    WithTreeScratch(3 * static_cast<size_t>(n), [&](double* X) {
      for (int r = 0; r < of.count(); ++r) {
        MultiplySymmetric(scope_.A_inverse(slot), n, J + (of.begin + r) * n, X + r * n);
      }
      for (int r = 0; r < of.count(); ++r) {
        for (int s = 0; s < of.count(); ++s) {
          sum += w_by_W(of.begin + r, of.begin + s) * QuadraticForm(slot, X + r * n, X + s * n);
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
    if (view_.range().coupled) AddCoupledFreeMotion(slot, out);
    double cost = 0;
    for (int i = 0; i < n; ++i) {
      double product = view_.range().coupled ? CoupledChange(slot, i) : 0;
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

  // out += A dv* of the trees coupled with one.
  void AddCoupledFreeMotion(int slot, double* out) const {
    AddOffDiagonalProduct(
        view_.graph, slot, view_.graph.dofs()[slot],
        [&](const TreePair&, int pair) { return view_.model.A_block(view_.graph, pair); },
        [&](int other) {
          const int tree = view_.graph.islands().tree_of_slot()[other];
          return direction_.v_star.data() + problem_.velocity_start()[tree];
        },
        out);
  }

  // Row i of dA D of the trees coupled with one.
  double CoupledChange(int slot, int i) const {
    const ConstraintGraph& graph = view_.graph;
    double product = 0;
    for (const PairSide& side : graph.sides_of(slot)) {
      const int coupled = graph.coupled_pair(side.pair);
      if (coupled < 0) continue;
      const TreePair& pair = graph.pairs()[side.pair];
      const double* dA =
          direction_.coupling_block.data() + problem_.coupled_trees().pairs()[coupled].block_start;
      const int other = graph.velocity_start()[side.is_high ? pair.low : pair.high];
      const int count = side.is_high ? pair.dofs_low : pair.dofs_high;
      for (int j = 0; j < count; ++j) {
        const double entry = side.is_high ? dA[i * pair.dofs_low + j] : dA[j * pair.dofs_low + i];
        product += entry * (data_.v[other + j] - view_.model.v_star()[other + j]);
      }
    }
    return product;
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

  const ProblemDifferential& direction_;
  Tangent& tangent_;
};

}  // namespace

StepStatus AddTangent(const DerivativeScope& scope, const ProblemDifferential& direction,
                      HessianSystem* system, double* cost, Tangent* tangent) {
  return IslandTangent(scope, direction, tangent).Run(system, cost);
}

}  // namespace sap
