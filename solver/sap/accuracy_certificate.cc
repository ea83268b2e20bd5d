#include "solver/sap/accuracy_certificate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "solver/cholesky/dense_cholesky.h"
#include "solver/sap/jacobian_kernels.h"
#include "solver/sap/tree_scratch.h"

namespace sap {

namespace {

constexpr double kUnitRoundoff = 0.5 * std::numeric_limits<double>::epsilon();
// Rounding steps of a projection, generously counted.
constexpr double kProjectionSteps = 32;
// Rounding steps from a product J v to the terms of gamma, beyond those of the product: 2 of v_hat,
// 1 of the difference, 2 of the product with 1/R_t, 3 of the norm, 4 of the product with mu_hat.
constexpr int kVelocitySteps = 12;

// What the impulse of one contact can be off by, component by component, from the rounding of v_c
// (known to within `error`) and of the projection itself. |d gamma / d v_c| is bounded over all
// regions, so a contact next to a boundary is covered.
ContactVector<double> ImpulseError(const ConeParameters<double>& p,
                                   const ContactVector<double>& gamma,
                                   const ContactVector<double>& error) {
  const double error_t = std::abs(error.x) + std::abs(error.y);
  const double G_tn = p.slide_factor * p.mu * p.inv_R_n;
  const double tangential = 2 * p.inv_R_t * error_t + G_tn * error.n;
  const double normal = p.inv_R_n * error.n + G_tn * error_t;
  const double own = kProjectionSteps * kUnitRoundoff;
  return {tangential + own * std::abs(gamma.x), tangential + own * std::abs(gamma.y),
          normal + own * std::abs(gamma.n)};
}

// Adds |J| |u| of one contact.
template <typename Size>
void AddAbsoluteJv(const double* J, Size n, const double* u, ContactVector<double>* sum) {
  for (int i = 0; i < n; ++i) {
    const double size = std::abs(u[i]);
    sum->x += std::abs(J[i]) * size;
    sum->y += std::abs(J[n + i]) * size;
    sum->n += std::abs(J[2 * n + i]) * size;
  }
}

// Bounds on the rounding errors of the impulses of pairs [begin, end).
void ImpulseErrors(const IslandView& view, const SapData& data, int begin, int end,
                   ContactVectors* errors) {
  const ContactGraph& graph = view.graph;
  for (int p = begin; p < end; ++p) {
    const ContactPair& pair = graph.pairs()[p];
    const double steps = (pair.dofs_low + pair.dofs_high + kVelocitySteps) * kUnitRoundoff;
    for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
      const ConeParameters<double> parameters = view.model.contacts().At(i, double{});
      ContactVector<double> sizes{std::abs(parameters.v_hat_x), std::abs(parameters.v_hat_y),
                                  std::abs(parameters.v_hat_n)};
      ForSize(pair.dofs_low, [&](auto n) {
        AddAbsoluteJv(view.model.J(pair, i, false), n,
                      data.v.data() + graph.velocity_start()[pair.low], &sizes);
      });
      if (pair.high >= 0) {
        ForSize(pair.dofs_high, [&](auto n) {
          AddAbsoluteJv(view.model.J(pair, i, true), n,
                        data.v.data() + graph.velocity_start()[pair.high], &sizes);
        });
      }
      errors->Set(i, ImpulseError(parameters, data.gamma.At(i, double{}),
                                  {steps * sizes.x, steps * sizes.y, steps * sizes.n}));
    }
  }
}

// Bound on the rounding error of the gradient of one slot.
template <typename Size>
void GradientError(const IslandView& view, const SapData& data, const ContactVectors& errors,
                   int slot, Size n, double* error) {
  const ContactGraph& graph = view.graph;
  const double* A = view.model.A(graph, slot);
  const double* v = data.v.data() + graph.velocity_start()[slot];
  const double* v_star = view.model.v_star().data() + graph.velocity_start()[slot];
  for (int i = 0; i < n; ++i) error[i] = 0;
  for (int k = 0; k < n; ++k) {
    const double size = (n + 4) * kUnitRoundoff * (std::abs(v[k]) + std::abs(v_star[k]));
    for (int i = 0; i < n; ++i) error[i] += std::abs(A[k * n + i]) * size;
  }
  int terms = 4;
  for (const PairSide& side : graph.sides_of(slot)) {
    const ContactPair& pair = graph.pairs()[side.pair];
    terms += 3 * (pair.contact_end - pair.contact_begin);
  }
  const double sum_steps = terms * kUnitRoundoff;
  for (const PairSide& side : graph.sides_of(slot)) {
    const ContactPair& pair = graph.pairs()[side.pair];
    for (int c = pair.contact_begin; c < pair.contact_end; ++c) {
      const double* J = view.model.J(pair, c, side.is_high);
      const double x = errors.x[c] + sum_steps * std::abs(data.gamma.x[c]);
      const double y = errors.y[c] + sum_steps * std::abs(data.gamma.y[c]);
      const double z = errors.n[c] + sum_steps * std::abs(data.gamma.n[c]);
      for (int i = 0; i < n; ++i) {
        error[i] += std::abs(J[i]) * x + std::abs(J[n + i]) * y + std::abs(J[2 * n + i]) * z;
      }
    }
  }
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
void BoundSlot(const IslandView& view, const SapData& data, const ContactVectors& errors, int slot,
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
  const ContactGraph& graph = view.graph;
  const IslandRange& range = view.range();
  ContactVectors& errors = scratch->impulse_errors;
  ForChunks(view.arena, range.pair_begin, range.pair_end, kCertifyPairs,
            [&](int begin, int end, int) {
              if (!stop.Cancelled()) ImpulseErrors(view, data, begin, end, &errors);
            });
  ForChunks(view.arena, range.slot_begin, range.slot_end, kCertifySlots,
            [&](int begin, int end, int chunk) {
              if (stop.Cancelled()) return;
              PartialNorms sums;
              for (int slot = begin; slot < end; ++slot) {
                ForSize(graph.dofs()[slot], [&](auto n) {
                  WithTreeScratch((2 * kNumLanes<double> + 2) * n, [&](double* of_tree) {
                    BoundSlot(view, data, errors, slot, n, stop, of_tree, &sums);
                  });
                });
              }
              scratch->slot_norms[range.slot_begin + chunk] = sums;
            });
  PartialNorms sums;
  ForChunks(nullptr, range.slot_begin, range.slot_end, kCertifySlots, [&](int, int, int chunk) {
    sums.gradient2 += scratch->slot_norms[range.slot_begin + chunk].gradient2;
    sums.error2 += scratch->slot_norms[range.slot_begin + chunk].error2;
  });
  const double norm = std::sqrt(sums.gradient2) + std::sqrt(sums.error2);
  const double bound = 0.5 * norm * norm;
  return std::isfinite(bound) ? bound : std::numeric_limits<double>::infinity();
}

}  // namespace sap
