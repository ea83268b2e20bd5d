#include "solver/sap/sap_model.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numbers>

#include "solver/cholesky/dense_cholesky.h"
#include "solver/sap/jacobian_kernels.h"
#include "solver/sap/loop_costs.h"
#include "solver/sap/tree_scratch.h"

namespace sap {

namespace {

// The power of two next to x, kept where it and its inverse are normal numbers.
double PowerOfTwoNextTo(double x) {
  return std::ldexp(1.0, std::clamp(std::ilogb(x), -1000, 1000));
}

// The three columns of W = J A^-1 J', one lane per row of J; the fourth lane stays zero.
struct DelassusColumns {
  Lanes4 x{}, y{}, n{};
};

// W += J A^-1 J' for one tree by L D L' = A, with the inverse of D on the diagonal of `factor`; X
// is scratch of n. J is 3 x n row-major.
template <typename Size>
void AddDelassus(const double* J, Size n, const double* factor, Lanes4* X, DelassusColumns* W) {
  for (int i = 0; i < n; ++i) X[i] = Lanes4{J[i], J[n + i], J[2 * n + i], 0};
  SolveUnitLower(factor, n, X);
  for (int i = 0; i < n; ++i) {
    const Lanes4 scaled = X[i] * factor[i * n + i];
    W->x += scaled * X[i][0];
    W->y += scaled * X[i][1];
    W->n += scaled * X[i][2];
  }
}

// The same by the diagonal of A alone, which is D^-2.
void AddDiagonalDelassus(const double* J, int n, const double* D, DelassusColumns* W) {
  for (int i = 0; i < n; ++i) {
    const Lanes4 x = Lanes4{J[i], J[n + i], J[2 * n + i], 0} * D[i];
    W->x += x * x[0];
    W->y += x * x[1];
    W->n += x * x[2];
  }
}

// Whether the law of a contact can be evaluated in doubles. The square of mu has to be finite as
// well: mu mu_hat is then good to 1e-15 where R_t / R_n is next to the least double.
bool IsRepresentable(double R_t, double R_n, double mu, double v_hat_n) {
  return R_t > 0 && R_n > 0 && std::isfinite(1 / R_t) && std::isfinite(1 / R_n) &&
         std::isfinite(R_t) && std::isfinite(R_n) && std::isfinite(v_hat_n) &&
         std::isfinite(mu * mu) && std::isfinite(mu * (mu * (R_t / R_n)));
}

// A, its factor and D = diag(A)^-1/2 of one tree with the mass unit at 1. False if something is out
// of the range of doubles then.
template <typename Size>
bool ScaleTree(const double* A, const double* factor, Size n, double mass_unit, double* scaled_A,
               double* scaled_factor, double* D) {
  const double per_unit = 1.0 / mass_unit;  // a power of two
  for (int i = 0; i < n * n; ++i) scaled_A[i] = A[i] * per_unit;
  for (int i = 0; i < n * n; ++i) scaled_factor[i] = factor[i];
  for (int i = 0; i < n; ++i) scaled_factor[i * n + i] *= mass_unit;
  for (int i = 0; i < n; ++i) D[i] = 1.0 / std::sqrt(scaled_A[i * n + i]);
  double sum = 0;  // infinite or not a number if any of them is
  for (int i = 0; i < n; ++i) sum += std::abs(D[i]) + std::abs(scaled_factor[i * n + i]);
  return std::isfinite(sum);
}

}  // namespace

void SapModel::Resize(const ContactGraph& graph) {
  const int velocities = graph.velocity_start().back();
  const int64_t matrices = graph.matrix_start().back();
  constants_.resize(graph.islands().count());
  A_.Reserve(matrices);
  A_factor_.Reserve(matrices);
  D_.resize(velocities);
  v_star_.resize(velocities);
  J_.Reserve(graph.jacobian_size());
  contacts_.Resize(graph.num_contacts());
}

void SapModel::Gather(const ContactProblem& problem, const ContactGraph& graph, int island,
                      const StopToken& stop, TaskArena* arena) {
  GatherTrees(problem, graph, island);
  const IslandRange& range = graph.island_ranges()[island];
  std::atomic<bool> representable{true};
  ForChunks(arena, range.pair_begin, range.pair_end, kGatherPairs, [&](int begin, int end, int) {
    if (stop.Cancelled()) return;
    if (!GatherContacts(problem, graph, island, begin, end, stop)) {
      representable.store(false, std::memory_order_relaxed);
    }
  });
  constants_[island].representable &= representable.load(std::memory_order_relaxed);
}

void SapModel::GatherTrees(const ContactProblem& problem, const ContactGraph& graph, int island) {
  const IslandRange& range = graph.island_ranges()[island];
  const std::span<const int> tree_of_slot = graph.islands().tree_of_slot();
  double largest = 0;
  for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
    const int n = graph.dofs()[slot];
    const double* A = problem.dynamics_matrix().data() + problem.matrix_start()[tree_of_slot[slot]];
    for (int i = 0; i < n; ++i) largest = std::max(largest, A[i * n + i]);
  }
  IslandConstants& constants = constants_[island];
  constants = {};
  constants.mass_unit = PowerOfTwoNextTo(largest);

