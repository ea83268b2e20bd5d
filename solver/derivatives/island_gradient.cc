// Reverse mode: dL/d(input) of one cotangent, for one island.
//
//   s = v_bar + J' (v_c_bar - G gamma_bar),   H lambda = s,   p = J lambda + gamma_bar
//   v_hat_bar = G p + c gamma,   q = v_c_bar - v_hat_bar
//   theta_bar = p' d gamma/d theta + c f_theta
//   A_bar = -(lambda D' + D lambda') / 2 + c D D' / 2 - sum X W_bar X',   D = v - v*,  X = A^-1 J'
//   J_bar = gamma lambda' + q v' + 2 W_bar X',   v*_bar = A (lambda - c D)
//
// A_bar has the blocks of A; that of coupled trees a > b counts A_ab and A_ba, so twice.
//
// c is the cotangent of the cost, which enters by its envelope: at the optimum the cost does not
// change with v.
#include "solver/derivatives/island_gradient.h"

#include <algorithm>

#include "solver/derivatives/island_numbers.h"

namespace sap {

namespace {

double ValueOr0(std::span<const double> values, int64_t i) {
  return values.empty() ? 0 : values[i];
}

class IslandGradient : DerivativePass {
 public:
  IslandGradient(const DerivativeScope& scope, const Cotangent& cotangent, Gradient* gradient)
      : DerivativePass(scope), cotangent_(cotangent), gradient_(*gradient) {}

  StepStatus Run(HessianSystem* system, SharedInputs* shared) {
    StartWithImpulses();
    StartWithVelocities();
    const StepStatus status = system->SolveForLambda();
    if (status == StepStatus::kStopped) return status;
    ForPoolsOf(view_, [&](auto pool) { WriteConstraints(pool, shared); });
    WriteTrees();
    if (view_.range().coupled) WriteCouplings();
    return scope_.stop.Requested() ? StepStatus::kStopped : status;
  }

 private:
  // gamma := gamma_bar and v_c := v_c_bar - G gamma_bar.
  void StartWithImpulses() {
    ForConstraints(view_, [&](auto pool, int begin, int end) {
      auto& adjoint = adjoint_.pools[pool];
      for (int i = begin; i < end; ++i) {
        const int number = view_.layout(pool).order()[i];
        const auto gamma_bar = OfImpulse(pool, number);
        auto difference = OfVelocity(pool, number);
        const auto product = MultiplyG(view_, data_, pool, i, gamma_bar);
        for (size_t r = 0; r < product.size(); ++r) difference[r] -= product[r];
        adjoint.gamma.Set(i, gamma_bar);
        adjoint.v_c.Set(i, difference);
      }
    });
  }
  void StartWithVelocities() {
    const ConstraintGraph& graph = view_.graph;
    for (int slot = view_.range().slot_begin; slot < view_.range().slot_end; ++slot) {
      const int from = problem_.velocity_start()[graph.islands().tree_of_slot()[slot]];
      for (int i = 0; i < graph.dofs()[slot]; ++i) {
        adjoint_.right_side[graph.velocity_start()[slot] + i] =
            ValueOr0(cotangent_.velocity, from + i);
      }
    }
  }

  // Cotangents of the impulse of a constraint, in the unit of the island, and of its velocity, of
  // which only the linear ones are outputs.
  template <int index>
  auto OfImpulse(PoolIndex<index> pool, int number) const {
    constexpr int kRows = PoolAt<index>::Laws::kRows;
    const auto of = OutputsOf(problem_, pool, number, cotangent_);
    LawVector<kRows> gamma_bar;
    for (int r = 0; r < kRows; ++r) {
      gamma_bar[r] =
          unit_ * (r < 3 ? ValueOr0(of.impulse, r) : ValueOr0(of.angular_impulse, r - kRows + 3));
    }
    return gamma_bar;
  }
  template <int index>
  auto OfVelocity(PoolIndex<index> pool, int number) const {
    constexpr int kRows = PoolAt<index>::Laws::kRows;
    const auto of = OutputsOf(problem_, pool, number, cotangent_);
    LawVector<kRows> v_c_bar{};
    for (int r = 0; r < std::min(kRows, 3); ++r) v_c_bar[r] = ValueOr0(of.velocity, r);
    return v_c_bar;
  }

