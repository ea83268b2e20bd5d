// Predicts how the steps of the project's own scenes scale: each step is solved on one thread with
// the loops that a number of threads would share, the time of every task is recorded, and the tasks
// are replayed on that number of threads (task_graph.h). The prediction is an upper bound.
//
//   task_graph_benchmark SCENE BODIES WALLS FROM TO THREADS...
//
// The scene "table" is one problem, solved TO times: so many bodies that lie on one tree.
//
// Prints a line per number of threads: threads, work and critical path of a step [ms], predicted
// time [ms] and speed-up; medians over the steps FROM <= step < TO.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <list>
#include <string>
#include <vector>

#include "solver/parallel/task_arena.h"
#include "solver/solve.h"
#include "tests/bench/recording_arena.h"
#include "tests/bench/scene_sequence.h"
#include "tests/support/random_problem.h"

namespace {

using sap::bench::TaskGraph;

// Opening, sharing and closing a loop: solver/MEASURED.md, "Threads".
constexpr double kLoopSeconds = 0.2e-6;

struct Request {
  std::string scene;
  int bodies{0};
  bool walls{false};
  int from{0};
  int to{0};
  std::vector<int> threads;
};

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// The steps as `threads` threads would share them.
class Prediction {
 public:
  explicit Prediction(int threads) : threads_(threads), arena_(threads), solver_(&arena_) {}

  const sap::ContactSolution& Solve(const sap::ContactProblem& problem, bool measured) {
    sap::bench::StartRecording();
    solver_.Solve(problem, {}, sap::StopToken(), &solution_);
    const TaskGraph graph = sap::bench::TakeRecording();
    if (measured) {
      work_.push_back(Work(graph));
      critical_path_.push_back(CriticalPath(graph));
      time_.push_back(ReplayedTime(graph, threads_, kLoopSeconds));
      speed_up_.push_back(work_.back() / time_.back());
    }
    return solution_;
  }

  void Print() const {
    std::printf("%d,%.4f,%.4f,%.4f,%.3f\n", threads_, 1e3 * Median(work_),
                1e3 * Median(critical_path_), 1e3 * Median(time_), Median(speed_up_));
  }

 private:
  const int threads_;
  sap::TaskArena arena_;
  sap::Solver solver_;
  sap::ContactSolution solution_;
  std::vector<double> work_, critical_path_, time_, speed_up_;
};

int Run(const Request& request) {
  std::list<Prediction> predictions;
  for (const int threads : request.threads) predictions.emplace_back(threads);
  const auto solve = [&](const sap::ContactProblem& problem,
                         int step) -> const sap::ContactSolution& {
    const sap::ContactSolution* solution = nullptr;
    for (Prediction& prediction : predictions) {
      solution = &prediction.Solve(problem, step >= request.from);
    }
    return *solution;
  };
  if (request.scene == "table") {
    const auto table = sap::test::Checked(sap::test::BodiesOnATable(request.bodies));
    for (int step = 0; step < request.to; ++step) solve(table, step);
  } else if (const auto done = sap::bench::RunScene(request.scene, request.bodies, request.walls,
                                                    request.to, solve);
             !done) {
    std::fprintf(stderr, "task_graph_benchmark: %s\n", done.error().c_str());
    return 1;
  }
  for (const Prediction& prediction : predictions) prediction.Print();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Request request;
  CLI::App app("Predicts how the steps of a simulation scale.", "task_graph_benchmark");
  app.add_option("SCENE", request.scene)->required();
  app.add_option("BODIES", request.bodies)->required();
  app.add_option("WALLS", request.walls)->required();
  app.add_option("FROM", request.from)->required();
  app.add_option("TO", request.to)->required();
  app.add_option("THREADS", request.threads)->required()->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  return Run(request);
}
