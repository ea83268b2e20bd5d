// The linear algebra of the interior-point method on one island: its states, residuals, and solves
// with its matrix (interior_point.h).
#pragma once

#include <limits>
#include <vector>

#include "solver/newton/conjugate_gradients.h"
#include "solver/newton/gmres.h"
#include "solver/newton/interior_state.h"
#include "solver/newton/newton_control.h"
#include "solver/newton/newton_step.h"
#include "solver/newton/sap_solver.h"
#include "solver/newton/slot_loops.h"

namespace sap {

// A sum and a minimum over constraints.
struct Total {
  double value{0};
  Total& operator+=(const Total& part) {
    value += part.value;
    return *this;
  }
};
struct Least {
  double cones{std::numeric_limits<double>::infinity()},
      rows{std::numeric_limits<double>::infinity()};
  Least& operator+=(const Least& part) {
    cones = std::min(cones, part.cones);
    rows = std::min(rows, part.rows);
    return *this;
  }
  double value() const { return std::min(cones, rows); }
};

struct InteriorSystem {
  // Arguments as those of InteriorPointSolve. Sets the laws of the states, and nothing else of
  // them.
  InteriorSystem(const IslandView& view, const SolverOptions& options, const StopToken& stop,
                 HessianFactor* factor, SapWorkspace* workspace);

  template <typename PoolIndexType>
  auto& StateAt(PoolIndexType pool, int i) {
    return interior.states[pool].At(i);
  }

  // Calls body(state, pool, constraint) for the constraints with inequalities, by chunks.
  template <typename Body>
  void ForStates(Body&& body) {
    ForInequalities(view, [&](auto pool) {
      const PoolRange range = view.range(pool);
      ForChunks(view.arena, range.begin, range.end, kConstraints, [&](int begin, int end, int) {
        for (int i = begin; i < end; ++i) body(StateAt(pool, i), pool, i);
      });
    });
  }
  // The sum over body(state, pool, constraint, &part), by chunks in their order.
  template <typename Part, typename Body>
  Part Reduce(Body&& body) {
    Part sum;
    std::vector<Part> parts(most_chunks);
    ForInequalities(view, [&](auto pool) {
      const PoolRange range = view.range(pool);
      AddChunks(view.arena, range.begin, range.end, kConstraints, parts.data(), &sum,
                [&](int begin, int end) {
                  Part part;
                  for (int i = begin; i < end; ++i) body(StateAt(pool, i), pool, i, &part);
                  return part;
                });
    });
    return sum;
  }
  template <typename Body>
  double SumOver(Body&& body) {
    return Reduce<Total>([&](auto& state, auto pool, int i, Total* sum) {
             sum->value += body(state, pool, i);
           })
        .value;
  }

  void Evaluate() { *norms = EvaluateIterate(view, options, stop, &data, &scratch); }
  bool Converged() const {
    return MeetsTolerance(*norms, AbsoluteTolerance(view, options), options);
  }
  void Keep(std::vector<double>* kept) const {
    const auto v = data.v.begin();
    kept->assign(v + view.range().velocity_begin, v + view.range().velocity_end);
  }
  void Restore(const std::vector<double>& kept) {
    std::ranges::copy(kept, data.v.begin() + view.range().velocity_begin);
  }

  // e at the v at which data was evaluated last.
  template <typename PoolIndexType, typename State>
  auto VelocityOf(PoolIndexType pool, int i, const State& state) const {
    if constexpr (kIsRow<State>) {
      return state.row.p.v_hat - data.pools[pool].v_c.At(i)[0];
    } else {
      return state.cone.e(ToLawVector(data.pools[pool].v_c.At(i)));
    }
  }

  // data.gradient := A (v - v*) - J' gamma, with impulses in the scratch and those of bilateral
  // rows at v.
  void SetResidual();

  // Factors H of data.G, its diagonal raised where rounding made it indefinite. False if stopped,
  // or where it stays so.
  bool Factor();

