#include "solver/certificate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "solver/dense_cholesky.h"
#include "solver/jacobian_kernels.h"

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
void AddAbsoluteJv(const double* J, int n, const double* u, ContactVector<double>* sum) {
  for (int i = 0; i < n; ++i) {
    const double size = std::abs(u[i]);
    sum->x += std::abs(J[i]) * size;
    sum->y += std::abs(J[n + i]) * size;
    sum->n += std::abs(J[2 * n + i]) * size;
  }
}

// Rounding error of J' gamma as it enters the gradient of `slot`, added to error[n].
void AddContactErrors(const IslandView& view, const SapData& data, int slot, double* error) {
  const ContactGraph& graph = view.graph;
  const int n = graph.dofs()[slot];
  const int terms = 3 * (graph.side_start()[slot + 1] - graph.side_start()[slot]) + 4;
  for (int s = graph.side_start()[slot]; s < graph.side_start()[slot + 1]; ++s) {
    const PairSide side = graph.sides()[s];
    const ContactPair& pair = graph.pairs()[side.pair];
    const double own = (terms + 3 * (pair.contact_end - pair.contact_begin)) * kUnitRoundoff;
    for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
      const ConeParameters<double> p = view.model.contacts().At(i, double{});
      ContactVector<double> d{std::abs(p.v_hat_x), std::abs(p.v_hat_y), std::abs(p.v_hat_n)};
      AddAbsoluteJv(view.model.J(pair, i, false), pair.dofs_low,
                    data.v.data() + graph.velocity_start()[pair.low], &d);
      if (pair.high >= 0) {
        AddAbsoluteJv(view.model.J(pair, i, true), pair.dofs_high,
                      data.v.data() + graph.velocity_start()[pair.high], &d);
      }
      const double steps = (pair.dofs_low + pair.dofs_high + 4) * kUnitRoundoff;
      const ContactVector<double> gamma = data.gamma.At(i, double{});
      ContactVector<double> e = ImpulseError(p, gamma, {steps * d.x, steps * d.y, steps * d.n});
      e.x += own * std::abs(gamma.x);
      e.y += own * std::abs(gamma.y);
      e.n += own * std::abs(gamma.n);
      const double* J = view.model.J(pair, i, side.is_high);
      for (int k = 0; k < n; ++k) {
        error[k] += std::abs(J[k]) * e.x + std::abs(J[n + k]) * e.y + std::abs(J[2 * n + k]) * e.n;
      }
    }
  }
}

// sum := |L^-1| e, column by column of L^-1. Forward substitution with all signs turned alike would
// be cheaper, but its bound grows beyond all use for the ill-conditioned matrices of long chains.
void MultiplyAbsoluteInverse(const double* L, int n, const double* e, double* column, double* sum) {
  std::fill(sum, sum + n, 0.0);
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

}  // namespace

double OptimalityGapBound(const IslandView& view, SapData* data) {
  const ContactGraph& graph = view.graph;
  const IslandRange& range = view.range();
  double gradient2 = 0, error2 = 0;
  for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
    const int n = graph.dofs()[slot];
    const int start = graph.velocity_start()[slot];
    const double* A = view.model.A(graph, slot);
    const double* L = view.model.A_factor(graph, slot);
    double* x = data->step.data() + start;
    double* e = data->momentum_step.data() + start;
    for (int i = 0; i < n; ++i) {
      x[i] = data->gradient[start + i];
      e[i] = 0;
      for (int k = 0; k < n; ++k) {
        const double size = std::abs(data->v[start + k]) + std::abs(view.model.v_star()[start + k]);
        e[i] += (n + 4) * kUnitRoundoff * std::abs(A[i * n + k]) * size;
      }
    }
    AddContactErrors(view, *data, slot, e);
    SolveUnitLower(L, n, x);
    double* sum = data->gradient.data() + start;
    MultiplyAbsoluteInverse(L, n, e, data->momentum_change.data() + start, sum);
    for (int i = 0; i < n; ++i) {
      gradient2 += x[i] * x[i] / L[i * n + i];
      error2 += sum[i] * sum[i] / L[i * n + i];
    }
  }
  const double norm = std::sqrt(gradient2) + std::sqrt(error2);
  const double bound = 0.5 * norm * norm;
  return std::isfinite(bound) ? bound : std::numeric_limits<double>::infinity();
}

}  // namespace sap
