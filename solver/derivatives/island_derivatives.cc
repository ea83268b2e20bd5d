#include "solver/derivatives/island_derivatives.h"

#include <algorithm>
#include <cmath>

namespace sap {

namespace {

// Calls body(double&) for every number of the island in a ProblemDifferential, but for those that
// islands share.
template <typename Body>
void ForInputsOf(const DerivativeScope& scope, ProblemDifferential* inputs, Body&& body) {
  const ContactProblem& problem = scope.problem;
  const IslandView& view = scope.view;
  const auto all = [&](std::vector<double>& values, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(values[i]);
  };
  for (int slot = view.range().slot_begin; slot < view.range().slot_end; ++slot) {
    const int tree = view.graph.islands().tree_of_slot()[slot];
    all(inputs->dynamics_matrix, problem.matrix_start()[tree], problem.matrix_start()[tree + 1]);
    all(inputs->v_star, problem.velocity_start()[tree], problem.velocity_start()[tree + 1]);
  }
  const auto of_contact = [&](auto pool, int c) {
    all(inputs->jacobian, problem.jacobian_start()[c], problem.jacobian_start()[c + 1]);
    for (auto* values : {&inputs->v_hat, &inputs->surface_velocity}) {
      all(*values, 3 * static_cast<int64_t>(c), 3 * static_cast<int64_t>(c) + 3);
    }
    for (auto* values : {&inputs->tau_d, &inputs->mu, &inputs->mu_2, &inputs->stiffness,
                         &inputs->R_t, &inputs->R_n, &inputs->w, &inputs->adhesion}) {
      body((*values)[c]);
    }
    const int extra = problem.contact_extra()[c];
    if constexpr (HasAngularRows(pool.kind())) {
      const int angular = problem.general_friction()[extra].angular_contact;
      all(inputs->angular_jacobian, problem.angular_start()[angular],
          problem.angular_start()[angular + 1]);
      all(inputs->angular_v_hat, 3 * static_cast<int64_t>(angular),
          3 * static_cast<int64_t>(angular) + 3);
      for (double& coefficient : inputs->angular_friction[angular]) body(coefficient);
    }
    if constexpr (IsHuntCrossley(pool.kind())) {
      HuntCrossleyParameters& parameters = inputs->hunt_crossley[extra];
      body(parameters.elastic_force);
      body(parameters.dissipation);
      body(parameters.lagged_normal_impulse);
    }
  };
  const auto of_row = [&](int number) {
    RowParameters& row = inputs->rows[number];
    for (double* value :
         {&row.v_hat, &row.offset, &row.stiffness, &row.relaxation_time, &row.force_lower,
          &row.force_upper, &row.force_offset, &row.given_R, &row.given_w, &row.slip_parameter}) {
      body(*value);
    }
    all(inputs->row_coefficients, problem.row_start()[number], problem.row_start()[number + 1]);
  };
  ForPoolsOf(view, [&](auto pool) {
    const PoolRange range = view.range(pool);
    for (int i = range.begin; i < range.end; ++i) {
      const int number = view.layout(pool).order()[i];
      if constexpr (NumRows(pool.kind()) == 1) {
        of_row(number);
      } else {
        of_contact(pool, number);
      }
    }
  });
}

// The same of the velocities of the trees of the island.
template <typename Body>
void ForVelocitiesOf(const DerivativeScope& scope, std::vector<double>* values, Body&& body) {
  for (int slot = scope.view.range().slot_begin; slot < scope.view.range().slot_end; ++slot) {
    const int tree = scope.view.graph.islands().tree_of_slot()[slot];
    for (int i = scope.problem.velocity_start()[tree]; i < scope.problem.velocity_start()[tree + 1];
         ++i) {
      body((*values)[i]);
    }
  }
}

// The same of the outputs: those of a Tangent, or of a Cotangent, whose arrays may be empty.
template <typename Outputs, typename Body>
void ForOutputsOf(const ContactProblem& problem, const IslandView& view, Outputs& outputs,
                  Body&& body) {
  const auto all = [&](auto& values, int64_t begin, int64_t end) {
    if (values.empty()) return;
    for (int64_t i = begin; i < end; ++i) body(values[i]);
  };
  for (int slot = view.range().slot_begin; slot < view.range().slot_end; ++slot) {
    const int tree = view.graph.islands().tree_of_slot()[slot];
    all(outputs.velocity, problem.velocity_start()[tree], problem.velocity_start()[tree + 1]);
  }
  ForPoolsOf(view, [&](auto pool) {
    const PoolRange range = view.range(pool);
    for (int i = range.begin; i < range.end; ++i) {
      const int64_t number = view.layout(pool).order()[i];
      if constexpr (NumRows(pool.kind()) == 1) {
        all(outputs.row_impulse, number, number + 1);
        all(outputs.row_velocity, number, number + 1);
        continue;
      }
      all(outputs.impulse, 3 * number, 3 * number + 3);
      all(outputs.contact_velocity, 3 * number, 3 * number + 3);
      if constexpr (HasAngularRows(pool.kind())) {
        const int64_t angular =
            problem.general_friction()[problem.contact_extra()[number]].angular_contact;
        all(outputs.angular_impulse, 3 * angular, 3 * angular + 3);
      }
    }
  });
}

bool IsZero(const ContactProblem& problem, const IslandView& view, const Cotangent& cotangent) {
  if (cotangent.cost != 0) return false;
  bool is_zero = true;
  ForOutputsOf(problem, view, cotangent, [&](const double& value) { is_zero &= value == 0; });
  return is_zero;
}

// w and dw/dW of the constraints of an island, and the least distance from a kink.
class DelassusPass {
 public:
  explicit DelassusPass(const DerivativeScope& scope)
      : scope_(scope), view_(scope.view), chain_(scope.chain()) {}

