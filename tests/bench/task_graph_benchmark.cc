// Predicts how solves scale: each is done on one thread with the loops that a number of threads
// would share, the time of every task is recorded, and the tasks are replayed on that number of
// threads (task_graph.h).
//
//   task_graph_benchmark [--fresh | --reading] SCENE BODIES WALLS FROM TO THREADS...
//
// SCENE is one of the project's own, of which the steps FROM <= step < TO are measured, or one
// problem, which is solved TO times, the first FROM of them not measured: "table", so many bodies
// that lie on one tree; "block", so many bodies along each edge of a cube; or a problem file, named
// as in tests/data or SAP_PROBLEMS_DIR (BODIES and WALLS mean nothing then).
//
// With --reading a solve begins with the reading of its problem; with --fresh as well, by a solver
// that has not seen its pattern. Otherwise it is that of a session.
//
// Prints a line per number of threads: threads, work and critical path of a solve [ms], predicted
// time [ms] and speed-up; of scenes medians over the steps, of one problem by the least time that
// each task took.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/cpp/simulation/scene.h"
#include "solver/engine/solve_task.h"
#include "solver/parallel/task_arena.h"
#include "solver/solve.h"
#include "tests/bench/recording_arena.h"
#include "tests/bench/scene_sequence.h"
#include "tests/support/golden_problem.h"
#include "tests/support/random_problem.h"

extern "C" const char __executable_start[];  // of the linker: where the program was loaded

namespace {

using sap::bench::TaskGraph;

struct Request {
  std::string scene;
  int bodies{0};
  bool walls{false};
  int from{0};
  int to{0};
  std::vector<int> threads;
  bool fresh{false};
  bool reading{false};
  bool parts{false};
};

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Solves as `threads` threads would share them.
class Prediction {
 public:
  Prediction(int threads, const Request& request)
      : threads_(threads),
        fresh_(request.fresh),
        reading_(request.fresh || request.reading),
        arena_(threads),
        solver_(&arena_) {}

  tl::expected<const sap::ContactSolution*, sap::ProblemError> Solve(
      const sap::ContactProblemView& view, bool measured) {
    if (fresh_) solver_ = sap::Solver(&arena_);
    if (reading_) sap::bench::StartRecording();
    sap::EngineStatus solved = task_.Read(view);
    if (!reading_) sap::bench::StartRecording();
    if (solved) solved = task_.Solve(&solver_, {}, {}, {}, &solution_);
    TaskGraph graph = sap::bench::TakeRecording();
    if (!solved)
      return tl::unexpected(sap::ProblemError{solved.error().field, -1, solved.error().message});
    if (measured) graphs_.push_back(std::move(graph));
    return &solution_;
  }

  // From here on of one problem, which was solved many times.
  void KeepLeastTimes() {
    for (const TaskGraph& graph : graphs_) sap::bench::KeepLeastTimes(graph, &graphs_[0]);
    graphs_.resize(std::min<size_t>(graphs_.size(), 1));
  }

  void PrintParts() const {
    std::map<const void*, sap::bench::PartOfTime> sums;
    for (const TaskGraph& graph : graphs_) {
      for (const auto& part : sap::bench::PartsOfReplayedTime(graph, threads_, costs_)) {
        sap::bench::PartOfTime& sum = sums[part.body];
        sum.loops += part.loops;
        sum.serial_s += part.serial_s;
        sum.loop_s += part.loop_s;
        sum.work_s += part.work_s;
      }
    }
    const double count = static_cast<double>(graphs_.size());
    for (const auto& [body, sum] : sums) {
      const auto address =
          body == nullptr ? 0 : static_cast<const char*>(body) - __executable_start;
      std::printf("%d,%tx,%.1f,%.4f,%.4f,%.4f\n", threads_, address, sum.loops / count,
                  1e3 * sum.serial_s / count, 1e3 * sum.loop_s / count, 1e3 * sum.work_s / count);
    }
  }

