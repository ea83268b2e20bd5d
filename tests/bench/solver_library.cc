// The solver behind a C interface, so that a benchmark written in Python can run it in turn with
// the peers, in one process and on one core. Timed here: the whole of Solver::Solve, with what a
// session keeps between steps (workspaces, elimination plans) and nothing else; and apart from it
// the check of the problem.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "solver/solve.h"

namespace {

using Clock = std::chrono::steady_clock;
using sap::ContactProblem;
using sap::ContactProblemView;

// An array of a problem, in the form of trees, contacts with Jacobians and rows.
struct BenchArray {
  const char* name;  // as on the wire: "contacts.jacobian"
  const void* data;
  int64_t size;
};

struct BenchProblem {
  double time_step;
  double beta, sigma, stiction_speed;
  int32_t diagonal_rule;
  int32_t num_arrays;
  const BenchArray* arrays;
};

struct BenchResult {
  double check_s;            // of reading the problem
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

using Field =
    std::variant<std::span<const double>*, std::span<const int32_t>*, std::span<const uint32_t>*>;

std::map<std::string, Field> Fields(ContactProblemView* view) {
  ContactProblemView::Law& law = view->contacts.law;
  return {
      {"trees.dofs", &view->trees.dofs},
      {"trees.dynamics_matrix", &view->trees.dynamics_matrix},
      {"trees.free_motion_velocity", &view->trees.free_motion_velocity},
      {"trees.guess_velocity", &view->trees.guess_velocity},
      {"contacts.tree_a", &view->contacts.tree_a},
      {"contacts.tree_b", &view->contacts.tree_b},
      {"contacts.jacobian", &view->contacts.jacobian},
      {"contacts.angular_jacobian", &view->contacts.angular_jacobian},
      {"contacts.signed_distance", &law.signed_distance},
      {"contacts.stiffness", &law.stiffness},
      {"contacts.relaxation_time", &law.relaxation_time},
      {"contacts.friction", &law.friction},
      {"contacts.friction_2", &law.friction_2},
      {"contacts.torsional_friction", &law.torsional_friction},
      {"contacts.rolling_friction", &law.rolling_friction},
      {"contacts.regularization_t", &law.regularization_t},
      {"contacts.regularization_n", &law.regularization_n},
      {"contacts.delassus_estimate", &law.delassus_estimate},
      {"contacts.surface_velocity", &law.surface_velocity},
      {"contacts.target_velocity", &law.target_velocity},
      {"contacts.target_angular_velocity", &law.target_angular_velocity},
      {"rows.entries", &view->rows.entries},
      {"rows.velocity_index", &view->rows.velocity_index},
      {"rows.coefficient", &view->rows.coefficient},
      {"rows.position_error", &view->rows.position_error},
      {"rows.velocity_offset", &view->rows.velocity_offset},
      {"rows.stiffness", &view->rows.stiffness},
      {"rows.relaxation_time", &view->rows.relaxation_time},
      {"rows.force_lower", &view->rows.force_lower},
      {"rows.force_upper", &view->rows.force_upper},
      {"rows.regularization", &view->rows.regularization},
      {"rows.target_velocity", &view->rows.target_velocity},
      {"rows.delassus_estimate", &view->rows.delassus_estimate},
      {"rows.slip_parameter", &view->rows.slip_parameter},
      {"rows.force_offset", &view->rows.force_offset},
  };
}

// False, with the reason on standard error, where an array has no place in the view.
bool FillView(const BenchProblem& problem, ContactProblemView* view) {
  view->time_step = problem.time_step;
  view->regularization.beta = problem.beta;
  view->regularization.sigma = problem.sigma;
  view->regularization.stiction_speed = problem.stiction_speed;
  view->regularization.rule =
      problem.diagonal_rule != 0 ? sap::DelassusRule::kDiagonal : sap::DelassusRule::kFull;
  const std::map<std::string, Field> fields = Fields(view);
  for (int32_t i = 0; i < problem.num_arrays; ++i) {
    const BenchArray& array = problem.arrays[i];
    const auto field = fields.find(array.name);
    if (field == fields.end()) {
      std::fprintf(stderr, "the benchmark has no array %s\n", array.name);
      return false;
    }
    const auto set = [&array]<typename T>(std::span<const T>* values) {
      *values = std::span<const T>(static_cast<const T*>(array.data), array.size);
    };
    std::visit(set, field->second);
  }
  return true;
}

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void Report(const sap::ContactSolution& solution, BenchResult* result) {
  result->islands = static_cast<int32_t>(solution.islands.size());
  for (const sap::IslandReport& report : solution.islands) {
    result->momentum_residual = std::max(result->momentum_residual, report.momentum_residual);
    result->iterations = std::max(result->iterations, report.iterations);
    result->factorizations += report.factorizations;
    result->largest_island_dofs = std::max(result->largest_island_dofs, report.dofs);
    result->failed_islands += report.status != sap::SolveStatus::kConverged &&
                              report.status != sap::SolveStatus::kStalledAtRoundoff;
  }
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

// Solves `repeats` times. 0, or 1 with the reason on standard error. velocity [sum n_t] and
// impulse [3 C] may be null.
int BenchSolve(Bench* bench, const BenchProblem* arrays, int repeats, BenchResult* result,
               double* velocity, double* impulse) {
  ContactProblemView view;
  if (!FillView(*arrays, &view)) return 1;
  *result = {};
  const Clock::time_point check_start = Clock::now();
  const auto checked = bench->problem.Reset(view);
  result->check_s = SecondsSince(check_start);
  if (!checked) {
    std::fprintf(stderr, "%s\n", checked.error().Message().c_str());
    return 1;
  }
  for (int repeat = 0; repeat < repeats; ++repeat) {
    bench->solver.Solve(bench->problem, bench->options, sap::StopToken(), &bench->solution);
    const double seconds = bench->solution.times.islands_s + bench->solution.times.solve_s;
    if (repeat == 0) result->first_s = result->least_s = seconds;
    result->least_s = std::min(result->least_s, seconds);
  }
  const sap::ContactSolution& solution = bench->solution;
  Report(solution, result);
  if (velocity != nullptr) std::copy(solution.velocity.begin(), solution.velocity.end(), velocity);
  if (impulse != nullptr) std::copy(solution.impulse.begin(), solution.impulse.end(), impulse);
  return 0;
}

// Solves and differentiates along `count` directions of the free-motion velocity, [count x sum n_t]
// as is what comes out: the velocity's. The seconds of both together, or -1 with the reason on
// standard error.
double BenchTangents(Bench* bench, const BenchProblem* arrays, int count, const double* directions,
                     double* tangents) {
  ContactProblemView view;
  if (!FillView(*arrays, &view)) return -1;
  if (const auto checked = bench->problem.Reset(view); !checked) {
    std::fprintf(stderr, "%s\n", checked.error().Message().c_str());
    return -1;
  }
  const size_t n = bench->problem.num_velocities();
  std::vector<sap::ProblemDifferential> changes(count);
  for (int k = 0; k < count; ++k) {
    changes[k].Reset(bench->problem);
    changes[k].v_star.assign(directions + k * n, directions + (k + 1) * n);
  }
  sap::Derivatives derivatives;
  const Clock::time_point start = Clock::now();
  bench->solver.Differentiate(bench->problem, bench->options, {}, changes, {}, sap::StopToken(),
                              &bench->solution, &derivatives);
  const double seconds = SecondsSince(start);
  for (int k = 0; k < count; ++k) {
    const std::vector<double>& velocity = derivatives.tangents[k].velocity;
    std::copy(velocity.begin(), velocity.end(), tangents + k * n);
  }
  return seconds;
}

}  // extern "C"