  template <int index>
  void WriteConstraints(PoolIndex<index> pool, SharedInputs* shared) {
    const PoolRange range = view_.range(pool);
    std::vector<DerivativeSums>& sums = adjoint_.pools[pool].sums;
    ForChunks(view_.arena, range.unit_begin, range.unit_end, DerivativeChunks(pool),
              [&](int begin, int end, int chunk) {
                DerivativeSums& sum = sums[range.begin + chunk];
                sum = {};
                if (scope_.stop.Requested()) return;
                ForConstraintsOfUnits(view_, pool, begin, end, [&](int unit, int i) {
                  WriteConstraint(pool, unit, i, &sum.shared);
                });
              });
    for (const DerivativeSums& part :
         DerivativeChunks(pool).Parts(sums, range.begin, range.unit_begin, range.unit_end)) {
      shared->Add(part.shared);
    }
  }

  template <int index>
  void WriteConstraint(PoolIndex<index> pool, int unit, int i, SharedInputs* shared) {
    constexpr int kRows = PoolAt<index>::Laws::kRows;
    auto& adjoint = adjoint_.pools[pool];
    const int number = view_.layout(pool).order()[i];
    const double c = unit_ * cotangent_.cost;
    const LawVector<kRows> gamma = ToLawVector(data_.pools[pool].gamma.At(i));
    LawVector<kRows> p = adjoint.gamma.At(i);
    for (int r = 0; r < kRows; ++r) p[r] += adjoint.v_c.At(i)[r];
    const LawVector<kRows> v_c_bar = OfVelocity(pool, number);
    LawVector<kRows> v_hat_bar = MultiplyG(view_, data_, pool, i, p);
    LawVector<kRows> q = v_c_bar;
    for (int r = 0; r < kRows; ++r) {
      v_hat_bar[r] += c * gamma[r];
      q[r] -= v_hat_bar[r];
    }
    const auto& laws = view_.model.pools[pool].laws;
    const auto sensitivity = laws.SensitivityAt(i, data_.pools[pool].v_c);
    const auto in = scope_.InputsOf(pool, i);
    std::remove_const_t<decltype(in)> bar;
    bar.shared = *shared;
    laws.Make(in, bar, EachPartial{[&](int parameter, double& input, double partial) {
                double theta_bar;
                if (parameter < kRows) {
                  theta_bar = v_hat_bar[parameter];
                } else {
                  const int k = parameter - kRows;
                  theta_bar = c * sensitivity.cost[k];
                  for (int r = 0; r < kRows; ++r) theta_bar += p[r] * sensitivity.impulse[k][r];
                }
                input += partial * theta_bar;
              }});
    *shared = bar.shared;
    if constexpr (IsRow(pool)) {
      if (in.given_w != 0) bar.given_w = bar.w;
    }
    if constexpr (HasRotation(pool)) {
      ForFrictionOfDelassus(adjoint, i, &bar,
                            [&](double& mu_bar, double w_by_mu) { mu_bar += bar.w * w_by_mu; });
    }
    ForInputs(problem_, number, unit_, bar, gradient_.problem,
              [](double of_island, double& value, double scale) { value += scale * of_island; });
    const double w_bar = bar.w;
    adjoint.W_bar.values[i] = adjoint.w_by_W.At(i);
    for (double& entry : adjoint.W_bar.values[i].entries) entry *= w_bar;
    ProblemDifferential& inputs = gradient_.problem;
    if constexpr (IsRow(pool)) {
      inputs.rows[number].offset += v_c_bar[0];
      WriteRowJacobian(pool, unit, gamma[0], q[0]);
    } else {
      for (int r = 0; r < 3; ++r) inputs.surface_velocity[3 * number + r] += v_c_bar[r];
      const ContactGroup& group = view_.layout(pool).groups()[unit];
      for (int part = group.part_begin; part < group.part_end; ++part) {
        WriteBlock(pool, group, i, part, gamma, q);
      }
    }
    if (!adjoint.W_bar.At(i).IsZero()) WriteCoupledJacobian(pool, unit, i);
  }

