// Orderings of blocks: minimum degree and nested dissection.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <vector>

#include "solver/cholesky/elimination_plan.h"
#include "solver/cholesky/minimum_degree.h"
#include "solver/cholesky/nested_dissection.h"
#include "tests/solver/cholesky/block_patterns.h"
#include "tests/solver/cholesky/hard_graphs.h"
#include "tests/solver/cholesky/symbolic_oracle.h"

namespace sap {
namespace {

using test::GraphCase;
using test::HardGraphs;
using test::PatternData;

std::vector<int> MinimumDegree(const BlockGraph& graph) {
  return *MinimumDegreeOrder(graph, StopToken());
}

std::vector<int> NestedDissection(const BlockGraph& graph) {
  return *NestedDissectionOrder(graph, StopToken(), nullptr);
}

TEST(OrderingsTest, BothOrderingsArePermutations) {
  for (const GraphCase& c : HardGraphs()) {
    SCOPED_TRACE(c.name);
    const BlockGraph graph = BlockGraph::FromPattern(c.data.pattern());
    EXPECT_TRUE(test::IsPermutation(MinimumDegree(graph), graph.num_blocks()));
    EXPECT_TRUE(test::IsPermutation(NestedDissection(graph), graph.num_blocks()));
  }
}

TEST(OrderingsTest, InTwoPartsTheLastBlocksComeLastAndChangeNothingBeforeThem) {
  for (const GraphCase& c : HardGraphs()) {
    SCOPED_TRACE(c.name);
    const BlockGraph graph = BlockGraph::FromPattern(c.data.pattern());
    const int num_last = graph.num_blocks() / 3;
    const std::vector<int> order = *MinimumDegreeOrderInTwoParts(graph, StopToken(), num_last);
    EXPECT_TRUE(test::IsPermutation(order, graph.num_blocks()));
    EXPECT_EQ(*MinimumDegreeOrderInTwoParts(graph, StopToken(), 0), MinimumDegree(graph));
    bool has_dense = false;
    for (int i = 0; i < graph.num_blocks(); ++i) has_dense |= graph.degree(i) > 16;
    if (has_dense) continue;
    const std::vector<int> first = *MinimumDegreeOrder(graph, StopToken(), num_last);
    EXPECT_TRUE(std::equal(first.begin(), first.end(), order.begin()));
  }
}

// Trees have an order without fill, and minimum degree finds it.
TEST(OrderingsTest, MinimumDegreeOfTreesHasNoFill) {
  for (const PatternData& data : {test::Chain(200), test::Star(100, 3), test::RandomTree(150, 1),
                                  test::RandomTree(150, 2), test::Star(1000, 500)}) {
    const BlockGraph graph = BlockGraph::FromPattern(data.pattern());
    EXPECT_EQ(test::NumBlocksOfFactor(graph, MinimumDegree(graph)), data.edge_a.size());
  }
}

// In a ring every block has two neighbors; a block between two small ones is eliminated first.
TEST(OrderingsTest, MinimumDegreeCountsRowsNotBlocks) {
  PatternData ring = test::Chain(6);
  ring.Connect(0, 5);
  ring.block_size = {6, 50, 6, 6, 50, 6};
  const std::vector<int> order = MinimumDegree(BlockGraph::FromPattern(ring.pattern()));
  EXPECT_EQ(order[0], 1);
}

TEST(OrderingsTest, BothOrderingsHalveTheFillOfTheGivenOrder) {
  for (const PatternData& data : {test::Grid(40, 40), test::Pile(400, 5.5, 1)}) {
    const BlockGraph graph = BlockGraph::FromPattern(data.pattern());
    std::vector<int> given(graph.num_blocks());
    std::iota(given.begin(), given.end(), 0);
    const size_t without = test::NumBlocksOfFactor(graph, given);
    EXPECT_LT(2 * test::NumBlocksOfFactor(graph, MinimumDegree(graph)), without);
    EXPECT_LT(2 * test::NumBlocksOfFactor(graph, NestedDissection(graph)), without);
  }
}

TEST(OrderingsTest, BothOrderingsAreTheSameForAnyOrderOfEdges) {
  PatternData data = test::Pile(300, 5.5, 1);
  const BlockGraph graph = BlockGraph::FromPattern(data.pattern());
  const std::vector<int> minimum_degree = MinimumDegree(graph);
  const std::vector<int> dissected = NestedDissection(graph);
  std::reverse(data.edge_a.begin(), data.edge_a.end());
  std::reverse(data.edge_b.begin(), data.edge_b.end());
  std::swap(data.edge_a, data.edge_b);
  const BlockGraph reversed = BlockGraph::FromPattern(data.pattern());
  EXPECT_EQ(MinimumDegree(reversed), minimum_degree);
  EXPECT_EQ(NestedDissection(reversed), dissected);
}

TEST(OrderingsTest, NestedDissectionSavesAThirdOfTheWorkOfLargePiles) {
  const PatternData data = test::Pile(3000, 5.5, 1);
  const auto flops = [&](Ordering ordering) {
    return EliminationPlan::Make(data.pattern(), ordering).factor_flops();
  };
  EXPECT_LT(3 * flops(Ordering::kNestedDissection), 2 * flops(Ordering::kMinimumDegree));
}

TEST(OrderingsTest, NestedDissectionIsTheSameForAnyNumberOfThreads) {
  const BlockGraph graph = BlockGraph::FromPattern(test::Pile(1500, 5.5, 3).pattern());
  const std::vector<int> expected = NestedDissection(graph);
  for (const int threads : {1, 2, 4}) {
    TaskArena arena(threads, Sharing::kAlways);
    EXPECT_EQ(NestedDissectionOrder(graph, StopToken(), &arena), expected);
  }
}

TEST(OrderingsTest, BothOrderingsReturnNothingWhenTheyAreCancelled) {
  const BlockGraph graph = BlockGraph::FromPattern(test::Pile(1500, 5.5, 3).pattern());
  const std::atomic<bool> cancelled{true};
  const StopToken stop(&cancelled, StopToken::Clock::time_point::max());
  TaskArena arena(2, Sharing::kAlways);
  EXPECT_FALSE(MinimumDegreeOrder(graph, stop));
  EXPECT_FALSE(NestedDissectionOrder(graph, stop, nullptr));
  EXPECT_FALSE(NestedDissectionOrder(graph, stop, &arena));
}

// What a stop interrupts is not leaked (AddressSanitizer would report it) and does not change the
// next result.
TEST(OrderingsTest, ADissectionStoppedAtAnyTimeReturnsTheWholeOrderOrNothing) {
  using Clock = StopToken::Clock;
  const BlockGraph graph = BlockGraph::FromPattern(test::Pile(1500, 5.5, 3).pattern());
  TaskArena arena(2, Sharing::kAlways);
  const Clock::time_point start = Clock::now();
  const std::vector<int> expected = NestedDissection(graph);
  const Clock::duration whole = Clock::now() - start;
  int num_stopped = 0;
  constexpr int kStops = 20;
  for (int i = 0; i < kStops; ++i) {
    const StopToken stop(nullptr, Clock::now() + i * whole / kStops);
    const auto order = NestedDissectionOrder(graph, stop, i % 2 == 0 ? nullptr : &arena);
    num_stopped += !order;
    if (order) {
      EXPECT_EQ(order, expected);
    }
  }
  EXPECT_GE(num_stopped, 1);  // the first has no time at all
  EXPECT_EQ(NestedDissection(graph), expected);
}

}  // namespace
}  // namespace sap