  void Print() const {
    std::vector<double> work, critical_path, time, speed_up;
    for (const TaskGraph& graph : graphs_) {
      work.push_back(Work(graph));
      critical_path.push_back(CriticalPath(graph));
      time.push_back(ReplayedTime(graph, threads_, costs_));
      speed_up.push_back(work.back() / time.back());
    }
    std::printf("%d,%.4f,%.4f,%.4f,%.3f\n", threads_, 1e3 * Median(work),
                1e3 * Median(critical_path), 1e3 * Median(time), Median(speed_up));
  }

 private:
  const int threads_;
  const sap::bench::SharingCosts costs_{sap::bench::SharingCosts::Of(threads_)};
  const bool fresh_;
  const bool reading_;
  sap::TaskArena arena_;
  sap::Solver solver_;
  sap::SolveTask task_;
  sap::ContactSolution solution_;
  std::vector<TaskGraph> graphs_;
};

// The problem of a scene that is only one; empty if it is none.
tl::expected<std::optional<sap::test::ProblemArrays>, std::string> OneProblem(
    const Request& request) {
  if (request.scene == "table") return sap::test::BodiesOnATable(request.bodies);
  if (request.scene == "block") return sap::test::BlockOfBodies(request.bodies);
  const std::vector<std::string> scenes = sap::simulation::SceneNames();
  if (std::ranges::find(scenes, request.scene) != scenes.end()) return std::nullopt;
  if (sap::test::GoldenPath(request.scene, sap::test::GoldenSet::kFriction).empty()) {
    return tl::unexpected("there is no scene or problem '" + request.scene + "'");
  }
  return sap::test::LoadGolden(request.scene).arrays;
}

tl::expected<void, std::string> Predict(const Request& request,
                                        std::list<Prediction>* predictions) {
  const auto solve = [&](const sap::ContactProblemView& view, int step) {
    tl::expected<const sap::ContactSolution*, sap::ProblemError> solution = nullptr;
    for (Prediction& prediction : *predictions) {
      solution = prediction.Solve(view, step >= request.from);
      if (!solution) break;
    }
    return solution;
  };
  const auto one = OneProblem(request);
  if (!one) return tl::unexpected(one.error());
  const std::optional<sap::test::ProblemArrays>& problem = *one;
  if (request.from < 0 || request.from >= request.to) {
    return tl::unexpected<std::string>("FROM is a step before TO");
  }
  if (problem && !request.fresh && request.from < 1) {
    return tl::unexpected<std::string>("FROM is at least 1: the first solve of a problem plans");
  }
  if (!problem) {
    return sap::bench::RunSceneByViews(request.scene, request.bodies, request.walls, request.to,
                                       solve);
  }
  for (int step = 0; step < request.to; ++step) {
    const auto solution = solve(problem->View(), step);
    if (!solution) return tl::unexpected(solution.error().Message());
  }
  for (Prediction& prediction : *predictions) prediction.KeepLeastTimes();
  return {};
}

int Run(const Request& request) {
  std::list<Prediction> predictions;
  for (const int threads : request.threads) predictions.emplace_back(threads, request);
  if (const auto done = Predict(request, &predictions); !done) {
    std::fprintf(stderr, "task_graph_benchmark: %s\n", done.error().c_str());
    return 1;
  }
  for (const Prediction& prediction : predictions) {
    request.parts ? prediction.PrintParts() : prediction.Print();
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Request request;
  CLI::App app("Predicts how solves scale.", "task_graph_benchmark");
  app.add_option("SCENE", request.scene)->required();
  app.add_option("BODIES", request.bodies)->required();
  app.add_option("WALLS", request.walls)->required();
  app.add_option("FROM", request.from)->required();
  app.add_option("TO", request.to)->required();
  app.add_option("THREADS", request.threads)->required()->check(CLI::PositiveNumber);
  app.add_flag("--fresh", request.fresh);
  app.add_flag("--reading", request.reading);
  app.add_flag("--parts", request.parts);
  CLI11_PARSE(app, argc, argv);
  return Run(request);
}
