// Time and work of problems with coupled trees, and of the same problems with dense matrices where
// the set has them.
//
//   coupled_benchmark [--repeats N] [NAME...]     names as in tests/data/soft or
//   SAP_PROBLEMS_SOFT_DIR
//
// A problem NAME_parts is timed in turn with NAME_dense in one process, and the median of the
// ratios is given. Warm, as in a session: `plan` is the time that a new pattern takes once. `check`
// is the reading of the arrays with the factor of A.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "solver/run/island_plans.h"
#include "solver/solve.h"
#include "tests/support/golden_problem.h"

namespace {

using sap::ContactProblem;

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// One problem, read and solved again and again.
class Side {
 public:
  explicit Side(const std::string& name)
      : arrays_(sap::test::LoadGolden(name, sap::test::GoldenSet::kSoft).arrays) {
    Time();
    check_.clear();
    solve_.clear();
  }

  // The time of both.
  double Time() {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    problem_ = *ContactProblem::Make(arrays_.View());
    const Clock::time_point checked = Clock::now();
    solver_.Solve(problem_, {}, sap::StopToken(), &solution_);
    const std::chrono::duration<double, std::milli> check = checked - start;
    const std::chrono::duration<double, std::milli> solve = Clock::now() - checked;
    check_.push_back(check.count());
    solve_.push_back(solve.count());
    return check.count() + solve.count();
  }

  const ContactProblem& problem() const { return problem_; }
  double check() const { return Median(check_); }
  double solve() const { return Median(solve_); }
  int iterations() const {
    int most = 0;
    for (const sap::IslandReport& report : solution_.islands) {
      most = std::max(most, report.iterations);
    }
    return most;
  }

 private:
  sap::test::ProblemArrays arrays_;
  ContactProblem problem_;
  sap::Solver solver_{nullptr};
  sap::ContactSolution solution_;
  std::vector<double> check_, solve_;
};

struct Work {
  double plan{0};               // time to plan the factorizations of the islands [ms]
  double flops{0}, varying{0};  // of one factorization of each [Mflop]
};

Work WorkOf(const ContactProblem& problem) {
  sap::ConstraintGraph graph;
  graph.Build(problem, true);
  sap::IslandPlans plans;
  Work work;
  const auto start = std::chrono::steady_clock::now();
  plans.Make(graph, sap::StopToken(), nullptr);
  work.plan =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  for (int island = 0; island < graph.islands().count(); ++island) {
    const sap::EliminationPlan* plan = plans.plan(island);
    if (plan == nullptr) continue;
    work.flops += plan->factor_flops() / 1e6;
    work.varying += plan->varying_flops() / 1e6;
  }
  return work;
}

void Run(const std::string& name, int repeats) {
  const std::vector<std::string> all = sap::test::GoldenNames("", sap::test::GoldenSet::kSoft);
  const size_t parts = name.rfind("_parts");
  const std::string twin = name.substr(0, parts) + "_dense";
  const bool has_twin = parts != std::string::npos && std::ranges::binary_search(all, twin);
  Side side(name);
  std::optional<Side> dense;
  if (has_twin) dense.emplace(twin);
  std::vector<double> ratios;
  for (int i = 0; i < repeats; ++i) {
    const double of_dense = dense ? dense->Time() : 0;
    ratios.push_back(of_dense / side.Time());
  }
  const Work work = WorkOf(side.problem());
  std::printf("%-28s %6d %6d %8d %4d %9.2f %7.1f%% %9.3f %9.3f %9.3f", name.c_str(),
              side.problem().num_trees(), side.problem().num_velocities(),
              side.problem().num_contacts(), side.iterations(), work.flops,
              work.flops > 0 ? 100 * work.varying / work.flops : 0, work.plan, side.check(),
              side.solve());
  if (dense) {
    std::printf(" %9.3f %9.3f %9.2f", dense->check(), dense->solve(), Median(ratios));
  }
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  int repeats = 31;
  std::vector<std::string> names;
  CLI::App app("Times problems with coupled trees.", "coupled_benchmark");
  app.add_option("--repeats", repeats)->check(CLI::PositiveNumber);
  app.add_option("NAME", names);
  CLI11_PARSE(app, argc, argv);
  if (names.empty()) names = sap::test::GoldenNames("", sap::test::GoldenSet::kSoft);
  std::printf("%-28s %6s %6s %8s %4s %9s %8s %9s %9s %9s %9s %9s %9s\n", "problem", "trees", "dofs",
              "contacts", "its", "Mflop", "varying", "plan/ms", "check/ms", "solve/ms", "dense-ch.",
              "dense-so.", "dense/ours");
  for (const std::string& name : names) Run(name, repeats);
}
