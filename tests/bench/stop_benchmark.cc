// How long after its deadline, or after it was cancelled, a solve returns.
//
//   stop_benchmark [--threads N] [--stops N] [NAME...]     names as in tests/data or
//   SAP_PROBLEMS_DIR
//
// Each solve is stopped at another time, drawn evenly: a deadline from `least`, what an answer
// takes whose deadline has passed when it starts, to `whole`, what it takes in full; a cancellation
// from the whole. `first` is a pattern that the solver has not seen, which has to be laid out;
// `again` is one that it has, as in a session. Solves that end by themselves are not counted.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "solver/parallel/spin_pause.h"
#include "solver/solve.h"
#include "tests/support/golden_problem.h"

namespace {

using Clock = sap::StopToken::Clock;
using Seconds = std::chrono::duration<double>;

constexpr int kRepetitions = 9;

struct Setting {
  int threads{1};
  int stops{300};
};

double SecondsUntil(Clock::time_point from, Clock::time_point to) {
  return Seconds(to - from).count();
}

// Another thread that cancels at a time.
class Canceller {
 public:
  explicit Canceller(Clock::time_point at)
      : thread_([this, at] {
          while (Clock::now() < at) sap::SpinPause();  // the solver may be on the same core
          cancelled_at_ = Clock::now();
          cancelled_.store(true);
        }) {}

  const std::atomic<bool>* flag() const { return &cancelled_; }
  // Returns once it has done so.
  Clock::time_point CancelledAt() {
    thread_.join();
    return cancelled_at_;
  }

 private:
  std::atomic<bool> cancelled_{false};
  Clock::time_point cancelled_at_;
  std::thread thread_;
};

class StoppedSolves {
 public:
  StoppedSolves(const sap::ContactProblem& problem, bool again, const Setting& setting)
      : problem_(problem), again_(again), arena_(setting.threads), stops_(setting.stops) {
    for (int i = 0; i < kRepetitions; ++i) {
      least_s_ = std::min(least_s_, EndAfter(Clock::duration::zero()));
      const Clock::time_point start = Begin();
      Solve(sap::StopToken());
      whole_s_ = std::min(whole_s_, SecondsUntil(start, Clock::now()));
    }
  }

  void Print(const std::string& name) {
    for (const bool cancel : {false, true}) {
      std::uniform_real_distribution<double> draw(cancel ? 0 : least_s_, whole_s_);
      std::vector<double> late;
      for (int i = 0; i < stops_; ++i) {
        const auto after = std::chrono::duration_cast<Clock::duration>(Seconds(draw(random_)));
        const double late_s = cancel ? CancelAfter(after) : EndAfter(after);
        if (WasStopped()) late.push_back(late_s);
      }
      if (late.empty()) continue;
      std::ranges::sort(late);
      std::printf("%-24s %-6s %-8s %8.3f %8.3f %6zu %9.0f %9.0f %9.0f\n", name.c_str(),
                  again_ ? "again" : "first", cancel ? "cancel" : "deadline", 1e3 * least_s_,
                  1e3 * whole_s_, late.size(), 1e6 * late[late.size() / 2],
                  1e6 * late[late.size() * 99 / 100], 1e6 * late.back());
    }
  }

 private:
  // Seconds from the deadline to the return; negative if it returns before.
  double EndAfter(Clock::duration wait) {
    const Clock::time_point deadline = Begin() + wait;
    Solve(sap::StopToken(nullptr, deadline));
    return SecondsUntil(deadline, Clock::now());
  }

  // Seconds from the cancellation to the return.
  double CancelAfter(Clock::duration wait) {
    // The thread has started by then.
    const Clock::time_point start = Begin() + std::chrono::milliseconds(1);
    Canceller canceller(start + wait);
    while (Clock::now() < start) {
    }
    Solve(sap::StopToken(canceller.flag(), Clock::time_point::max()));
    const Clock::time_point end = Clock::now();
    return SecondsUntil(canceller.CancelledAt(), end);
  }

  Clock::time_point Begin() {
    if (!again_) solver_ = sap::Solver(&arena_);
    return Clock::now();
  }

  void Solve(const sap::StopToken& stop) {
    solver_.Solve(problem_, sap::SolverOptions(), stop, &solution_);
  }

  bool WasStopped() const {
    return std::ranges::any_of(solution_.islands, [](const sap::IslandReport& report) {
      return report.status == sap::SolveStatus::kDeadline ||
             report.status == sap::SolveStatus::kCancelled;
    });
  }

  const sap::ContactProblem& problem_;
  const bool again_;
  sap::TaskArena arena_;
  const int stops_;
  sap::Solver solver_{&arena_};
  sap::ContactSolution solution_;
  double least_s_{std::numeric_limits<double>::infinity()};
  double whole_s_{std::numeric_limits<double>::infinity()};
  std::mt19937 random_{1};
};

}  // namespace

int main(int argc, char** argv) {
  Setting setting;
  std::vector<std::string> names{"clutter_bin_40_t1p00", "heaps_300x3_t1p50", "pile_1000_t12p00"};
  CLI::App app("Tells how late stopped solves return.", "stop_benchmark");
  app.add_option("--threads", setting.threads)->check(CLI::PositiveNumber);
  app.add_option("--stops", setting.stops)->check(CLI::PositiveNumber);
  app.add_option("NAME", names);
  CLI11_PARSE(app, argc, argv);
  std::printf("%-24s %-6s %-8s %8s %8s %6s %9s %9s %9s\n", "problem", "seen", "stop", "least/ms",
              "whole/ms", "stops", "late50/us", "late99/us", "latest/us");
  for (const std::string& name : names) {
    const auto golden = sap::test::LoadGolden(name);
    const auto problem = sap::ContactProblem::Make(golden.arrays.View());
    if (!problem) {
      std::printf("%s: %s\n", name.c_str(), problem.error().Message().c_str());
      continue;
    }
    for (const bool again : {false, true}) StoppedSolves(*problem, again, setting).Print(name);
  }
}