  // `with_inverses`: A^-1 as well, without which there are no derivatives of w.
  double Run(bool with_inverses) {
    if (with_inverses || view_.range().num_rows > 0) InvertTrees();
    double margin = 1;
    ForPoolsOf(view_, [&](auto pool) {
      const PoolRange range = view_.range(pool);
      std::vector<DerivativeSums>& sums = scope_.adjoint->pools[pool].sums;
      ForSameChunks(view_.arena, range.unit_begin, range.unit_end, kGatherPairs,
                    [&](int begin, int end, int chunk) {
                      double& least = sums[range.begin + chunk].kink_margin;
                      least = 1;
                      if (scope_.stop.Requested()) return;
                      ForConstraintsOfUnits(view_, pool, begin, end, [&](int unit, int i) {
                        const int number = view_.layout(pool).order()[i];
                        SetDelassus(pool, unit, i, number);
                        least = std::min(least, KinkMargin(pool, i, number));
                      });
                    });
      ForChunks(nullptr, range.unit_begin, range.unit_end, kGatherPairs, [&](int, int, int chunk) {
        margin = std::min(margin, sums[range.begin + chunk].kink_margin);
      });
    });
    return margin;
  }

 private:
  void InvertTrees() {
    const ConstraintGraph& graph = view_.graph;
    ForSameChunks(view_.arena, view_.range().slot_begin, view_.range().slot_end,
                  kDifferentiateSlots, [&](int begin, int end, int) {
                    for (int slot = begin; slot < end; ++slot) {
                      if (scope_.stop.Requested()) return;
                      ForSize(graph.dofs()[slot], [&](auto n) {
                        DelassusInverse(
                            scope_.problem, view_.model.A_factor(graph, slot),
                            view_.model.D().data() + graph.velocity_start()[slot], n,
                            scope_.adjoint->A_inverse.data() + graph.matrix_start()[slot]);
                      });
                    }
                  });
  }
  template <int index>
  void SetDelassus(PoolIndex<index> pool, int unit, int i, int number) {
    auto& adjoint = scope_.adjoint->pools[pool];
    auto& w_by_W = adjoint.w_by_W.values[i];
    w_by_W = {};
    adjoint.w[i] = 0;
    if (!chain_.DependsOnDelassus(pool, number)) return;
    if constexpr (NumRows(pool.kind()) == 1) {
      adjoint.w[i] = scope_.problem.rows()[number].given_w;
      if (adjoint.w[i] != 0) return;
      adjoint.w[i] = RowDelassus(pool, unit) / scope_.unit();
      w_by_W(0, 0) = scope_.hold_delassus ? 0 : 1;
    } else {
      const double w = view_.model.w[number];
      adjoint.w[i] = w / scope_.unit();
      if (scope_.hold_delassus || scope_.problem.given_w()[number] != 0) return;
      const ContactPair& pair = view_.layout(pool).pairs()[unit];
      const auto& jacobians = view_.model.pools[pool].jacobians;
      const DelassusColumns W =
          Delassus(scope_.problem, view_.graph, view_.model, pair, jacobians.of(pair, i, false),
                   pair.high < 0 ? nullptr : jacobians.of(pair, i, true));
      if (Norm(W) == 0) return;
      for (int r = 0; r < 3; ++r) {
        w_by_W(r, 0) = W.x[r] / (9 * w);
        w_by_W(r, 1) = W.y[r] / (9 * w);
        w_by_W(r, 2) = W.n[r] / (9 * w);
      }
    }
  }
  template <int index>
  double RowDelassus(PoolIndex<index> pool, int row) const {
    const RowLayout& layout = view_.layout(pool);
    const RowJacobians& jacobians = view_.model.pools[pool].jacobians;
    double w = 0;
    for (const RowPart& part : layout.parts_of_row(row)) {
      ForInverseOfPart(scope_, layout, jacobians, part, [&](const double* x) {
        for (int64_t e = part.entry_begin; e < part.entry_end; ++e) {
          w += jacobians.at(e) * x[layout.dof()[e]];
        }
      });
    }
    return w;
  }

