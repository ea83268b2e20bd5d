// Time of a gradient, against solving the same problem and against differences of solutions.
//
//   gradient_benchmark [--pairs N] [--csv] SCENE BODIES WALLS STEP
//
// The problem is that of one step of a simulation. On one thread, warm (the pattern has been seen),
// in turn within one process:
//
//   solve        from the free-motion velocity, to the default tolerance
//   gradient     of one random cotangent on velocities, at the solution to 1e-10: its check, the
//                polishing step, factor and solve, and the derivatives of all inputs
//   differences  central ones for ten parameters on which the friction of all contacts depends: 20
//                solves to 1e-10 from the solution, without the reading of the 20 problems
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "client/cpp/simulation/simulation.h"
#include "solver/problem/input_differential.h"
#include "solver/solve.h"

namespace {

using sap::ContactProblem;
using sap::client::Problem;

constexpr int kParameters = 10;
constexpr sap::SolverOptions kTight{.relative_tolerance = 1e-10};

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

template <typename Work>
double Seconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The arrays of the given step. Ends the program where the scene cannot be made.
Problem ProblemOfStep(const std::string& name, int bodies, bool walls, int step) {
  auto scene = sap::simulation::MakeScene(name, {.bodies = bodies, .walls = walls});
  if (!scene) {
    std::fprintf(stderr, "gradient_benchmark: %s\n", scene.error().c_str());
    std::exit(1);
  }
  Problem last;
  sap::Solver solver(nullptr);
  const auto solve =
      [&](const Problem& arrays) -> tl::expected<sap::client::Solution, sap::client::Error> {
    last = arrays;
    sap::ContactSolution solution;
    solver.Solve(*ContactProblem::Make(ViewOf(arrays)), {}, sap::StopToken(), &solution);
    sap::client::Solution answer;
    answer.velocity = solution.velocity;
    answer.island_of_tree = solution.island_of_tree;
    return answer;
  };
  sap::simulation::Simulation simulation(*std::move(scene), 0.01, solve);
  for (int i = 0; i <= step; ++i) {
    if (const auto done = simulation.Step(); !done) {
      std::fprintf(stderr, "gradient_benchmark: %s\n", done.error().message.c_str());
      std::exit(1);
    }
  }
  return last;
}

// Runs that are timed, on one problem.
class Work {
 public:
  explicit Work(Problem arrays)
      : arrays_(std::move(arrays)), problem_(*ContactProblem::Make(ViewOf(arrays_))) {
    solver_.Solve(problem_, kTight, sap::StopToken(), &solution_);
    at_solution_ = problem_;
    at_solution_.SetGuess(solution_.velocity);
    std::mt19937_64 random(1);
    cotangent_.resize(problem_.num_velocities());
    for (double& x : cotangent_) x = std::normal_distribution()(random);
    MakeMoved(&random);
  }

  const ContactProblem& problem() const { return problem_; }
  int iterations() const { return iterations_; }

  double Solve() {
    const double seconds =
        Seconds([&] { solver_.Solve(problem_, {}, sap::StopToken(), &answer_); });
    iterations_ = 0;
    for (const sap::IslandReport& report : answer_.islands) {
      iterations_ = std::max(iterations_, report.iterations);
    }
    return seconds;
  }

  double Gradient() {
    sap::Cotangent cotangent;
    cotangent.velocity = cotangent_;
    return Seconds([&] {
      differentiator_.Differentiate(at_solution_, kTight, {&cotangent, 1}, {}, {}, sap::StopToken(),
                                    &answer_, &derivatives_);
      ToInputs(ViewOf(arrays_), problem_, derivatives_.gradients[0].problem, &gradient_);
    });
  }

  double Differences() {
    double seconds = 0;
    for (const ContactProblem& moved : moved_) {
      seconds +=
          Seconds([&] { difference_solver_.Solve(moved, kTight, sap::StopToken(), &answer_); });
    }
    return seconds;
  }

 private:
  void MakeMoved(std::mt19937_64* random) {
    std::vector<double>& friction = arrays_.body_contacts.law.friction;
    const std::vector<double> before = friction;
    std::vector<double> direction(before.size());
    for (int parameter = 0; parameter < kParameters; ++parameter) {
      for (double& x : direction) x = std::uniform_real_distribution(-1.0, 1.0)(*random);
      for (const double step : {1e-5, -1e-5}) {
        for (size_t i = 0; i < before.size(); ++i)
          friction[i] = before[i] * (1 + step * direction[i]);
        moved_.push_back(*ContactProblem::Make(ViewOf(arrays_)));
        moved_.back().SetGuess(solution_.velocity);
      }
    }
    friction = before;
  }

  Problem arrays_;
  ContactProblem problem_, at_solution_;
  std::vector<ContactProblem> moved_;
  std::vector<double> cotangent_;
  sap::Solver solver_{nullptr}, differentiator_{nullptr}, difference_solver_{nullptr};
  sap::ContactSolution solution_, answer_;
  sap::Derivatives derivatives_;
  sap::InputDifferential gradient_;
  int iterations_{0};
};

}  // namespace

int main(int argc, char** argv) {
  int pairs = 31, bodies = 0, step = 0;
  bool walls = false, csv = false;
  std::string scene;
  CLI::App app("Times gradients.", "gradient_benchmark");
  app.add_option("SCENE", scene)->required();
  app.add_option("BODIES", bodies)->required();
  app.add_option("WALLS", walls)->required();
  app.add_option("STEP", step)->required();
  app.add_option("--pairs", pairs)->check(CLI::PositiveNumber);
  app.add_flag("--csv", csv);
  CLI11_PARSE(app, argc, argv);
  Work work(ProblemOfStep(scene, bodies, walls, step));
  work.Solve();
  work.Gradient();
  work.Differences();
  std::vector<double> solve, gradient, differences, of_solve, of_differences;
  for (int i = 0; i < pairs; ++i) {
    solve.push_back(work.Solve());
    gradient.push_back(work.Gradient());
    differences.push_back(work.Differences());
    of_solve.push_back(gradient.back() / solve.back());
    of_differences.push_back(differences.back() / gradient.back());
  }
  const auto least = [](const std::vector<double>& x) {
    return 1e3 * *std::min_element(x.begin(), x.end());
  };
  if (!csv) {
    std::printf(
        "scene,bodies,step,contacts,iterations,solve min ms,solve median ms,gradient min "
        "ms,gradient median ms,gradient / solve,differences median ms,differences / "
        "gradient\n");
  }
  std::printf("%s,%d,%d,%d,%d,%.4f,%.4f,%.4f,%.4f,%.3f,%.3f,%.1f\n", scene.c_str(), bodies, step,
              work.problem().num_contacts(), work.iterations(), least(solve), 1e3 * Median(solve),
              least(gradient), 1e3 * Median(gradient), Median(of_solve), 1e3 * Median(differences),
              Median(of_differences));
  return 0;
}