  // gamma lambda' + q v' + 2 W_bar (A^-1 J')' of one tree of a contact.
  template <int index, size_t rows>
  void WriteBlock(PoolIndex<index> pool, const ContactGroup& group, int i, int p,
                  const std::array<double, rows>& gamma, const std::array<double, rows>& q) {
    const ContactPart& part = view_.layout(pool).parts()[p];
    const int slot = part.slot;
    const int n = part.dofs;
    const double* v = data_.v.data() + view_.graph.velocity_start()[slot];
    const double* lambda = adjoint_.lambda.data() + view_.graph.velocity_start()[slot];
    const auto block = BlockOf(problem_, view_, pool, group, i, p, gradient_.problem);
    for (size_t r = 0; r < rows; ++r) {
      double* row = block.row(r, rows, n);
      for (int j = 0; j < n; ++j) row[j] += gamma[r] * lambda[j] + q[r] * v[j];
    }
    const auto& W_bar = adjoint_.pools[pool].W_bar.At(i);
    if (W_bar.IsZero() || delassus_.IsCoupled(slot)) return;
    const double* J = view_.model.pools[pool].jacobians.of(group, i, part);
    const DelassusRows of = RowsOf(W_bar);
    ForInverseColumns(scope_, slot, J, of, [&](int s, const double* x) {
      for (int r = of.begin; r < of.end; ++r) {
        double* row = block.row(r, rows, n);
        for (int j = 0; j < n; ++j) row[j] += 2 * W_bar(r, s) * x[j];
      }
    });
  }

  template <int index>
  void WriteRowJacobian(PoolIndex<index> pool, int row, double gamma, double q) {
    const RowLayout& layout = view_.layout(pool);
    double* J_bar = ByEntries(problem_, layout, row, gradient_.problem.row_coefficients);
    const double W_bar = adjoint_.pools[pool].W_bar.At(row)(0, 0);
    for (const RowPart& part : layout.parts_of_row(row)) {
      const double* v = data_.v.data() + view_.graph.velocity_start()[part.slot];
      const double* lambda = adjoint_.lambda.data() + view_.graph.velocity_start()[part.slot];
      for (int64_t e = part.entry_begin; e < part.entry_end; ++e) {
        J_bar[e] += gamma * lambda[layout.dof()[e]] + q * v[layout.dof()[e]];
      }
      if (W_bar == 0 || delassus_.IsCoupled(part.slot)) continue;
      ForInverseOfPart(scope_, layout, view_.model.pools[pool].jacobians, part,
                       [&](const double* x) {
                         for (int64_t e = part.entry_begin; e < part.entry_end; ++e) {
                           J_bar[e] += 2 * W_bar * x[layout.dof()[e]];
                         }
                       });
    }
  }

