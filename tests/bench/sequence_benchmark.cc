// Warm sequences of the project's own scenes: every step of a simulation is solved with one thread
// and with several, in turn within one process, and by plain Newton if asked.
//
//   sequence_benchmark [--threads N] [--plain] [--csv] SCENE BODIES WALLS FROM TO
//                      WALLS 0 or 1; the steps FROM <= step < TO of 10 ms are measured
//
// The simulation is driven by the first solver, so that each guess is a true solution of the step
// before. All solvers take part from two steps before FROM on, since a first solve takes hold of
// its memory. A step's time is that of reading the problem and of solving it. Reading, and the
// ordering and analysis of new patterns, are also given by themselves ("layout"). GFLOP are those
// of the factorizations of the largest island, divided by the time of the whole step. The peak of
// memory is that of the process: the simulation and every solver that takes part. The round trip is
// the median of samples after each step.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "solver/cholesky/elimination_plan.h"
#include "solver/engine/solve_task.h"
#include "solver/problem/constraint_graph.h"
#include "solver/run/island_forecast.h"
#include "solver/solve.h"
#include "tests/bench/core_distance.h"
#include "tests/bench/scene_sequence.h"
#include "tests/support/allocation_counter.h"

namespace {

using sap::ContactProblem;
using sap::ContactProblemView;
using sap::ContactSolution;

// Steps before those that are measured that all solvers solve.
constexpr int kFirstSolves = 2;

struct Request {
  int threads{2};
  bool plain{false};
  bool csv{false};
  std::string scene;
  int bodies{0};
  bool walls{false};
  int from{0};
  int to{0};
};

// Times of one way of solving, step by step.
struct Series {
  std::vector<double> seconds;
  std::vector<double> layout_seconds;
  std::vector<double> iterations;  // largest of a step's islands
  std::vector<double> factorizations;
  std::vector<double> factorizations_of_largest;
  std::vector<double> allocations;
};

double Mean(const std::vector<double>& values) {
  return values.empty() ? 0
                        : std::accumulate(values.begin(), values.end(), 0.0) /
                              static_cast<double>(values.size());
}
double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}
double Largest(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}
double Least(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::min_element(values.begin(), values.end());
}

// One way of solving a sequence.
class Side {
 public:
  Side(sap::TaskArena* arena, sap::NewtonMethod newton) : solver_(arena) {
    options_.newton = newton;
  }

  void Solve(const ContactProblemView& view, bool measured) {
    const int64_t allocations = sap::test::AllocationCount();
    const auto start = std::chrono::steady_clock::now();
    bool solved = task_.Read(view).has_value();
    const double read_s = sap::SecondsSince(start);
    solved = solved && task_.Solve(&solver_, options_, {}, {}, &solution_).has_value();
    failed_ += !solved;
    if (!measured) return;
    series_.seconds.push_back(sap::SecondsSince(start));
    series_.allocations.push_back(static_cast<double>(sap::test::AllocationCount() - allocations));
    series_.layout_seconds.push_back(read_s + solution_.times.islands_s);
    int iterations = 0;
    int factorizations = 0;
    int largest = 0;
    int factorizations_of_largest = 0;
    for (const sap::IslandReport& report : solution_.islands) {
      if (report.dofs > largest) {
        largest = report.dofs;
        factorizations_of_largest = report.factorizations;
      }
      iterations = std::max(iterations, report.iterations);
      factorizations += report.factorizations;
      failed_ += report.status != sap::SolveStatus::kConverged &&
                 report.status != sap::SolveStatus::kStalledAtRoundoff;
    }
    series_.iterations.push_back(iterations);
    series_.factorizations.push_back(factorizations);
    series_.factorizations_of_largest.push_back(factorizations_of_largest);
  }

  const ContactSolution& solution() const { return solution_; }
  const Series& series() const { return series_; }
  int failed() const { return failed_; }