  for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
    const int tree = tree_of_slot[slot];
    const int n = graph.dofs()[slot];
    const int64_t from = problem.matrix_start()[tree];
    double* scaled_A = A_.data() + graph.matrix_start()[slot];
    double* scaled_factor = A_factor_.data() + graph.matrix_start()[slot];
    const double* A = problem.dynamics_matrix().data() + from;
    const double* factor = problem.dynamics_factor().data() + from;
    const int v = graph.velocity_start()[slot];
    const double* v_star = problem.v_star().data() + problem.velocity_start()[tree];
    // What has vanished beside the largest mass of the island cannot be divided by.
    ForSize(n, [&](auto size) {
      constants.representable &=
          ScaleTree(A, factor, size, constants.mass_unit, scaled_A, scaled_factor, &D_[v]);
    });
    for (int i = 0; i < n; ++i) {
      constants.trace_A += scaled_A[i * n + i];
      v_star_[v + i] = v_star[i];
    }
  }
}

bool SapModel::GatherContacts(const ContactProblem& problem, const ContactGraph& graph, int island,
                              int pair_begin, int pair_end, const StopToken& stop) {
  bool representable = true;
  for (int p = pair_begin; p < pair_end; ++p) {
    const ContactPair& pair = graph.pairs()[p];
    const int size_low = 3 * pair.dofs_low;
    const int size_high = 3 * pair.dofs_high;
    for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
      if (stop.Cancelled()) return true;
      const int contact = graph.contact_order()[i];
      const double* from = problem.jacobian().data() + problem.jacobian_start()[contact];
      double* to = J_.data() + JacobianStart(pair, i);
      const bool swapped = graph.swapped(i);
      std::copy(from, from + (swapped ? size_high : size_low), to + (swapped ? size_low : 0));
      if (pair.high >= 0) {
        const double* second = from + (swapped ? size_high : size_low);
        std::copy(second, second + (swapped ? size_low : size_high), to + (swapped ? 0 : size_low));
      }
      representable &= GatherLaw(problem, graph, island, pair, i);
    }
  }
  return representable;
}

bool SapModel::GatherLaw(const ContactProblem& problem, const ContactGraph& graph, int island,
                         const ContactPair& pair, int i) {
  const ContactProblemView::Regularization& regularization = problem.regularization();
  const double near_rigid =
      regularization.beta * regularization.beta / (4.0 * std::numbers::pi * std::numbers::pi);
  const double mass_unit = constants_[island].mass_unit;
  const double dt = problem.time_step();
  const int contact = graph.contact_order()[i];
  double w = problem.given_w()[contact] * mass_unit;
  double R_t = problem.given_R_t()[contact] * mass_unit;
  double R_n = problem.given_R_n()[contact] * mass_unit;
  if (w == 0 && (R_t == 0 || R_n == 0)) w = DelassusEstimate(graph, pair, i, regularization.rule);
  const double time = dt + problem.tau_d()[contact];
  if (R_t == 0) R_t = regularization.sigma * w;
  if (R_n == 0) {
    const double compliance = mass_unit / (dt * problem.stiffness()[contact] * time);
    R_n = std::max(near_rigid * w, compliance);
  }
  const double mu = problem.mu()[contact];
  const double* b = problem.surface_velocity().data() + 3 * contact;
  const ContactVector<double> v_hat{-b[0], -b[1], -problem.phi0()[contact] / time - b[2]};
  contacts_.Set(i, R_t, R_n, mu, v_hat);
  return IsRepresentable(R_t, R_n, mu, v_hat.n);
}

double SapModel::DelassusEstimate(const ContactGraph& graph, const ContactPair& pair, int contact,
                                  DelassusRule rule) const {
  DelassusColumns W;
  const auto add = [&](int slot, bool high) {
    const double* J_t = J(pair, contact, high);
    const int dofs = graph.dofs()[slot];
    if (rule == DelassusRule::kDiagonal) {
      AddDiagonalDelassus(J_t, dofs, D_.data() + graph.velocity_start()[slot], &W);
      return;
    }
    WithTreeScratch(static_cast<size_t>(kNumLanes<double>) * dofs, [&](double* scratch) {
      ForSize(dofs, [&](auto n) {
        AddDelassus(J_t, n, A_factor(graph, slot), reinterpret_cast<Lanes4*>(scratch), &W);
      });
    });
  };
  add(pair.low, false);
  if (pair.high >= 0) add(pair.high, true);
  const double sum = Sum(W.x * W.x + W.y * W.y + W.n * W.n);
  // A contact whose Jacobian vanishes moves nothing; any positive w does.
  return sum == 0 ? 1.0 : std::sqrt(sum) / 3.0;
}

}  // namespace sap