  template <int index>
  double KinkMargin(PoolIndex<index> pool, int i, int number) const {
    const auto& laws = view_.model.pools[pool].laws;
    const auto& v_c = scope_.data.pools[pool].v_c;
    KinkScales scales{
        .normal_speeds = 0,
        .regularization = chain_.BranchMargin(pool, number, scope_.adjoint->pools[pool].w[i])};
    if constexpr (NumRows(pool.kind()) > 1) {
      const int64_t normal = 3 * static_cast<int64_t>(number) + 2;
      scales.normal_speeds =
          std::abs(scope_.problem.v_hat()[normal]) +
          std::abs(ToLawVector(v_c.At(i))[2] + scope_.problem.surface_velocity()[normal]);
    }
    return laws.KinkMargin(i, v_c, scales);
  }

  const DerivativeScope& scope_;
  const IslandView& view_;
  const ParameterChain chain_;
};

void PlainHessians(const IslandView& view, SapData* data) {
  ForConstraintsOf(view, [&](auto pool, int begin, int end) {
    if (IsQuadratic(pool)) return;
    auto& state = data->pools[pool];
    view.model.pools[pool].laws.Hessians(begin, end, state.v_c, &state.G);
  });
}

class IslandDifferentiation {
 public:
  IslandDifferentiation(const DerivativeScope& scope, const SolverOptions& options,
                        const DerivativeRequest& request, HessianSystem* system,
                        SapWorkspace* workspace, IslandReport* report,
                        IslandDerivatives* derivatives)
      : scope_(scope),
        view_(scope.view),
        options_(options),
        request_(request),
        system_(*system),
        workspace_(*workspace),
        report_(*report),
        derivatives_(*derivatives) {}

