#include "solver/sap/certificate.h"

#include <cmath>
#include <limits>

#include "solver/cholesky/dense_cholesky.h"
#include "solver/sap/jacobian_kernels.h"

namespace sap {

namespace {

constexpr double kUnitRoundoff = 0.5 * std::numeric_limits<double>::epsilon();
// Rounding steps of a projection, generously counted.
constexpr double kProjectionSteps = 32;

// What the impulse of one contact can be off by, component by component, from the rounding of v_c
// (known to within d) and of the projection itself. |d gamma / d v_c| is bounded over all regions,
// so a contact next to a boundary is covered.
ContactVector<double> ImpulseError(const ConeParameters<double>& p,
                                   const ContactVector<double>& gamma,
                                   const ContactVector<double>& d) {
  const double d_t = std::abs(d.x) + std::abs(d.y);
  const double k_mu = p.c * p.mu * p.inv_R_n;
  const double tangential = 2 * p.inv_R_t * d_t + k_mu * d.n;
  const double normal = p.inv_R_n * d.n + k_mu * d_t;
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
    const double steps = (pair.dofs_low + pair.dofs_high + 4) * kUnitRoundoff;
    for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
      const ConeParameters<double> parameters = view.model.contacts().At(i, double{});
      ContactVector<double> d{std::abs(parameters.v_hat_x), std::abs(parameters.v_hat_y),
                              std::abs(parameters.v_hat_n)};
      ForSize(pair.dofs_low, [&](auto n) {
        AddAbsoluteJv(view.model.J(pair, i, false), n,
                      data.v.data() + graph.velocity_start()[pair.low], &d);
      });
      if (pair.high >= 0) {
        ForSize(pair.dofs_high, [&](auto n) {
          AddAbsoluteJv(view.model.J(pair, i, true), n,
                        data.v.data() + graph.velocity_start()[pair.high], &d);
        });
      }
      errors->Set(i, ImpulseError(parameters, data.gamma.At(i, double{}),
                                  {steps * d.x, steps * d.y, steps * d.n}));
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
  for (int s = graph.side_start()[slot]; s < graph.side_start()[slot + 1]; ++s) {
    const ContactPair& pair = graph.pairs()[graph.sides()[s].pair];
    terms += 3 * (pair.contact_end - pair.contact_begin);
  }
  const double sum_steps = terms * kUnitRoundoff;
  for (int s = graph.side_start()[slot]; s < graph.side_start()[slot + 1]; ++s) {
    const PairSide side = graph.sides()[s];
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

// sum := |L^-1| e, column by column of L^-1. Forward substitution with all signs turned alike would
// be cheaper, but its bound grows beyond all use for the ill-conditioned matrices of long chains.
template <typename Size>
void MultiplyAbsoluteInverse(const double* L, Size n, const double* e, double* column,
                             double* sum) {
  for (int i = 0; i < n; ++i) sum[i] = 0;
  for (int k = 0; k < n; ++k) {
    column[k] = 1;
    sum[k] += e[k];
    for (int i = k + 1; i < n; ++i) {
      double x = 0;
      for (int j = k; j < i; ++j) x -= L[i * n + j] * column[j];
      column[i] = x;
      sum[i] += std::abs(x) * e[k];
    }
  }
}

// Adds |A^-1/2 grad l|^2 of one slot, and the same of what rounding may have made of the gradient.
template <typename Size>
void BoundSlot(const IslandView& view, const ContactVectors& errors, int slot, Size n,
               SapData* data, PartialNorms* sums) {
  const int start = view.graph.velocity_start()[slot];
  const double* L = view.model.A_factor(view.graph, slot);
  double* error = data->step.data() + start;
  double* column = data->momentum_step.data() + start;
  double* sum = data->momentum_change.data() + start;
  double* x = data->gradient.data() + start;
  GradientError(view, *data, errors, slot, n, error);
  MultiplyAbsoluteInverse(L, n, error, column, sum);
  SolveUnitLower(L, n, x);
  for (int i = 0; i < n; ++i) {
    sums->gradient2 += x[i] * x[i] * L[i * n + i];
    sums->error2 += sum[i] * sum[i] * L[i * n + i];
  }
}

}  // namespace

double OptimalityGapBound(const IslandView& view, SapData* data, const StopToken& stop) {
  constexpr Chunks kPairChunks{kPairsPerChunk, 6000};
  constexpr Chunks kSlotChunks{kSlotsPerChunk, 8000};
  const ContactGraph& graph = view.graph;
  const IslandRange& range = view.range();
  ContactVectors& errors = data->v_c_step;
  ForChunks(view.arena, range.pair_begin, range.pair_end, kPairChunks,
            [&](int begin, int end, int) {
              if (!stop.Cancelled()) ImpulseErrors(view, *data, begin, end, &errors);
            });
  ForChunks(view.arena, range.slot_begin, range.slot_end, kSlotChunks,
            [&](int begin, int end, int chunk) {
              if (stop.Cancelled()) return;
              PartialNorms sums;
              for (int slot = begin; slot < end; ++slot) {
                ForSize(graph.dofs()[slot],
                        [&](auto n) { BoundSlot(view, errors, slot, n, data, &sums); });
              }
              data->slot_norms[range.slot_begin + chunk] = sums;
            });
  PartialNorms sums;
  ForChunks(nullptr, range.slot_begin, range.slot_end, kSlotChunks, [&](int, int, int chunk) {
    sums.gradient2 += data->slot_norms[range.slot_begin + chunk].gradient2;
    sums.error2 += data->slot_norms[range.slot_begin + chunk].error2;
  });
  const double norm = std::sqrt(sums.gradient2) + std::sqrt(sums.error2);
  const double bound = 0.5 * norm * norm;
  return std::isfinite(bound) ? bound : std::numeric_limits<double>::infinity();
}

}  // namespace sap