  // 2 W_bar (A^-1 J')' of the coupled trees of a constraint.
  template <int index>
  void WriteCoupledJacobian(PoolIndex<index> pool, int unit, int i) {
    const auto& W_bar = adjoint_.pools[pool].W_bar.At(i);
    const auto& layout = view_.layout(pool);
    const DelassusRows of = RowsOf(W_bar);
    ForCoupledColumns(
        scope_, pool, unit, i, of, HalfSolve::Fronts::kVisited, [&](const CoupledColumns& X) {
          if constexpr (IsRow(pool)) {
            double* J_bar = ByEntries(problem_, layout, unit, gradient_.problem.row_coefficients);
            for (const RowPart& part : layout.parts_of_row(unit)) {
              if (!X.Has(part.slot)) continue;
              for (int64_t e = part.entry_begin; e < part.entry_end; ++e) {
                J_bar[e] += 2 * W_bar(0, 0) * X.At(part.slot, layout.dof()[e])[0];
              }
            }
          } else {
            const ContactGroup& group = layout.groups()[unit];
            for (int p = group.part_begin; p < group.part_end; ++p) {
              const ContactPart& part = layout.parts()[p];
              if (!X.Has(part.slot)) continue;
              const auto block = BlockOf(problem_, view_, pool, group, i, p, gradient_.problem);
              for (int j = 0; j < part.dofs; ++j) {
                const Lanes4 product = MultiplyLanes(W_bar, X.At(part.slot, j));
                for (int r = of.begin; r < of.end; ++r) {
                  block.row(r, PoolAt<index>::Laws::kRows, part.dofs)[j] +=
                      2 * product[r - of.begin];
                }
              }
            }
          }
        });
  }

  // A_bar between coupled trees, of A_ab and A_ba together; and what w adds to A_bar of all coupled
  // trees, which takes A^-1 J' over the whole component for every constraint.
  void WriteCouplings() {
    ForCouplings(problem_, view_, [&](const TreePair& pair, const CoupledPair& coupled) {
      double* A_bar = gradient_.problem.coupling_block.data() + coupled.block_start;
      const int a = view_.graph.velocity_start()[pair.high];
      const int b = view_.graph.velocity_start()[pair.low];
      const auto change = [&](int i) { return data_.v[i] - view_.model.v_star()[i]; };
      for (int i = 0; i < pair.dofs_high; ++i) {
        for (int j = 0; j < pair.dofs_low; ++j) {
          const double crossed =
              adjoint_.lambda[a + i] * change(b + j) + change(a + i) * adjoint_.lambda[b + j];
          A_bar[i * pair.dofs_low + j] =
              cotangent_.cost * change(a + i) * change(b + j) - crossed / unit_;
        }
      }
    });
    if (scope_.hold_delassus) return;
    ForPoolsOf(view_, [&](auto pool) {
      const PoolRange range = view_.range(pool);
      ForConstraintsOfUnits(view_, pool, range.unit_begin, range.unit_end, [&](int unit, int i) {
        const auto& W_bar = adjoint_.pools[pool].W_bar.At(i);
        if (scope_.stop.Requested() || W_bar.IsZero()) return;
        ForCoupledColumns(scope_, pool, unit, i, RowsOf(W_bar), HalfSolve::Fronts::kAll,
                          [&](const CoupledColumns& X) { SubtractCoupledDelassus(W_bar, X); });
      });
    });
  }

  // A_bar -= X W_bar X' in the blocks that A has.
  template <typename Matrix>
  void SubtractCoupledDelassus(const Matrix& W_bar, const CoupledColumns& X) {
    const ConstraintGraph& graph = view_.graph;
    const auto subtract = [&](int a, int b, double factor, double* A_bar) {
      for (int i = 0; i < graph.dofs()[a]; ++i) {
        const Lanes4 x = MultiplyLanes(W_bar, X.At(a, i)) * (factor / unit_);
        for (int j = 0; j < graph.dofs()[b]; ++j) *A_bar++ -= Sum(x * X.At(b, j));
      }
    };
    X.ForSlots([&](int slot) {
      const int64_t start = problem_.matrix_start()[graph.islands().tree_of_slot()[slot]];
      subtract(slot, slot, 1, gradient_.problem.dynamics_matrix.data() + start);
    });
    ForCouplings(problem_, view_, [&](const TreePair& pair, const CoupledPair& coupled) {
      if (!X.Has(pair.high)) return;
      subtract(pair.high, pair.low, 2,
               gradient_.problem.coupling_block.data() + coupled.block_start);
    });
  }

  void WriteTrees() {
    const IslandRange& range = view_.range();
    ForChunks(view_.arena, range.slot_begin, range.slot_end, kDifferentiateSlots,
              [&](int begin, int end, int) {
                for (int slot = begin; slot < end; ++slot) {
                  if (scope_.stop.Requested()) return;
                  ForSize(view_.graph.dofs()[slot], [&](auto n) { WriteTree(slot, n); });
                }
              });
  }