  AdjointStatus Run() {
    const StepStatus polished = Polish();
    if (polished == StepStatus::kStopped) return AdjointStatus::kDeadline;
    if (polished != StepStatus::kOk) return AdjointStatus::kNumericalFailure;
    *derivatives_.kink_margin = DelassusPass(scope_).Run(!scope_.hold_delassus);
    bool accurate = report_.status == SolveStatus::kConverged;
    const AdjointStatus status = Differentiate(&accurate);
    report_.factorizations += system_.factorizations();
    if (status != AdjointStatus::kDifferentiated) Clear();
    if (status != AdjointStatus::kDifferentiated || accurate) return status;
    return AdjointStatus::kInaccurate;
  }

 private:
  AdjointStatus Differentiate(bool* accurate) {
    for (size_t k = 0; k < request_.cotangents.size(); ++k) {
      const Cotangent& cotangent = request_.cotangents[k];
      if (IsZero(scope_.problem, view_, cotangent)) continue;
      const StepStatus status = AddGradient(scope_, cotangent, &system_, &derivatives_.shared[k],
                                            &derivatives_.gradients[k]);
      if (status == StepStatus::kStopped) return AdjointStatus::kDeadline;
      *accurate &= status == StepStatus::kOk;
    }
    for (size_t k = 0; k < request_.directions.size(); ++k) {
      const StepStatus status = AddTangent(scope_, request_.directions[k], &system_,
                                           &derivatives_.costs[k], &derivatives_.tangents[k]);
      if (status == StepStatus::kStopped) return AdjointStatus::kDeadline;
      *accurate &= status == StepStatus::kOk;
    }
    return IsFinite() ? AdjointStatus::kDifferentiated : AdjointStatus::kNumericalFailure;
  }

  // v += dv, H dv = -grad l, where that does not increase the gradient.
  StepStatus Polish() {
    SapData& data = workspace_.data;
    AdjointData& adjoint = *scope_.adjoint;
    const int begin = view_.range().velocity_begin;
    const int end = view_.range().velocity_end;
    PlainHessians(view_, &data);
    KeepHessians();
    const StepStatus factored = system_.Factor();
    if (factored != StepStatus::kOk) return factored;
    const double before = ScaledNorm(data.gradient);
    if (!system_.Precondition(data.gradient, &adjoint.lambda)) return StepStatus::kStopped;
    for (int i = begin; i < end; ++i) {
      adjoint.v_before[i] = data.v[i];
      data.v[i] -= adjoint.lambda[i];
    }
    IslandNorms norms = Evaluate(view_, &data, &workspace_.scratch, scope_.stop);
    if (!norms.finite || !(norms.gradient <= before)) {
      std::copy(adjoint.v_before.begin() + begin, adjoint.v_before.begin() + end,
                data.v.begin() + begin);
      norms = Evaluate(view_, &data, &workspace_.scratch, scope_.stop);
    } else {
      PlainHessians(view_, &data);
      if (HessiansMoved()) system_.Moved();
    }
    ReportIterate(view_, options_, norms, data, scope_.stop, &workspace_.scratch, &report_);
    if (scope_.stop.Requested()) return StepStatus::kStopped;
    return norms.finite ? StepStatus::kOk : StepStatus::kNotPositiveDefinite;
  }

  // G of all constraints, kept where W_bar will be.
  void KeepHessians() {
    ForConstraintsOf(view_, [&](auto pool, int begin, int end) {
      if constexpr (!IsQuadratic(pool)) {
        for (int i = begin; i < end; ++i) {
          scope_.adjoint->pools[pool].W_bar.values[i] =
              ToLawMatrix(scope_.data.pools[pool].G.At(i));
        }
      }
    });
  }
  // Whether any G differs from what was kept by more than a share of 1e-6.
  bool HessiansMoved() const {
    constexpr double kShare2 = 1e-12;
    bool moved = false;
    ForPoolsOf(view_, [&](auto pool) {
      if constexpr (!IsQuadratic(pool)) {
        for (int i = view_.range(pool).begin; i < view_.range(pool).end; ++i) {
          const auto& before = scope_.adjoint->pools[pool].W_bar.At(i).entries;
          const auto now = ToLawMatrix(scope_.data.pools[pool].G.At(i)).entries;
          double difference2 = 0, size2 = 0;
          for (size_t k = 0; k < now.size(); ++k) {
            difference2 += (now[k] - before[k]) * (now[k] - before[k]);
            size2 += before[k] * before[k];
          }
          moved |= !(difference2 <= kShare2 * size2);
        }
      }
    });
    return moved;
  }

