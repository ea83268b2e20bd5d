#include "solver/sap_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "solver/dense_cholesky.h"
#include "solver/jacobian_kernels.h"

namespace sap {

namespace {

// The power of two next to x, kept where it and its inverse are normal numbers.
double PowerOfTwoNextTo(double x) {
  return std::ldexp(1.0, std::clamp(std::ilogb(x), -1000, 1000));
}

// W += J A^-1 J' for one tree by its L D L', or by diag(A) alone. J is 3 x n row-major.
void AddDelassus(const double* J, int n, const double* A, const double* A_factor, DelassusRule rule,
                 double W[3][3]) {
  constexpr int kOnStack = 32;
  double on_stack[3 * kOnStack];
  thread_local std::vector<double>
      kept;              // for the few larger trees, so that a warm step allocates nothing
  double* X = on_stack;  // L^-1 J' by rows of J
  if (n > kOnStack) {
    if (kept.size() < 3 * static_cast<size_t>(n)) kept.resize(3 * n);
    X = kept.data();
  }
  std::copy(J, J + 3 * n, X);
  const double* pivots = A;
  if (rule == DelassusRule::kFull) {
    pivots = A_factor;
    for (int row = 0; row < 3; ++row) {
      ForSize(n, [&](auto size) { SolveUnitLower(A_factor, size, X + row * n); });
    }
  }
  for (int r = 0; r < 3; ++r) {
    for (int s = 0; s < 3; ++s) {
      double sum = 0;
      for (int i = 0; i < n; ++i) sum += X[r * n + i] * X[s * n + i] / pivots[i * n + i];
      W[r][s] += sum;
    }
  }
}

}  // namespace

void SapModel::Resize(const ContactGraph& graph) {
  const int velocities = graph.velocity_start().back();
  const int64_t matrices = graph.matrix_start().back();
  constants_.resize(graph.islands().count());
  A_.resize(matrices);
  A_factor_.resize(matrices);
  D_.resize(velocities);
  v_star_.resize(velocities);
  J_.resize(graph.jacobian_size());
  contacts_.Resize(graph.num_contacts());
}

void SapModel::Gather(const ContactProblem& problem, const ContactGraph& graph, int island) {
  GatherTrees(problem, graph, island);
  GatherContacts(problem, graph, island);
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
  const double per_unit = 1.0 / constants.mass_unit;

  for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
    const int tree = tree_of_slot[slot];
    const int n = graph.dofs()[slot];
    const int64_t from = problem.matrix_start()[tree];
    const int64_t to = graph.matrix_start()[slot];
    const double* A = problem.dynamics_matrix().data() + from;
    const double* factor = problem.dynamics_factor().data() + from;
    for (int i = 0; i < n * n; ++i) A_[to + i] = A[i] * per_unit;
    for (int i = 0; i < n * n; ++i) A_factor_[to + i] = factor[i];
    const int v = graph.velocity_start()[slot];
    const double* v_star = problem.v_star().data() + problem.velocity_start()[tree];
    for (int i = 0; i < n; ++i) {
      const double diagonal = A_[to + i * n + i];
      A_factor_[to + i * n + i] *= per_unit;
      D_[v + i] = 1.0 / std::sqrt(diagonal);
      constants.trace_A += diagonal;
      v_star_[v + i] = v_star[i];
      // What has vanished beside the largest mass of the island cannot be divided by.
      if (!std::isfinite(D_[v + i]) || !(A_factor_[to + i * n + i] > 0)) {
        constants.representable = false;
      }
    }
  }
}

void SapModel::GatherContacts(const ContactProblem& problem, const ContactGraph& graph,
                              int island) {
  const IslandRange& range = graph.island_ranges()[island];
  const double dt = problem.time_step();
  const ContactProblemView::Regularization& regularization = problem.regularization();
  const double near_rigid =
      regularization.beta * regularization.beta / (4.0 * std::numbers::pi * std::numbers::pi);
  IslandConstants& constants = constants_[island];
  for (int p = range.pair_begin; p < range.pair_end; ++p) {
    const ContactPair& pair = graph.pairs()[p];
    const int size_low = 3 * pair.dofs_low;
    const int size_high = 3 * pair.dofs_high;
    for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
      const int contact = graph.contact_order()[i];
      const double* from = problem.jacobian().data() + problem.jacobian_start()[contact];
      double* to = J_.data() + JacobianStart(pair, i);
      const bool swapped = graph.swapped(i);
      std::copy(from, from + (swapped ? size_high : size_low), to + (swapped ? size_low : 0));
      if (pair.high >= 0) {
        const double* second = from + (swapped ? size_high : size_low);
        std::copy(second, second + (swapped ? size_low : size_high), to + (swapped ? 0 : size_low));
      }

      double w = problem.given_w()[contact] * constants.mass_unit;
      double R_t = problem.given_R_t()[contact] * constants.mass_unit;
      double R_n = problem.given_R_n()[contact] * constants.mass_unit;
      if (w == 0 && (R_t == 0 || R_n == 0)) {
        w = DelassusEstimate(graph, pair, i, regularization.rule);
      }
      const double time = dt + problem.tau_d()[contact];
      if (R_t == 0) R_t = regularization.sigma * w;
      if (R_n == 0) {
        const double compliance = constants.mass_unit / (dt * problem.stiffness()[contact] * time);
        R_n = std::max(near_rigid * w, compliance);
      }
      const double* b = problem.surface_velocity().data() + 3 * contact;
      const ContactVector<double> v_hat{-b[0], -b[1], -problem.phi0()[contact] / time - b[2]};
      if (!(R_t > 0 && R_n > 0 && std::isfinite(1 / R_t) && std::isfinite(1 / R_n) &&
            std::isfinite(R_t) && std::isfinite(R_n) && std::isfinite(v_hat.n))) {
        constants.representable = false;
      }
      contacts_.Set(i, R_t, R_n, problem.mu()[contact], v_hat);
    }
  }
}

double SapModel::DelassusEstimate(const ContactGraph& graph, const ContactPair& pair, int contact,
                                  DelassusRule rule) const {
  double W[3][3] = {};
  AddDelassus(J(pair, contact, false), pair.dofs_low, A(graph, pair.low), A_factor(graph, pair.low),
              rule, W);
  if (pair.high >= 0) {
    AddDelassus(J(pair, contact, true), pair.dofs_high, A(graph, pair.high),
                A_factor(graph, pair.high), rule, W);
  }
  double sum = 0;
  for (const auto& row : W) {
    for (double entry : row) sum += entry * entry;
  }
  // A contact whose Jacobian vanishes moves nothing; any positive w does.
  return sum > 0 ? std::sqrt(sum) / 3.0 : (sum == 0 ? 1.0 : sum);
}

}  // namespace sap
