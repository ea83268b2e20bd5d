#include "solver/newton/few_rows_view.h"

#include <gtest/gtest.h>

#include "solver/newton/sap_solver.h"
#include "tests/solver/prepared_problem.h"
#include "tests/support/random_constraints.h"

namespace sap::test {
namespace {

ProblemArrays RandomRows(uint64_t seed, int trees, int max_dofs, int rows) {
  return RandomConstraintsOfEveryKind(
      seed, {.contacts = {.trees = trees, .contacts = 0, .max_dofs = max_dofs}, .rows = rows});
}

// Velocities and reports of all islands, each from its guess.
struct Answer {
  std::vector<double> v, gradient;
  std::vector<IslandReport> reports;
};

// An island with an arena, of one thread here, has the view of any island.
Answer SolveAll(const PreparedProblem& p, const SolverOptions& options, TaskArena* arena) {
  SweepOrder sweep_order;
  sweep_order.Build(p.graph);
  SapWorkspace workspace;
  workspace.Resize(p.graph);
  workspace.data.v = p.data.v;
  Answer answer;
  for (int island = 0; island < p.graph.islands().count(); ++island) {
    const IslandView view = p.View(island, arena);
    EXPECT_EQ(FewRowsView::Fits(view), arena == nullptr);
    SolveIsland(view, options, StopToken(), sweep_order, PlannedFactors(), &workspace,
                &answer.reports.emplace_back());
  }
  answer.v = workspace.data.v;
  answer.gradient = workspace.data.gradient;
  return answer;
}

TEST(FewRowsViewTest, IslandsAreSolvedToTheBitsOfTheViewOfAnyIsland) {
  TaskArena arena(1);
  for (int seed = 0; seed < 60; ++seed) {
    const bool joints = seed % 2 == 0;  // islands of a few trees of one degree of freedom
    const PreparedProblem p(joints ? RandomRows(seed, 20, 1, 20) : RandomRows(seed, 6, 7, 25));
    for (const NewtonMethod newton :
         {NewtonMethod::kAccelerated, NewtonMethod::kPlain, NewtonMethod::kGaussSeidel}) {
      const SolverOptions options{.max_iterations = 40, .newton = newton};
      const Answer few_rows = SolveAll(p, options, nullptr);
      const Answer any = SolveAll(p, options, &arena);
      EXPECT_EQ(few_rows.v, any.v) << seed;
      EXPECT_EQ(few_rows.gradient, any.gradient) << seed;
      ASSERT_EQ(few_rows.reports.size(), any.reports.size());
      for (size_t i = 0; i < any.reports.size(); ++i) {
        EXPECT_EQ(few_rows.reports[i].status, any.reports[i].status) << seed;
        EXPECT_EQ(few_rows.reports[i].iterations, any.reports[i].iterations) << seed;
        EXPECT_EQ(few_rows.reports[i].cost, any.reports[i].cost) << seed;
        EXPECT_EQ(few_rows.reports[i].momentum_residual, any.reports[i].momentum_residual) << seed;
        EXPECT_EQ(few_rows.reports[i].optimality_gap_bound, any.reports[i].optimality_gap_bound)
            << seed;
      }
    }
  }
}

bool FitsWhole(const ProblemArrays& arrays) {
  const PreparedProblem p(arrays, /*split_islands=*/false);
  return FewRowsView::Fits(p.View(0));
}

TEST(FewRowsViewTest, FitsIslandsOfWhichEveryLoopIsOneChunk) {
  EXPECT_TRUE(FitsWhole(RandomRows(1, 10, 3, kRowsOfOneChunk)));
  EXPECT_FALSE(FitsWhole(RandomRows(1, 10, 3, kRowsOfOneChunk + 1)));
  EXPECT_FALSE(FitsWhole(RandomRows(1, 4 * kTreesOfOneChunk, 1, kRowsOfOneChunk)));
}

TEST(FewRowsViewTest, FitsNoIslandWithContacts) {
  EXPECT_FALSE(FitsWhole(RandomConstraintsOfEveryKind(1, {.contacts = {.contacts = 1}})));
}

}  // namespace
}  // namespace sap::test