  // step.v := H^-1 b for the b in vectors.residual, with one refinement by products with H of which
  // block(state, pool, i) gives M B dv at J dv in the step, as an impulse. False if stopped or not
  // solved.
  template <typename Block>
  bool SolveFactored(Block&& block) {
    if (factor.single_precision()) return SolveInSinglePrecision(block);
    ForVelocities(view, [&](int i) { step.v[i] = vectors.residual[i]; });
    if (!factor.Solve(step.v, &step.v)) return false;
    MultiplyBlocks(block, step.v, &vectors.product);
    ForVelocities(view,
                  [&](int i) { vectors.product[i] = vectors.residual[i] - vectors.product[i]; });
    if (!factor.Solve(vectors.product, &vectors.product)) return false;
    ForVelocities(view, [&](int i) { step.v[i] += vectors.product[i]; });
    return !stop.Requested();
  }
  // The same where the blocks of H are not symmetric and those that were factored are near them.
  template <typename Block>
  bool SolveNonsymmetric(Block&& block) {
    return SolveByGmres(
               view, kGmresResidual, vectors.residual,
               [&](const std::vector<double>& r, std::vector<double>* z) {
                 return factor.Solve(r, z);
               },
               [&](const std::vector<double>& x, std::vector<double>* product) {
                 MultiplyBlocks(block, x, product);
                 return !stop.Requested();
               },
               &workspace.krylov, &step.v) == StepStatus::kOk;
  }
  template <typename Block>
  bool SolveInSinglePrecision(Block&& block) {
    ForVelocities(view, [&](int i) { scratch.errors[i] = vectors.residual[i]; });
    const StepStatus status = SolveByConjugateGradients(
        view, kSolveGoal,
        [&](const std::vector<double>& r, std::vector<double>* z) { return factor.Solve(r, z); },
        [&](const std::vector<double>& p, std::vector<double>* product) {
          workspace.hessian.Multiply(view, p, stop, product);
          return !stop.Requested();
        },
        &vectors, &step.v);
    if (status == StepStatus::kOk) return true;
    if (status == StepStatus::kStopped) return false;
    factor.UseDoublePrecision();
    if (factor.Factor(workspace.hessian) != StepStatus::kOk) return false;
    ForVelocities(view, [&](int i) { vectors.residual[i] = scratch.errors[i]; });
    return SolveFactored(block);
  }
  // *result := H x. Overwrites the pools of the step.
  template <typename Block>
  void MultiplyBlocks(Block&& block, const std::vector<double>& x, std::vector<double>* result) {
    ConstraintVelocities(view, x, stop, &step.pools);
    ForStates([&](auto& state, auto pool, int i) {
      scratch.pools[pool].impulse_errors.Set(i, block(state, pool, i));
    });
    ForPoolsOf(view, [&](auto pool) {
      if constexpr (IsQuadratic(pool)) {
        const PoolRange range = view.range(pool);
        for (int i = range.begin; i < range.end; ++i) {
          const double inv_R = view.model.pools[pool].laws.parameters(i).inv_R;
          scratch.pools[pool].impulse_errors.Set(i, {inv_R * step.pools[pool].v_c.At(i)[0]});
        }
      }
    });
    ForSlots(view, kEvaluateSlots, [&](int slot, auto n, int start) {
      if (stop.Requested()) return;
      double* const product = result->data() + start;
      view.model.MultiplyA(view.graph, slot, n, x.data() + start, product);
      if (view.coupled()) AddCoupledProduct(view, slot, x, product);
      ForPoolsOf(view, [&](auto pool) {
        AddTreeImpulse(view.arena, view.model.pools[pool].jacobians, view.layout(pool), slot, n,
                       scratch.pools[pool].impulse_errors, product);
      });
    });
  }
  // Impulses of M B dv and of G J dv.
  template <typename State, typename PoolIndexType>
  auto TimesBlock(const State& state, PoolIndexType pool, int i) {
    const auto dv_c = ToLawVector(step.pools[pool].v_c.At(i));
    if constexpr (kIsRow<State>) {
      return LawVector<1>{state.slope * dv_c[0]};
    } else {
      return state.cone.Unscaled(state.TimesBlock(state.cone.Scaled(dv_c)));
    }
  }
  template <typename State, typename PoolIndexType>
  auto TimesG(const State&, PoolIndexType pool, int i) {
    constexpr int kRows = PoolAt<PoolIndexType::value>::Laws::kRows;
    const LawVector<kRows> dv_c = ToLawVector(step.pools[pool].v_c.At(i));
    const LawMatrix<kRows> G = ToLawMatrix(data.pools[pool].G.At(i));
    LawVector<kRows> product{};
    for (int a = 0; a < kRows; ++a) {
      for (int b = 0; b < kRows; ++b) product[a] += G(a, b) * dv_c[b];
    }
    return product;
  }

  const IslandView& view;
  const SolverOptions& options;
  const StopToken& stop;
  HessianFactor& factor;
  SapWorkspace& workspace;
  SapData& data;
  SapStep& step;
  SapScratch& scratch;
  ConjugateVectors& vectors;
  InteriorStates interior;
  int* iterations{nullptr};
  IslandNorms* norms{nullptr};
  int most_chunks{0};
  bool exact_friction{false};  // the cones have the exact law (laws/de_saxce.h)

  static constexpr double kGmresResidual = 1e-6;
  static constexpr ConjugateGoal kSolveGoal{.max_products = 12, .residual = 1e-9};
};

}  // namespace sap