 private:
  sap::SolveTask task_;
  sap::Solver solver_;
  sap::SolverOptions options_;
  ContactSolution solution_;
  Series series_;
  int failed_{0};
};

// How the largest island of a problem is factored.
sap::EliminationPlan PlanOfLargestIsland(const ContactProblem& problem) {
  sap::ConstraintGraph graph;
  graph.Build(problem, true);
  const std::span<const sap::IslandRange> ranges = graph.island_ranges();
  const sap::IslandRange& range = *std::max_element(
      ranges.begin(), ranges.end(),
      [](const auto& a, const auto& b) { return a.num_velocities() < b.num_velocities(); });
  std::vector<int> edge_a, edge_b;
  for (int p = range.pair_begin; p < range.pair_end; ++p) {
    const sap::TreePair& pair = graph.pairs()[p];
    edge_a.push_back(pair.low - range.slot_begin);
    edge_b.push_back(pair.high - range.slot_begin);
  }
  return sap::EliminationPlan::Make(
      {graph.dofs().subspan(range.slot_begin, range.num_trees()), edge_a, edge_b});
}

// Figures of the scene, over the measured steps.
struct SceneSeries {
  std::vector<double> contacts, islands, largest_island_dofs, predicted_s;
  // The factorization of the largest island of the last step.
  double factor_gflop{0};
  double factor_megabytes{0};

  void Add(const ContactProblem& problem, const ContactSolution& solution) {
    contacts.push_back(problem.num_contacts());
    islands.push_back(static_cast<double>(solution.islands.size()));
    int largest = 0;
    for (const auto& report : solution.islands) largest = std::max(largest, report.dofs);
    largest_island_dofs.push_back(largest);
    predicted_s.push_back(sap::PredictedSolveTime(problem));
  }
  void AddPlan(const sap::EliminationPlan& plan) {
    factor_gflop = 1e-9 * plan.factor_flops();
    factor_megabytes = 8e-6 * static_cast<double>(plan.factor_entries());
  }
};

double MedianRatio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) ratios.push_back(a[i] / b[i]);
  return Median(ratios);
}

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double PeakMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1e-3 * static_cast<double>(usage.ru_maxrss);
}

void Print(const Request& request, const SceneSeries& scene, const Side& one, const Side& several,
           const Side& plain, double round_trip_ns) {
  const Series& series = one.series();
  const double gflop = scene.factor_gflop * Mean(series.factorizations_of_largest);
  const std::string steps = std::to_string(request.from) + "-" + std::to_string(request.to);
  if (request.csv) {
    std::printf(
        "%s,%d,%d,%s,%.0f,%.1f,%.0f,%.2f,%.0f,%.2f,%.1f,%.4f,%.4f,%.4f,%d,%.4f,%.3f,%.3f,"
        "%.1f,%d,%.4f,%.4f,%.2f,%.2f,%.0f,%.3f,%.0f\n",
        request.scene.c_str(), request.bodies, request.walls ? 1 : 0, steps.c_str(),
        Mean(scene.contacts), Mean(scene.islands), Mean(scene.largest_island_dofs),
        Mean(series.iterations), Largest(series.iterations), Mean(plain.series().iterations),
        Mean(series.factorizations), 1e3 * Least(series.seconds), 1e3 * Median(series.seconds),
        1e3 * Mean(scene.predicted_s), request.threads, 1e3 * Median(several.series().seconds),
        MedianRatio(series.seconds, several.series().seconds),
        MedianRatio(plain.series().seconds, series.seconds), Median(series.allocations),
        one.failed() + several.failed() + plain.failed(), 1e3 * Median(series.layout_seconds),
        gflop, gflop / Median(series.seconds), scene.factor_megabytes, PeakMegabytes(),
        Sum(series.seconds) / Sum(several.series().seconds), round_trip_ns);
    return;
  }
  std::printf("%s, %d bodies%s, steps %s: %.0f contacts, %.1f islands, largest %.0f dofs\n",
              request.scene.c_str(), request.bodies, request.walls ? " in a bin" : "",
              steps.c_str(), Mean(scene.contacts), Mean(scene.islands),
              Mean(scene.largest_island_dofs));
  std::printf(
      "  iterations %.2f mean, %.0f largest; factorizations %.1f; allocations %.0f median; "
      "failed %d\n",
      Mean(series.iterations), Largest(series.iterations), Mean(series.factorizations),
      Median(series.allocations), one.failed());
  std::printf(
      "  layout %.3f ms; %.4f GFLOP, %.2f GFLOP/s; factor %.2f MB in double precision; peak of "
      "memory %.0f MB\n",
      1e3 * Median(series.layout_seconds), gflop, gflop / Median(series.seconds),
      scene.factor_megabytes, PeakMegabytes());
  std::printf("  1 thread: %.3f ms least, %.3f median, %.3f mean, %.3f predicted\n",
              1e3 * Least(series.seconds), 1e3 * Median(series.seconds), 1e3 * Mean(series.seconds),
              1e3 * Mean(scene.predicted_s));
  std::printf(
      "  %d threads: %.3f ms least, %.3f median; speed-up %.2f, by sums %.2f; round trip %.0f ns\n",
      request.threads, 1e3 * Least(several.series().seconds),
      1e3 * Median(several.series().seconds), MedianRatio(series.seconds, several.series().seconds),
      Sum(series.seconds) / Sum(several.series().seconds), round_trip_ns);
  if (request.plain) {
    std::printf("  plain Newton: %.3f ms median, iterations %.2f mean, %.0f largest, failed %d\n",
                1e3 * Median(plain.series().seconds), Mean(plain.series().iterations),
                Largest(plain.series().iterations), plain.failed());
  }
}

