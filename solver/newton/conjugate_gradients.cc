#include "solver/newton/conjugate_gradients.h"

#include <algorithm>

#include "solver/pools/jacobian_kernels.h"

namespace sap {

namespace {

// Size of the residual that is left, relative to the gradient, both scaled by D. A Newton step is
// good to far less.
constexpr double kStepTolerance = 1e-4;

constexpr int kMaxIterations = 8;

// sum_i a_i b_i over the island, by chunks.
double Dot(const IslandView& view, const std::vector<double>& a, const std::vector<double>& b,
           std::vector<double>* slot_sums) {
  const IslandRange& range = view.range();
  const std::span<const int> start = view.graph.velocity_start();
  ForChunks(view.arena, range.slot_begin, range.slot_end, kDotSlots,
            [&](int begin, int end, int chunk) {
              double sum = 0;
              for (int i = start[begin]; i < start[end]; ++i) sum += a[i] * b[i];
              (*slot_sums)[range.slot_begin + chunk] = sum;
            });
  double sum = 0;
  for (const double part :
       kDotSlots.Parts(*slot_sums, range.slot_begin, range.slot_begin, range.slot_end)) {
    sum += part;
  }
  return sum;
}

// |D r|^2.
double ScaledNorm2(const IslandView& view, const std::vector<double>& r) {
  double sum = 0;
  for (int i = view.range().velocity_begin; i < view.range().velocity_end; ++i) {
    const double scaled = view.model.D()[i] * r[i];
    sum += scaled * scaled;
  }
  return sum;
}

// y := H x for one slot: its diagonal block and the pairs it is in.
void MultiplySlot(const IslandView& view, const Hessian& hessian, int slot,
                  const std::vector<double>& x, std::vector<double>* y) {
  const ConstraintGraph& graph = view.graph;
  double* out = y->data() + graph.velocity_start()[slot];
  ForSize(graph.dofs()[slot], [&](auto n) {
    MultiplySymmetric(hessian.diagonal_block(graph, slot), n,
                      x.data() + graph.velocity_start()[slot], out);
    for (const PairSide& side : graph.sides_of(slot)) {
      const TreePair& pair = graph.pairs()[side.pair];
      const double* block = hessian.off_diagonal_block(pair);
      const int other = side.is_high ? pair.low : pair.high;
      const double* x_other = x.data() + graph.velocity_start()[other];
      ForSize(graph.dofs()[other], [&](auto m) {
        if (side.is_high) {
          for (int j = 0; j < m; ++j) {
            for (int i = 0; i < n; ++i) out[i] += block[j * n + i] * x_other[j];
          }
        } else {
          for (int i = 0; i < n; ++i) {
            double sum = 0;
            for (int j = 0; j < m; ++j) sum += block[i * m + j] * x_other[j];
            out[i] += sum;
          }
        }
      });
    }
  });
}

}  // namespace

void ConjugateVectors::Resize(const ConstraintGraph& graph) {
  for (std::vector<double>* array : {&residual, &preconditioned, &direction, &product}) {
    array->resize(graph.velocity_start().back());
  }
  slot_sums.resize(graph.num_slots());
}

StepStatus SolvePreconditionedStep(const IslandView& view, const Hessian& hessian,
                                   const EliminationPlan& plan, const StopToken& stop,
                                   const SapData& data, BlockCholesky<float>* cholesky,
                                   ConjugateVectors* vectors, SapStep* step) {
  using FactorStatus = BlockCholesky<float>::FactorStatus;
  const IslandRange& range = view.range();
  const FactorStatus factored = cholesky->Factor(plan, hessian.diagonal(range),
                                                 hessian.off_diagonal(range), stop, view.arena);
  if (factored == FactorStatus::kStopped) return StepStatus::kStopped;
  if (factored == FactorStatus::kNotPositiveDefinite) return StepStatus::kNotPositiveDefinite;

  auto& [r, z, p, Hp, sums] = *vectors;
  const int begin = range.velocity_begin;
  const int end = range.velocity_end;
  const size_t n = range.num_velocities();
  for (int i = begin; i < end; ++i) {
    step->v[i] = 0;
    r[i] = -data.gradient[i];
    p[i] = 0;
  }
  const double goal = kStepTolerance * kStepTolerance * ScaledNorm2(view, r);
  double last_rz = 1;
  for (int iteration = 0; iteration < kMaxIterations; ++iteration) {
    if (!cholesky->Solve(plan, {r.data() + begin, n}, {z.data() + begin, n}, stop, view.arena)) {
      return StepStatus::kStopped;
    }
    const double rz = Dot(view, r, z, &sums);
    const double beta = iteration == 0 ? 0.0 : rz / last_rz;
    last_rz = rz;
    for (int i = begin; i < end; ++i) p[i] = z[i] + beta * p[i];
    ForChunks(view.arena, range.slot_begin, range.slot_end, kProductSlots,
              [&, &p = p, &Hp = Hp](int from, int to, int) {
                if (stop.Requested()) return;
                for (int slot = from; slot < to; ++slot) MultiplySlot(view, hessian, slot, p, &Hp);
              });
    if (stop.Requested()) return StepStatus::kStopped;
    const double curvature = Dot(view, p, Hp, &sums);
    if (!(rz > 0) || !(curvature > 0)) return StepStatus::kNotPositiveDefinite;
    const double alpha = rz / curvature;
    for (int i = begin; i < end; ++i) {
      step->v[i] += alpha * p[i];
      r[i] -= alpha * Hp[i];
    }
    if (ScaledNorm2(view, r) <= goal) return StepStatus::kOk;
  }
  return StepStatus::kNotPositiveDefinite;
}

}  // namespace sap