  // |D x|, D = diag(A)^-1/2.
  double ScaledNorm(const std::vector<double>& x) const {
    double sum = 0;
    for (int i = view_.range().velocity_begin; i < view_.range().velocity_end; ++i) {
      const double scaled = view_.model.D()[i] * x[i];
      sum += scaled * scaled;
    }
    return std::sqrt(sum);
  }

  // Calls body(double&) for every number of the island in the answer.
  template <typename Body>
  void ForDerivatives(Body&& body) {
    for (Gradient& gradient : derivatives_.gradients) {
      ForInputsOf(scope_, &gradient.problem, body);
      ForVelocitiesOf(scope_, &gradient.applied_impulse, body);
    }
    for (SharedInputs& shared : derivatives_.shared) {
      for (double* value : {&shared.time_step, &shared.beta, &shared.sigma, &shared.row_beta,
                            &shared.stiction_speed}) {
        body(*value);
      }
    }
    for (Tangent& tangent : derivatives_.tangents) {
      ForOutputsOf(scope_.problem, view_, tangent, body);
    }
    for (double& cost : derivatives_.costs) body(cost);
  }
  bool IsFinite() {
    bool is_finite = true;
    ForDerivatives([&](const double& value) { is_finite &= std::isfinite(value); });
    return is_finite;
  }
  void Clear() {
    ForDerivatives([](double& value) { value = 0; });
  }

  const DerivativeScope& scope_;
  const IslandView& view_;
  const SolverOptions& options_;
  const DerivativeRequest& request_;
  HessianSystem& system_;
  SapWorkspace& workspace_;
  IslandReport& report_;
  IslandDerivatives& derivatives_;
};

}  // namespace

AdjointStatus DifferentiateIsland(const ContactProblem& problem, const IslandView& view,
                                  const SolverOptions& options, const DerivativeRequest& request,
                                  const IslandFactorization& factorization, const StopToken& stop,
                                  SapWorkspace* workspace, AdjointData* adjoint,
                                  IslandReport* report, IslandDerivatives* derivatives) {
  const DerivativeScope scope{problem, view, stop, workspace->data, adjoint, request.hold_delassus};
  *derivatives->kink_margin = 0;
  if (stop.Requested() || report->status == SolveStatus::kCancelled) {
    return AdjointStatus::kDeadline;
  }
  if (report->status == SolveStatus::kNumericalFailure) return AdjointStatus::kNumericalFailure;
  const bool is_wanted = !request.directions.empty() ||
                         std::ranges::any_of(request.cotangents, [&](const Cotangent& cotangent) {
                           return !IsZero(problem, view, cotangent);
                         });
  if (!is_wanted) {
    *derivatives->kink_margin = DelassusPass(scope).Run(false);
    return report->status == SolveStatus::kConverged ? AdjointStatus::kDifferentiated
                                                     : AdjointStatus::kInaccurate;
  }
  if (factorization.plan == nullptr && view.range().num_velocities() > kDenseDofs) {
    return AdjointStatus::kDeadline;  // there was no time to plan a factorization
  }
  const bool single_precision =
      factorization.plan != nullptr && IsPreconditioned(*factorization.plan, options);
  HessianSystem hessian(view, factorization, single_precision, stop, workspace->data, workspace,
                        adjoint);
  return IslandDifferentiation(scope, options, request, &hessian, workspace, report, derivatives)
      .Run();
}

}  // namespace sap