int Run(const Request& request) {
  sap::TaskArena arena(request.threads);
  Side one(nullptr, sap::NewtonMethod::kAccelerated);
  Side several(&arena, sap::NewtonMethod::kAccelerated);
  Side plain(nullptr, sap::NewtonMethod::kPlain);
  SceneSeries scene_series;
  std::vector<double> round_trips_ns;
  ContactProblem problem;
  const auto solve = [&](const ContactProblemView& view,
                         int step) -> tl::expected<const ContactSolution*, sap::ProblemError> {
    const bool measured = step >= request.from;
    const bool warm = step >= request.from - kFirstSolves;
    if (warm && step % 2 == 1) several.Solve(view, measured);
    one.Solve(view, measured);
    if (warm && step % 2 == 0) several.Solve(view, measured);
    if (warm && request.plain) plain.Solve(view, measured);
    if (measured) {
      if (const auto read = problem.Reset(view); !read) return tl::unexpected(read.error());
      scene_series.Add(problem, one.solution());
      round_trips_ns.push_back(sap::bench::RoundTrip_ns(std::chrono::milliseconds(1)));
    }
    if (step + 1 == request.to) scene_series.AddPlan(PlanOfLargestIsland(problem));
    return &one.solution();
  };
  if (const auto done = sap::bench::RunSceneByViews(request.scene, request.bodies, request.walls,
                                                    request.to, solve);
      !done) {
    std::fprintf(stderr, "sequence_benchmark: %s\n", done.error().c_str());
    return 1;
  }
  Print(request, scene_series, one, several, plain, Median(round_trips_ns));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Request request;
  CLI::App app("Times the steps of a simulation.", "sequence_benchmark");
  app.add_option("SCENE", request.scene)->required();
  app.add_option("BODIES", request.bodies)->required();
  app.add_option("WALLS", request.walls)->required();
  app.add_option("FROM", request.from)->required();
  app.add_option("TO", request.to)->required();
  app.add_option("--threads", request.threads)->check(CLI::PositiveNumber);
  app.add_flag("--plain", request.plain);
  app.add_flag("--csv", request.csv);
  CLI11_PARSE(app, argc, argv);
  return Run(request);
}
