#include "solver/run/island_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "solver/newton/single_body_islands.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

class IslandScheduleTest : public testing::Test {
 protected:
  explicit IslandScheduleTest(const ProblemArrays& arrays = Mixed()) {
    const ContactProblem problem = Checked(arrays);
    graph_.Build(problem, true);
    plans_.Make(graph_, StopToken(), nullptr);
    schedule_.Build(graph_, plans_);
  }

  // Many heaps, and a pile that comes last in the order of islands.
  static ProblemArrays Mixed() { return HeapsBeforeAPile(40, 60); }

  ConstraintGraph graph_;
  IslandPlans plans_;
  IslandSchedule schedule_;
};

TEST_F(IslandScheduleTest, EveryIslandIsInOneTaskAndTheLargestComesFirst) {
  const int count = graph_.islands().count();
  std::vector<int> seen(count, 0);
  int position = 0;
  for (int task = 0; task < schedule_.num_tasks(); ++task) {
    EXPECT_EQ(schedule_.task_begin(task), position);
    EXPECT_LT(position, schedule_.task_end(task));
    for (; position < schedule_.task_end(task); ++position) {
      ++seen[schedule_.island(position)];
      if (position == 0) continue;
      EXPECT_GE(schedule_.flops(schedule_.island(position - 1)),
                schedule_.flops(schedule_.island(position)));
    }
  }
  EXPECT_EQ(seen, std::vector<int>(count, 1));
  EXPECT_EQ(schedule_.island(0), count - 1);
}

TEST_F(IslandScheduleTest, WhatComesAfterIsTheRest) {
  const int count = graph_.islands().count();
  for (int position = 0; position < count; ++position) {
    int64_t constraints = 0;
    double cubed_dofs = graph_.island_ranges()[schedule_.island(position)].cubed_dofs;
    for (int later = position + 1; later < count; ++later) {
      const IslandRange& range = graph_.island_ranges()[schedule_.island(later)];
      constraints += range.num_constraints();
      cubed_dofs += range.cubed_dofs;
    }
    EXPECT_EQ(schedule_.constraints_after(position), constraints);
    EXPECT_EQ(schedule_.cubed_dofs_from(position), cubed_dofs);  // cubes of integers are exact
    EXPECT_EQ(schedule_.islands_after(position), count - 1 - position);
  }
}

TEST(IslandPlansTest, SmallIslandsNeedNone) {
  const ContactProblem problem = Checked(Heaps(1, 3, 6));
  ConstraintGraph graph;
  graph.Build(problem, true);
  IslandPlans plans;
  plans.Make(graph, StopToken().Expired(), nullptr);
  EXPECT_TRUE(plans.complete());
  for (int island = 0; island < 3; ++island) {
    EXPECT_TRUE(IsDense(graph, graph.island_ranges()[island]));
    EXPECT_EQ(plans.plan(island), nullptr);
  }
}

TEST(IslandPlansTest, WithoutTimeLargeIslandsHaveNoPlanUntilThereIsSome) {
  const ContactProblem problem = Checked(HeapsBeforeAPile(2, 30));
  ConstraintGraph graph;
  graph.Build(problem, true);
  IslandPlans plans;
  plans.Make(graph, StopToken().Expired(), nullptr);
  EXPECT_FALSE(plans.complete());
  EXPECT_EQ(plans.plan(2), nullptr);
  plans.Make(graph, StopToken(), nullptr);
  EXPECT_TRUE(plans.complete());
  EXPECT_EQ(plans.plan(2)->num_blocks(), 30);
}

// 1500 heaps of seven bodies, and a pile that comes last.
class SingleBodyScheduleTest : public IslandScheduleTest {
 protected:
  SingleBodyScheduleTest() : IslandScheduleTest(Heaps(1, 50, 1)) {}
};

TEST_F(SingleBodyScheduleTest, OnlyTheLastTaskLeavesAVectorUnfilled) {
  ASSERT_GT(schedule_.num_tasks(), 1);
  for (int task = 0; task + 1 < schedule_.num_tasks(); ++task) {
    EXPECT_EQ((schedule_.task_end(task) - schedule_.task_begin(task)) % kMaxSingleBodyIslands, 0);
  }
}

}  // namespace
}  // namespace sap::test
