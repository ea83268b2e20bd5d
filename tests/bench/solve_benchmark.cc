// Time of whole solves of problem files: with islands against without, and on several threads
// against one.
//
//   solve_benchmark [--threads N] [--pairs N] [NAME...]     names as in tests/data or
//   SAP_PROBLEMS_DIR; a problem needs no reference solution
//   solve_benchmark --solves N NAME...     a first solve and N warm ones on one thread and nothing
//   else, for a profiler (solve_counts.py)
//
// The two sides of a ratio are run in turn within one process, and the median of the ratios is
// given: what else the machine does then weighs on both. The speed-up is also given by the sums of
// all times, which show what a median hides. The solver is warm (the pattern has been seen), as in
// a session. How far apart two cores are, which decides what threads gain, is measured after the
// solves: on virtual machines it changes while they run. The last column is a hash of the answer,
// for comparison with other builds.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "solver/solve.h"
#include "tests/bench/core_distance.h"
#include "tests/support/golden_problem.h"
#include "tests/support/problem_json.h"

namespace {

using sap::ContactProblem;
using sap::ContactSolution;
using sap::Solver;
using sap::SolverOptions;

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// One way of solving, warm.
class Side {
 public:
  Side(const ContactProblem& problem, sap::TaskArena* arena, bool islands)
      : problem_(problem), solver_(arena) {
    options_.islands = islands;
    Time();
  }

  double Time() {
    solver_.Solve(problem_, options_, sap::StopToken(), &solution_);
    times_.push_back(solution_.times.islands_s + solution_.times.solve_s);
    return times_.back();
  }

  double Least() const { return *std::min_element(times_.begin(), times_.end()); }
  double MedianTime() const { return Median(times_); }
  const ContactSolution& solution() const { return solution_; }

 private:
  const ContactProblem& problem_;
  Solver solver_;
  SolverOptions options_;
  ContactSolution solution_;
  std::vector<double> times_;
};

// Times of one side relative to another's.
struct Ratio {
  double median;  // over pairs
  double of_sums;
};

Ratio Compare(Side* base, Side* side, int pairs) {
  std::vector<double> ratios;
  double base_sum = 0;
  double side_sum = 0;
  for (int i = 0; i < pairs; ++i) {
    const double base_first = i % 2 == 0 ? base->Time() : 0;
    const double time = side->Time();
    const double base_time = i % 2 == 0 ? base_first : base->Time();
    ratios.push_back(time / base_time);
    base_sum += base_time;
    side_sum += time;
  }
  return {Median(ratios), side_sum / base_sum};
}

// Differs wherever one bit of a velocity or an impulse does, as surely as 64 bits can tell.
uint64_t HashOfBits(const ContactSolution& solution) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a, by words
  for (const auto* values :
       {&solution.velocity, &solution.impulse, &solution.row_impulse, &solution.angular_impulse}) {
    for (const double value : *values) {
      hash = (hash ^ std::bit_cast<uint64_t>(value)) * 1099511628211u;
    }
  }
  return hash;
}

// The hash of an answer, which must not depend on the number of threads.
std::string Bits(const ContactSolution& one_thread, const ContactSolution& several) {
  const uint64_t hash = HashOfBits(one_thread);
  if (HashOfBits(several) != hash) return "threads-differ";
  return std::to_string(hash);
}

sap::test::ProblemArrays Load(const std::string& name) {
  const auto path = sap::test::GoldenPath(name, sap::test::GoldenSet::kFriction);
  return sap::test::ProblemFromJson(sap::test::ReadJson(path));
}

void Run(const std::string& name, int threads, int pairs) {
  const auto arrays = Load(name);
  const auto problem = ContactProblem::Make(arrays.View());
  if (!problem) {
    std::printf("%s: %s\n", name.c_str(), problem.error().Message().c_str());
    return;
  }
  sap::TaskArena arena(threads);
  Side whole(*problem, nullptr, false);
  Side islands(*problem, nullptr, true);
  Side parallel(*problem, &arena, true);
  const Ratio islands_ratio = Compare(&whole, &islands, pairs);
  const Ratio threads_ratio = Compare(&islands, &parallel, pairs);
  int iterations = 0;
  for (const sap::IslandReport& report : islands.solution().islands) {
    iterations = std::max(iterations, report.iterations);
  }
  std::printf("%-28s %7zu %7d %4d %9.3f %9.3f %9.3f %8.3f %9.3f %8.2f %8.2f %7.0f %s\n",
              name.c_str(), islands.solution().islands.size(), problem->num_contacts(), iterations,
              1e3 * whole.Least(), 1e3 * islands.Least(), 1e3 * islands.MedianTime(),
              islands_ratio.median, 1e3 * parallel.Least(), 1 / threads_ratio.median,
              1 / threads_ratio.of_sums, sap::bench::RoundTrip_ns(std::chrono::milliseconds(20)),
              Bits(islands.solution(), parallel.solution()).c_str());
}

void SolveOnly(const std::string& name, int solves) {
  const auto arrays = Load(name);
  const auto problem = ContactProblem::Make(arrays.View());
  if (!problem) {
    std::printf("%s: %s\n", name.c_str(), problem.error().Message().c_str());
    return;
  }
  Side islands(*problem, nullptr, true);
  for (int i = 0; i < solves; ++i) islands.Time();
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 2;
  int pairs = 31;
  int solves = 0;
  std::vector<std::string> names;
  CLI::App app("Times whole solves of problem files.", "solve_benchmark");
  app.add_option("--threads", threads)->check(CLI::PositiveNumber);
  app.add_option("--pairs", pairs)->check(CLI::PositiveNumber);
  app.add_option("--solves", solves)->check(CLI::PositiveNumber);
  app.add_option("NAME", names);
  CLI11_PARSE(app, argc, argv);
  if (names.empty()) names = sap::test::GoldenNames();
  for (const std::string& name : names) {
    if (!sap::test::GoldenPath(name, sap::test::GoldenSet::kFriction).empty()) continue;
    std::fprintf(stderr, "solve_benchmark: there is no problem '%s'\n", name.c_str());
    return 1;
  }
  if (solves > 0) {
    for (const std::string& name : names) SolveOnly(name, solves);
    return 0;
  }
  std::printf("%-28s %7s %7s %4s %9s %9s %9s %8s %9s %8s %8s %7s %s\n", "problem", "islands",
              "contacts", "its", "whole/ms", "min/ms", "median/ms", "on/off", "par./ms", "speed-up",
              "by-sums", "trip/ns", "bits");
  for (const std::string& name : names) Run(name, threads, pairs);
}