  template <typename Size>
  void WriteTree(int slot, Size n) {
    const int start = view_.graph.velocity_start()[slot];
    const int tree = view_.graph.islands().tree_of_slot()[slot];
    const int to = problem_.velocity_start()[tree];
    const double* A = view_.model.A(view_.graph, slot);
    const double* v = data_.v.data() + start;
    const double* v_star = view_.model.v_star().data() + start;
    const double* lambda = adjoint_.lambda.data() + start;
    const double* change = data_.momentum_change.data() + start;
    const double c = cotangent_.cost;
    double* v_star_bar = gradient_.problem.v_star.data() + to;
    double* impulse_bar = gradient_.applied_impulse.data() + to;
    double* A_bar = gradient_.problem.dynamics_matrix.data() + problem_.matrix_start()[tree];
    MultiplySymmetric(A, n, lambda, v_star_bar);
    if (view_.range().coupled) AddCoupledProduct(view_, slot, adjoint_.lambda, v_star_bar);
    for (int i = 0; i < n; ++i) {
      const double lambda_i = lambda[i] / unit_;
      const double D_i = v[i] - v_star[i];
      v_star_bar[i] -= unit_ * c * change[i];
      impulse_bar[i] = lambda_i - c * D_i;
      for (int j = 0; j < n; ++j) {
        const double D_j = v[j] - v_star[j];
        const double crossed = lambda_i * D_j + D_i * (lambda[j] / unit_);
        A_bar[i * n + j] = -0.5 * crossed + 0.5 * c * D_i * D_j;
      }
    }
    if (!scope_.hold_delassus && !delassus_.IsCoupled(slot)) SubtractDelassus(slot, n, A_bar);
  }

  // A_bar -= A^-1 (sum of J' W_bar J) A^-1, or the diagonal of it.
  template <typename Size>
  void SubtractDelassus(int slot, Size n, double* A_bar) {
    const double* A_inverse = scope_.A_inverse(slot);
    const bool diagonal = problem_.regularization().rule == DelassusRule::kDiagonal;
    WithTreeScratch(2 * static_cast<size_t>(n) * n, [&](double* M) {
      double* product = M + n * n;
      std::fill_n(M, n * n, 0.0);
      ForPoolsOf(view_, [&](auto pool) {
        const auto& jacobians = view_.model.pools[pool].jacobians;
        const auto& layout = view_.layout(pool);
        jacobians.AddDiagonalBlock(layout, jacobians.SidesOf(layout, slot), n,
                                   adjoint_.pools[pool].W_bar.blocks(), scope_.stop, M);
      });
      for (int i = 0; i < n; ++i) {
        if (n > kUnpolledDofs && scope_.stop.Requested()) return;
        MultiplySymmetric(A_inverse, n, M + i * n, product + i * n);  // M A^-1
      }
      for (int i = 0; i < n; ++i) {
        if (n > kUnpolledDofs && scope_.stop.Requested()) return;
        double* row = M + i * n;
        for (int j = 0; j < n; ++j) row[j] = 0;
        for (int k = 0; k < n; ++k) {
          for (int j = 0; j < n; ++j) row[j] += A_inverse[i * n + k] * product[k * n + j];
        }
      }
      for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
          if (diagonal && i != j) continue;
          A_bar[i * n + j] -= 0.5 * (M[i * n + j] + M[j * n + i]) / unit_;
        }
      }
    });
  }

  const Cotangent& cotangent_;
  Gradient& gradient_;
};

}  // namespace

StepStatus AddGradient(const DerivativeScope& scope, const Cotangent& cotangent,
                       HessianSystem* system, SharedInputs* shared, Gradient* gradient) {
  return IslandGradient(scope, cotangent, gradient).Run(system, shared);
}

}  // namespace sap
