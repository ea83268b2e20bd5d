#include "solver/cholesky/elimination_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "solver/cholesky/elimination_tree.h"
#include "solver/cholesky/front_layout.h"
#include "solver/cholesky/supernodes.h"
#include "tests/solver/cholesky/block_patterns.h"
#include "tests/solver/cholesky/symbolic_oracle.h"

namespace sap {
namespace {

using test::PatternData;
using Front = EliminationPlan::Front;

std::vector<PatternData> Patterns() {
  using namespace test;
  std::vector<PatternData> patterns{Blocks(0),      Blocks(1),         Blocks(20),
                                    Chain(50),      Star(30, 0),       Star(30, 30),
                                    Clique(10),     Grid(12, 9),       Pile(150, 5.5, 1),
                                    Grid(30, 30),   TwoCliques(20, 9), RandomGraph(60, 30, 1),
                                    Star(500, 100), RandomTree(300, 1)};
  for (unsigned seed = 0; seed < 20; ++seed) {
    patterns.push_back(
        WithMixedSizes(RandomGraph(40, 20 + 5 * static_cast<int>(seed), seed), seed));
  }
  return patterns;
}

std::vector<int> ShuffledOrder(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (int i = count - 1; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
  return order;
}

TEST(EliminationTreeTest, ParentsAndColumnsAreThoseOfEliminationOneByOne) {
  for (const PatternData& data : Patterns()) {
    const BlockGraph graph = BlockGraph::FromPattern(data.pattern());
    const EliminationTree tree = EliminationTree::Make(graph, ShuffledOrder(graph.num_blocks(), 5));
    ASSERT_TRUE(test::IsPermutation(tree.order, graph.num_blocks()));
    const auto rows = test::EliminateNaively(graph, tree.order);
    for (int k = 0; k < graph.num_blocks(); ++k) {
      EXPECT_EQ(tree.order[tree.position[k]], k);
      EXPECT_EQ(tree.parent[k], rows[k].empty() ? -1 : *rows[k].begin());
      int count = graph.weight[tree.order[k]];
      for (const int i : rows[k]) count += graph.weight[tree.order[i]];
      EXPECT_EQ(tree.column_rows[k], count);
    }
  }
}

TEST(EliminationTreeTest, PostorderHasSubtreesContiguousAndFillUnchanged) {
  for (const PatternData& data : Patterns()) {
    const BlockGraph graph = BlockGraph::FromPattern(data.pattern());
    const std::vector<int> order = ShuffledOrder(graph.num_blocks(), 6);
    const EliminationTree tree = EliminationTree::Make(graph, order);
    std::vector<int> first(graph.num_blocks());
    std::iota(first.begin(), first.end(), 0);
    std::vector<int> size(graph.num_blocks(), 1);
    for (int k = 0; k < graph.num_blocks(); ++k) {
      EXPECT_EQ(k - first[k] + 1, size[k]);
      if (tree.parent[k] < 0) continue;
      EXPECT_GT(tree.parent[k], k);
      first[tree.parent[k]] = std::min(first[tree.parent[k]], first[k]);
      size[tree.parent[k]] += size[k];
    }
    EXPECT_EQ(test::NumBlocksOfFactor(graph, tree.order), test::NumBlocksOfFactor(graph, order));
  }
}

TEST(SupernodesTest, FrontsHoldAllRowsOfTheirColumns) {
  for (const PatternData& data : Patterns()) {
    const BlockGraph graph = BlockGraph::FromPattern(data.pattern());
    const EliminationTree tree = EliminationTree::Make(graph, ShuffledOrder(graph.num_blocks(), 7));
    const Supernodes nodes = Supernodes::Make(graph, tree);
    ASSERT_TRUE(test::IsPermutation(nodes.order, graph.num_blocks()));
    const auto rows = test::EliminateNaively(graph, nodes.order);
    for (int s = 0; s < nodes.size(); ++s) {
      const int begin = nodes.block_start[s];
      const int end = nodes.block_start[s + 1];
      int pivots = 0;
      std::set<int> below;
      for (int k = begin; k < end; ++k) {
        pivots += graph.weight[nodes.order[k]];
        below.insert(rows[k].lower_bound(end), rows[k].end());
      }
      int updates = 0;
      for (const int k : below) updates += graph.weight[nodes.order[k]];
      EXPECT_EQ(nodes.pivots[s], pivots);
      EXPECT_EQ(nodes.updates[s], updates);
      if (below.empty()) {
        EXPECT_EQ(nodes.parent[s], -1);
      } else {
        ASSERT_GT(nodes.parent[s], s);
        EXPECT_GE(*below.begin(), nodes.block_start[nodes.parent[s]]);
        EXPECT_LT(*below.begin(), nodes.block_start[nodes.parent[s] + 1]);
      }
    }
  }
}

TEST(EliminationPlanTest, LargeBlocksAreNotMergedIntoFrontsWithZeros) {
  // Merging blocks of 60 rows saves less than the zeros cost, so no entry of L is an explicit zero.
  const PatternData star = test::Star(20, 0, 60);
  EXPECT_EQ(EliminationPlan::Make(star.pattern()).factor_entries(),
            21 * 60 * 61 / 2 + 20 * 60 * 60);
  const PatternData chain = test::Chain(20, 60);
  EXPECT_EQ(EliminationPlan::Make(chain.pattern()).factor_entries(),
            20 * 60 * 61 / 2 + 19 * 60 * 60);
}

TEST(EliminationPlanTest, ChainOfBodiesStaysSparse) {
  const EliminationPlan plan = EliminationPlan::Make(test::Chain(1000).pattern());
  EXPECT_EQ(plan.ordering(), Ordering::kMinimumDegree);
  EXPECT_LT(plan.factor_entries(), 4 * (1000 * 21 + 999 * 36));
  EXPECT_LT(plan.largest_front(), 100);
}

TEST(EliminationPlanTest, DenseSystemIsOneFront) {
  const EliminationPlan plan = EliminationPlan::Make(test::Clique(20).pattern());
  EXPECT_EQ(plan.num_fronts(), 1);
  EXPECT_EQ(plan.height(), 1);
  EXPECT_EQ(plan.largest_front(), 120);
  EXPECT_EQ(plan.factor_entries(), 120 * 121 / 2);
  EXPECT_NEAR(plan.factor_flops(), 120.0 * 120 * 120 / 3, 1.0);
}

TEST(EliminationPlanTest, EmptyPatternHasAnEmptyPlan) {
  const EliminationPlan plan = EliminationPlan::Make(BlockPattern{});
  EXPECT_EQ(plan.num_blocks(), 0);
  EXPECT_EQ(plan.num_rows(), 0);
  EXPECT_EQ(plan.num_fronts(), 0);
  EXPECT_EQ(plan.factor_flops(), 0.0);
  EXPECT_EQ(plan.diagonal_start().back(), 0);
}

TEST(EliminationPlanTest, SmallPilesAreOrderedByMinimumDegreeAndLargeOnesDissected) {
  const auto ordering = [](int count) {
    return EliminationPlan::Make(test::Pile(count, 5.5, 1).pattern()).ordering();
  };
  EXPECT_EQ(ordering(100), Ordering::kMinimumDegree);
  EXPECT_EQ(ordering(1000), Ordering::kNestedDissection);
}

// So many cliques of six blocks, which have no fill.
PatternData Cliques(int count) {
  PatternData data = test::Blocks(6 * count);
  for (int block = 0; block < data.num_blocks(); ++block) {
    for (int other = block + 1; other < (block / 6 + 1) * 6; ++other) {
      data.edge_a.push_back(block);
      data.edge_b.push_back(other);
    }
  }
  return data;
}

// Several threads make both orders at once, one thread the second only where the first may not be
// the best.
TEST(EliminationPlanTest, APlanIsTheSameForAnyNumberOfThreads) {
  for (const PatternData& data :
       {test::Pile(1000, 5.5, 3), test::Pile(300, 5.5, 3), Cliques(120), test::Grid(30, 30),
        test::WithVarying(test::Pile(900, 5.5, 4), 60)}) {
    const EliminationPlan alone = EliminationPlan::Make(data.pattern());
    for (const int threads : {2, 3}) {
      TaskArena arena(threads, Sharing::kAlways);
      const auto plan = EliminationPlan::Make(data.pattern(), Ordering::kAuto, StopToken(), &arena);
      ASSERT_TRUE(plan);
      EXPECT_EQ(plan->ordering(), alone.ordering());
      EXPECT_TRUE(std::ranges::equal(plan->order(), alone.order()));
      EXPECT_EQ(plan->num_fronts(), alone.num_fronts());
      EXPECT_EQ(plan->factor_flops(), alone.factor_flops());
    }
  }
}

TEST(EliminationPlanTest, IdenticalPatternsHaveIdenticalPlans) {
  for (const PatternData& data : Patterns()) {
    const EliminationPlan a = EliminationPlan::Make(data.pattern());
    EliminationPlan::Make(test::Pile(200, 5.5, 2).pattern());
    const EliminationPlan b = EliminationPlan::Make(data.pattern());
    EXPECT_TRUE(std::ranges::equal(a.order(), b.order()));
    EXPECT_EQ(a.num_waves(), b.num_waves());
    ASSERT_EQ(a.num_fronts(), b.num_fronts());
    const auto front = [](const Front& f) {
      return std::tuple(f.pivots, f.updates, f.pivot_begin, f.parent, f.run_begin, f.run_end,
                        f.entry_begin, f.entry_end, f.factor_start_double, f.factor_start_float,
                        f.update_start[EliminationPlan::kSerial],
                        f.update_start[EliminationPlan::kConcurrent]);
    };
    for (int f = 0; f < a.num_fronts(); ++f) {
      EXPECT_EQ(front(a.fronts()[f]), front(b.fronts()[f]));
    }
  }
}

TEST(EliminationPlanTest, EveryBlockEntersOneFrontOnce) {
  for (const PatternData& data : Patterns()) {
    const EliminationPlan plan = EliminationPlan::Make(data.pattern());
    EXPECT_EQ(plan.matrix_blocks().size(), data.block_size.size() + data.edge_a.size());
    int next = 0;
    int next_row = 0;
    for (const Front& front : plan.fronts()) {
      EXPECT_EQ(front.entry_begin, next);
      EXPECT_EQ(front.pivot_begin, next_row);
      next = front.entry_end;
      next_row += front.pivots;
      for (int b = front.entry_begin; b < front.entry_end; ++b) {
        EXPECT_LT(plan.matrix_blocks()[b].column, front.pivots);
        EXPECT_LT(plan.matrix_blocks()[b].row, front.pivots + front.updates);
      }
    }
    EXPECT_EQ(next_row, plan.num_rows());
  }
}

// Every update row of a child has one place in the parent, and the places ascend.
TEST(EliminationPlanTest, RunsPlaceEveryUpdateRowOfAChildInItsParent) {
  for (const PatternData& data : Patterns()) {
    const EliminationPlan plan = EliminationPlan::Make(data.pattern());
    for (const Front& front : plan.fronts()) {
      if (front.parent < 0) {
        EXPECT_EQ(front.updates, 0);
        continue;
      }
      const Front& parent = plan.fronts()[front.parent];
      int child_row = 0;
      int parent_row = 0;
      for (int r = front.run_begin; r < front.run_end; ++r) {
        const EliminationPlan::RowRun& run = plan.runs()[r];
        EXPECT_EQ(run.child_row, child_row);
        EXPECT_GE(run.parent_row, parent_row);
        child_row += run.length;
        parent_row = run.parent_row + run.length;
        EXPECT_TRUE(parent_row <= parent.pivots || run.parent_row >= parent.pivots);
      }
      EXPECT_EQ(child_row, front.updates);
      EXPECT_LE(parent_row, parent.pivots + parent.updates);
    }
  }
}

TEST(EliminationPlanTest, EveryFrontIsInOneTaskThatWaitsForItsChildren) {
  std::vector<PatternData> patterns = Patterns();
  patterns.push_back(test::Pile(800, 5.5, 1));
  for (const PatternData& data : patterns) {
    const EliminationPlan plan = EliminationPlan::Make(data.pattern());
    std::vector<const EliminationPlan::Task*> task_of(plan.num_fronts(), nullptr);
    std::vector<int> wave_of(plan.num_fronts(), -1);
    for (int w = 0; w < plan.num_waves(); ++w) {
      for (const EliminationPlan::Task& task : plan.wave(w)) {
        for (int f = task.front_begin; f < task.front_end; ++f) {
          EXPECT_EQ(task_of[f], nullptr);
          task_of[f] = &task;
          wave_of[f] = w;
        }
      }
    }
    for (int f = 0; f < plan.num_fronts(); ++f) {
      ASSERT_NE(task_of[f], nullptr);
      const int parent = plan.fronts()[f].parent;
      if (parent >= 0) {
        EXPECT_TRUE(task_of[parent] == task_of[f] || wave_of[parent] > wave_of[f]);
      }
    }
  }
}

// [f] the task of the front.
std::vector<int> TaskOfFronts(const EliminationPlan& plan) {
  std::vector<int> task_of(plan.num_fronts(), -1);
  for (int t = 0; t < plan.task_order().size(); ++t) {
    for (int f = plan.tasks()[t].front_begin; f < plan.tasks()[t].front_end; ++f) task_of[f] = t;
  }
  return task_of;
}

TEST(EliminationPlanTest, TasksWaitForThoseOfTheChildrenAndTheLongestPathBeginsFirst) {
  std::vector<PatternData> patterns = Patterns();
  patterns.push_back(test::Pile(800, 5.5, 1));
  for (const PatternData& data : patterns) {
    const EliminationPlan plan = EliminationPlan::Make(data.pattern());
    const TaskOrder& order = plan.task_order();
    const std::vector<int> task_of = TaskOfFronts(plan);
    std::multiset<std::pair<int, int>> expected, waits;
    for (int f = 0; f < plan.num_fronts(); ++f) {
      const int parent = plan.fronts()[f].parent;
      if (parent < 0 || task_of[parent] == task_of[f]) continue;
      expected.emplace(task_of[f], task_of[parent]);
    }
    std::vector<int> num_before(order.size(), 0);
    for (int t = 0; t < order.size(); ++t) {
      for (const int next : order.waiting_for(t)) waits.emplace(t, next);
      for (const int next : order.waiting_for(t)) ++num_before[next];
    }
    EXPECT_EQ(waits, expected);
    EXPECT_EQ(order.num_before, num_before);
    double longest = std::numeric_limits<double>::infinity();
    for (const int first : order.first) {
      EXPECT_EQ(num_before[first], 0);
      double path = 0;  // up to the root
      for (int t = first;;) {
        path += plan.tasks()[t].cost;
        if (order.waiting_for(t).empty()) break;
        t = order.waiting_for(t).back();
      }
      if (order.waiting_for(first).size() == 1) {
        EXPECT_LE(path, longest * (1 + 1e-12));
        longest = path;
      }
    }
    EXPECT_EQ(static_cast<int>(order.first.size()), std::ranges::count(num_before, 0));
  }
}

// Threads take the tasks of a loop in turn. So each finds what it has factored in its cache when it
// solves with it.
TEST(EliminationPlanTest, SubtreesAreDealtAlikeToFactorAndToSolve) {
  for (const int blocks : {800, 2000}) {
    const EliminationPlan plan = EliminationPlan::Make(test::Pile(blocks, 5.5, 1).pattern());
    std::vector<int> factored = plan.task_order().first;
    const int subtrees = static_cast<int>(plan.wave(0).size());
    std::erase_if(factored, [&](int task) { return task >= subtrees; });
    EXPECT_GT(subtrees, 16);
    EXPECT_EQ(static_cast<int>(factored.size()), subtrees);
    EXPECT_TRUE(std::ranges::is_sorted(factored));
  }
}

// Updates that exist at the same time do not overlap, whatever the order of tasks that do not wait
// for one another.
TEST(EliminationPlanTest, UpdatesOfConcurrentTasksDoNotOverlap) {
  const EliminationPlan plan = EliminationPlan::Make(test::Pile(800, 5.5, 1).pattern());
  ASSERT_GT(plan.num_waves(), 2);
  const auto fronts = plan.fronts();
  const auto overlap = [&](int a, int b) {
    const auto start = [&](int f) { return fronts[f].update_start[EliminationPlan::kConcurrent]; };
    const auto end = [&](int f) { return start(f) + UpdateEntries(fronts[f].updates); };
    return start(a) < end(b) && start(b) < end(a);
  };
  const std::vector<int> task_of = TaskOfFronts(plan);
  // [t][u] whether u waits for t, or for one that does.
  const TaskOrder& order = plan.task_order();
  std::vector<std::vector<bool>> before(order.size(), std::vector<bool>(order.size(), false));
  for (int t = order.size(); t-- > 0;) {
    for (const int next : order.waiting_for(t)) {
      before[t][next] = true;
      for (int u = 0; u < order.size(); ++u) before[t][u] = before[t][u] || before[next][u];
    }
  }
  // An update lives until the front of its parent is done; in one task fronts run in ascending
  // order.
  const auto ends_before = [&](int a, int b) {
    const int parent = fronts[a].parent;
    return task_of[parent] == task_of[b] ? parent < b : before[task_of[parent]][task_of[b]];
  };
  for (int a = 0; a < plan.num_fronts(); ++a) {
    for (int b = a + 1; b < plan.num_fronts(); ++b) {
      if (fronts[a].parent < 0 || fronts[b].parent < 0) continue;
      if (!ends_before(a, b) && !ends_before(b, a)) {
        EXPECT_FALSE(overlap(a, b)) << a << ' ' << b;
      }
    }
  }
}

// A solid on a floor: in an order that knows nothing of what varies, most of the work is above the
// nodes below.
TEST(EliminationPlanTest, OfASolidOnAFloorASmallPartOfTheWorkVaries) {
  for (const int side : {6, 10}) {
    PatternData data = test::SolidOnFloor(side, side, side);
    const EliminationPlan plan = EliminationPlan::Make(data.pattern());
    EXPECT_LT(plan.varying_flops(), 0.15 * plan.factor_flops());
    data.varies.clear();
    const EliminationPlan alike = EliminationPlan::Make(data.pattern());
    EXPECT_EQ(alike.varying_flops(), alike.factor_flops());
    EXPECT_EQ(alike.mean_flops(), alike.factor_flops());
    EXPECT_LT(plan.mean_flops(), 0.5 * alike.factor_flops());
    EXPECT_LT(plan.factor_flops(), 2.5 * alike.factor_flops());
  }
}

// A sheet of which half varies is cheaper in an order for all of it.
TEST(EliminationPlanTest, AnOrderThatFactorsLessInTheMeanIsTaken) {
  PatternData sheet = test::Grid(40, 40, 3);
  const double alike = EliminationPlan::Make(sheet.pattern()).factor_flops();
  for (const int varying_rows : {0, 1, 5, 20, 35, 40}) {
    sheet.varies.assign(sheet.num_blocks(), 0);
    std::fill_n(sheet.varies.begin(), 40 * varying_rows, 1);
    const EliminationPlan plan = EliminationPlan::Make(sheet.pattern());
    EXPECT_LE(plan.mean_flops(), alike);
  }
}

}  // namespace
}  // namespace sap
