// The solver behind a C interface, so that a benchmark written in Python can run it in turn with
// the peers, in one process and on one core. Timed here: the whole of Solver::Solve, with what a
// session keeps between steps (workspaces, elimination plans) and nothing else.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "solver/solve.h"

namespace {

using sap::ContactProblem;
using sap::ContactProblemView;

// Arrays as in ContactProblemView; all problems of a benchmark are in the form of trees.
struct BenchProblem {
  double time_step;
  int64_t num_trees, num_contacts;
  const uint32_t* dofs;
  const double* dynamics_matrix;
  const double* free_motion_velocity;
  const double* guess_velocity;
  const int32_t* tree_a;
  const int32_t* tree_b;
  const double* jacobian;
  const double* signed_distance;
  const double* stiffness;
  const double* relaxation_time;
  const double* friction;
  const double* regularization_t;  // null: computed
  const double* regularization_n;  // null: computed
  const double* surface_velocity;  // null: none
  double beta, sigma;
  int32_t diagonal_rule;
  int64_t num_velocities, matrix_entries, jacobian_entries;
};

struct BenchResult {
  double first_s;            // of the first solve: what a step costs in a session
  double least_s;            // of all repeats
  double momentum_residual;  // largest of all islands
  int32_t iterations;        // largest of all islands
  int32_t factorizations;    // of all islands
  int32_t islands;
  int32_t largest_island_dofs;
  int32_t failed_islands;
};

struct Bench {
  explicit Bench(int threads)
      : arena(threads > 1 ? std::make_unique<sap::TaskArena>(threads) : nullptr),
        solver(arena.get()) {}
  std::unique_ptr<sap::TaskArena> arena;
  sap::Solver solver;
  sap::SolverOptions options;
  ContactProblem problem;
  sap::ContactSolution solution;
};

template <typename T>
std::span<const T> Span(const T* data, int64_t size) {
  return data == nullptr ? std::span<const T>() : std::span<const T>(data, size);
}

ContactProblemView View(const BenchProblem& p) {
  ContactProblemView view;
  view.time_step = p.time_step;
  view.trees.dofs = Span(p.dofs, p.num_trees);
  view.trees.dynamics_matrix = Span(p.dynamics_matrix, p.matrix_entries);
  view.trees.free_motion_velocity = Span(p.free_motion_velocity, p.num_velocities);
  view.trees.guess_velocity = Span(p.guess_velocity, p.num_velocities);
  view.contacts.tree_a = Span(p.tree_a, p.num_contacts);
  view.contacts.tree_b = Span(p.tree_b, p.num_contacts);
  view.contacts.jacobian = Span(p.jacobian, p.jacobian_entries);
  ContactProblemView::Law& law = view.contacts.law;
  law.signed_distance = Span(p.signed_distance, p.num_contacts);
  law.stiffness = Span(p.stiffness, p.num_contacts);
  law.relaxation_time = Span(p.relaxation_time, p.num_contacts);
  law.friction = Span(p.friction, p.num_contacts);
  law.regularization_t = Span(p.regularization_t, p.num_contacts);
  law.regularization_n = Span(p.regularization_n, p.num_contacts);
  law.surface_velocity = Span(p.surface_velocity, 3 * p.num_contacts);
  view.regularization = {
      p.beta, p.sigma,
      p.diagonal_rule != 0 ? sap::DelassusRule::kDiagonal : sap::DelassusRule::kFull};
  return view;
}

}  // namespace

extern "C" {

Bench* BenchMake(int threads, int accelerated, double tolerance) {
  auto* bench = new Bench(threads);
  bench->options.relative_tolerance = tolerance;
  bench->options.newton =
      accelerated != 0 ? sap::NewtonMethod::kAccelerated : sap::NewtonMethod::kPlain;
  return bench;
}

void BenchFree(Bench* bench) { delete bench; }

// Solves `repeats` times. 0, or 1 with the reason on standard error. velocity [num_velocities] and
// impulse [3 num_contacts] may be null.
int BenchSolve(Bench* bench, const BenchProblem* arrays, int repeats, BenchResult* result,
               double* velocity, double* impulse) {
  if (const auto checked = bench->problem.Reset(View(*arrays)); !checked) {
    std::fprintf(stderr, "%s\n", checked.error().Message().c_str());
    return 1;
  }
  *result = {};
  for (int repeat = 0; repeat < repeats; ++repeat) {
    bench->solver.Solve(bench->problem, bench->options, sap::StopToken(), &bench->solution);
    const double seconds = bench->solution.times.islands_s + bench->solution.times.solve_s;
    if (repeat == 0) result->first_s = result->least_s = seconds;
    result->least_s = std::min(result->least_s, seconds);
  }
  const sap::ContactSolution& solution = bench->solution;
  result->islands = static_cast<int32_t>(solution.islands.size());
  for (const sap::IslandReport& report : solution.islands) {
    result->momentum_residual = std::max(result->momentum_residual, report.momentum_residual);
    result->iterations = std::max(result->iterations, report.iterations);
    result->factorizations += report.factorizations;
    result->largest_island_dofs = std::max(result->largest_island_dofs, report.dofs);
    result->failed_islands += report.status != sap::SolveStatus::kConverged &&
                              report.status != sap::SolveStatus::kStalledAtRoundoff;
  }
  if (velocity != nullptr) std::copy(solution.velocity.begin(), solution.velocity.end(), velocity);
  if (impulse != nullptr) std::copy(solution.impulse.begin(), solution.impulse.end(), impulse);
  return 0;
}

}  // extern "C"
