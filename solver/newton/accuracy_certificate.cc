#include "solver/newton/accuracy_certificate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "solver/cholesky/dense_cholesky.h"
#include "solver/pools/jacobian_kernels.h"

namespace sap {

namespace {

template <size_t rows>
void Scale(double factor, std::array<double, rows>* vector) {
  for (double& component : *vector) component *= factor;
}
void Scale(double factor, ContactVector<double>* vector) {
  *vector = {factor * vector->x, factor * vector->y, factor * vector->n};
}
template <size_t rows>
std::array<double, rows> Sizes(std::array<double, rows> vector) {
  for (double& component : vector) component = std::abs(component);
  return vector;
}
ContactVector<double> Sizes(const ContactVector<double>& vector) {
  return {std::abs(vector.x), std::abs(vector.y), std::abs(vector.n)};
}

// Bounds on the rounding errors of the impulses of units [begin, end) of a pool.
template <typename PoolIndexType, typename Vectors>
void ImpulseErrors(const IslandView& view, PoolIndexType pool, const SapData& data, int begin,
                   int end, Vectors* errors) {
  const auto& [laws, jacobians] = view.model.pools[pool];
  const auto& layout = view.layout(pool);
  const auto& state = data.pools[pool];
  jacobians.ForSizes(
      view.graph, layout, begin, end, data.v,
      [&, &laws = laws](int i) { return Sizes(laws.target(i)); },
      [&, &laws = laws](int i, auto& error, int terms) {
        Scale((terms + kVelocitySteps) * kUnitRoundoff, &error);
        errors->Set(i, laws.ImpulseError(i, state.v_c, state.gamma, error));
      });
}

// Bound on the rounding error of the gradient of one slot.
template <typename Size>
void GradientError(const IslandView& view, const SapData& data, const SapScratch& scratch, int slot,
                   Size n, double* error) {
  const ConstraintGraph& graph = view.graph;
  const double* A = view.model.A(graph, slot);
  const double* v = data.v.data() + graph.velocity_start()[slot];
  const double* v_star = view.model.v_star().data() + graph.velocity_start()[slot];
  for (int i = 0; i < n; ++i) error[i] = 0;
  for (int k = 0; k < n; ++k) {
    const double size = (n + 4) * kUnitRoundoff * (std::abs(v[k]) + std::abs(v_star[k]));
    for (int i = 0; i < n; ++i) error[i] += std::abs(A[k * n + i]) * size;
  }
  int terms = 4;
  ForPoolsOf(view, [&](auto pool) {
    terms += view.model.pools[pool].jacobians.NumImpulseTerms(view.layout(pool), slot);
  });
  const double sum_steps = terms * kUnitRoundoff;
  ForPoolsOf(view, [&view, &data, &scratch, slot, n, sum_steps, error](auto pool) {
    view.model.pools[pool].jacobians.AddImpulseSizes(view.layout(pool), slot, n,
                                                     scratch.pools[pool].impulse_errors, sum_steps,
                                                     data.pools[pool].gamma, error);
  });
}

// Four columns of L^-1 at a time: sum += |L^-1| e, by lanes, and the diagonal of A^-1 weighted by
// that of A. Forward substitution with all signs turned alike would be cheaper, but its bound grows
// beyond all use for the ill-conditioned matrices of long chains. Scratch of n.
template <typename Size>
double MultiplyAbsoluteInverse(const double* A, const double* L, Size n, const double* e,
                               const StopToken& stop, Lanes4* columns, Lanes4* sum) {
  double weighted_trace = 0;
  for (int i = 0; i < n; ++i) sum[i] = Lanes4{};
  for (int k = 0; k < n; k += kNumLanes<double>) {
    if (n > kScalarDofs && stop.Cancelled()) break;
    Lanes4 e_k{};
    Lanes4 weight{};
    for (int i = k; i < n; ++i) columns[i] = Lanes4{};
    for (int lane = 0; lane < kNumLanes<double> && k + lane < n; ++lane) {
      columns[k + lane][lane] = 1;
      e_k[lane] = e[k + lane];
      weight[lane] = A[(k + lane) * n + k + lane];
    }
    SolveUnitLower(L, n, columns, k);
    Lanes4 inverse_diagonal{};
    for (int i = k; i < n; ++i) {
      const Lanes4 size = columns[i] < 0.0 ? -columns[i] : columns[i];
      sum[i] += size * e_k;
      inverse_diagonal += size * size * L[i * n + i];
    }
    weighted_trace += Sum(inverse_diagonal * weight);
  }
  return weighted_trace;
}

// Adds |A^-1/2 grad l|^2 of one slot, and the same of what rounding may have made of the gradient.
// Scratch of 10 n.
template <typename Size>
void BoundSlot(const IslandView& view, const SapData& data, const SapScratch& errors, int slot,
               Size n, const StopToken& stop, double* scratch, PartialNorms* sums) {
  const double* A = view.model.A(view.graph, slot);
  const double* L = view.model.A_factor(view.graph, slot);
  const double* gradient = data.gradient.data() + view.graph.velocity_start()[slot];
  auto* columns = reinterpret_cast<Lanes4*>(scratch);
  auto* sum = columns + n;
  double* error = scratch + 2 * kNumLanes<double> * n;
  double* x = error + n;
  GradientError(view, data, errors, slot, n, error);
  const double weighted_trace = MultiplyAbsoluteInverse(A, L, n, error, stop, columns, sum);
  std::copy_n(gradient, static_cast<int>(n), x);
  SolveUnitLower(L, n, x);
  double gradient2 = 0;
  double error2 = 0;
  for (int i = 0; i < n; ++i) {
    const double e = Sum(sum[i]);
    gradient2 += x[i] * x[i] * L[i * n + i];
    error2 += e * e * L[i * n + i];
  }
  const double rho = (3.0 * n + 1) * n * kUnitRoundoff * weighted_trace;
  const double inflation = rho < 1 ? 1 / (1 - rho) : std::numeric_limits<double>::infinity();
  sums->gradient2 += inflation * gradient2;
  sums->error2 += inflation * error2;
}

}  // namespace

double OptimalityGapBound(const IslandView& view, const SapData& data, const StopToken& stop,
                          SapScratch* scratch) {
  const ConstraintGraph& graph = view.graph;
  const IslandRange& range = view.range();
  ForPoolsOf(view, [&](auto pool) {
    const PoolRange units = view.range(pool);
    ForChunks(view.arena, units.unit_begin, units.unit_end, kCertifyPairs,
              [&](int begin, int end, int) {
                if (stop.Cancelled()) return;
                ImpulseErrors(view, pool, data, begin, end, &scratch->pools[pool].impulse_errors);
              });
  });
  ForChunks(view.arena, range.slot_begin, range.slot_end, kCertifySlots,
            [&](int begin, int end, int chunk) {
              if (stop.Cancelled()) return;
              PartialNorms sums;
              for (int slot = begin; slot < end; ++slot) {
                ForSize(graph.dofs()[slot], [&](auto n) {
                  WithTreeScratch((2 * kNumLanes<double> + 2) * n, [&](double* of_tree) {
                    BoundSlot(view, data, *scratch, slot, n, stop, of_tree, &sums);
                  });
                });
              }
              scratch->slot_norms[range.slot_begin + chunk] = sums;
            });
  PartialNorms sums;
  for (const PartialNorms& part : kCertifySlots.Parts(scratch->slot_norms, range.slot_begin,
                                                      range.slot_begin, range.slot_end)) {
    sums.gradient2 += part.gradient2;
    sums.error2 += part.error2;
  }
  const double norm = std::sqrt(sums.gradient2) + std::sqrt(sums.error2);
  const double bound = 0.5 * norm * norm;
  return std::isfinite(bound) ? bound : std::numeric_limits<double>::infinity();
}

}  // namespace sap
