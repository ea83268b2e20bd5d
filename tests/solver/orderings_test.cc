// Orderings of blocks: minimum degree and nested dissection.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "solver/minimum_degree.h"
#include "solver/nested_dissection.h"
#include "tests/solver/block_patterns.h"
#include "tests/solver/symbolic_oracle.h"

namespace sap {
namespace {

using test::PatternData;

struct Case {
  std::string name;
  PatternData data;
};

// Among them all the graphs that METIS is known to have crashed or hung on.
std::vector<Case> Cases() {
  using namespace test;
  std::vector<Case> cases;
  const auto add = [&](std::string name, PatternData data) {
    cases.push_back({std::move(name), std::move(data)});
  };
  for (const int n : {0, 1, 2, 3, 5, 7, 8, 9, 34, 150}) {
    const std::string number = std::to_string(n);
    add("without edges " + number, Blocks(n));
    add("path " + number, Chain(n));
    add("clique " + number, Clique(n));
    add("tree " + number, RandomTree(n, 1));
    add("mixed tree " + number, WithMixedSizes(RandomTree(n, 1), 2, 1024));
    if (n > 1) {
      add("star " + number, Star(n - 1, 0));
      add("star at the end " + number, Star(n - 1, n - 1));
      add("sparse " + number, RandomGraph(n, n / 2, 3));
      add("random " + number, RandomGraph(n, 3 * n, 4));
      add("dense " + number, RandomGraph(n, n * n, 5));
    }
  }
  add("one edge among many", RandomGraph(200, 1, 1));
  add("grid", Grid(20, 20));
  add("pile", Pile(300, 5.5, 1));
  add("mixed pile", WithMixedSizes(Pile(300, 5.5, 1), 2, 126));
  add("large star", Star(2000, 1000));
  add("two cliques", TwoCliques(30, 10));
  return cases;
}

TEST(OrderingsTest, MinimumDegreeIsAPermutation) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const BlockGraph graph = BlockGraph::FromPattern(c.data.pattern());
    EXPECT_TRUE(IsPermutation(MinimumDegreeOrder(graph), graph.num_blocks()));
  }
}

TEST(OrderingsTest, NestedDissectionIsAPermutationOrNothing) {
  int num_ordered = 0;
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const BlockGraph graph = BlockGraph::FromPattern(c.data.pattern());
    const std::optional<std::vector<int>> order = NestedDissectionOrder(graph);
    if (!order) continue;
    ++num_ordered;
    EXPECT_TRUE(IsPermutation(*order, graph.num_blocks()));
  }
  EXPECT_GT(num_ordered, 20);
}

TEST(OrderingsTest, NestedDissectionIsNotAskedForGraphsWithoutEdges) {
  for (const int n : {0, 1, 2, 34, 1000}) {
    EXPECT_FALSE(NestedDissectionOrder(BlockGraph::FromPattern(test::Blocks(n).pattern())));
  }
}

// Trees have an order without fill, and minimum degree finds it.
TEST(OrderingsTest, MinimumDegreeOfTreesHasNoFill) {
  for (const PatternData& data : {test::Chain(200), test::Star(100, 3), test::RandomTree(150, 1),
                                  test::RandomTree(150, 2), test::Star(1000, 500)}) {
    const BlockGraph graph = BlockGraph::FromPattern(data.pattern());
    EXPECT_EQ(test::NumBlocksOfFactor(graph, MinimumDegreeOrder(graph)), data.edge_a.size());
  }
}

// Of a ring the first is a block between two small ones, although all have two neighbours.
TEST(OrderingsTest, MinimumDegreeCountsRowsNotBlocks) {
  PatternData ring = test::Chain(6);
  ring.Connect(0, 5);
  ring.block_size = {6, 50, 6, 6, 50, 6};
  const std::vector<int> order = MinimumDegreeOrder(BlockGraph::FromPattern(ring.pattern()));
  EXPECT_EQ(order[0], 1);
}

TEST(OrderingsTest, BothFillInMuchLessThanTheGivenOrder) {
  for (const PatternData& data : {test::Grid(20, 20), test::Pile(400, 5.5, 1)}) {
    const BlockGraph graph = BlockGraph::FromPattern(data.pattern());
    std::vector<int> given(graph.num_blocks());
    std::iota(given.begin(), given.end(), 0);
    const size_t without = test::NumBlocksOfFactor(graph, given);
    const std::optional<std::vector<int>> dissected = NestedDissectionOrder(graph);
    ASSERT_TRUE(dissected);
    EXPECT_LT(2 * test::NumBlocksOfFactor(graph, MinimumDegreeOrder(graph)), without);
    EXPECT_LT(2 * test::NumBlocksOfFactor(graph, *dissected), without);
  }
}

TEST(OrderingsTest, OrderOfEdgesDoesNotMatter) {
  PatternData data = test::Pile(300, 5.5, 1);
  const BlockGraph graph = BlockGraph::FromPattern(data.pattern());
  const std::vector<int> minimum_degree = MinimumDegreeOrder(graph);
  const std::optional<std::vector<int>> dissected = NestedDissectionOrder(graph);
  std::reverse(data.edge_a.begin(), data.edge_a.end());
  std::reverse(data.edge_b.begin(), data.edge_b.end());
  std::swap(data.edge_a, data.edge_b);
  const BlockGraph reversed = BlockGraph::FromPattern(data.pattern());
  EXPECT_EQ(MinimumDegreeOrder(reversed), minimum_degree);
  EXPECT_EQ(NestedDissectionOrder(reversed), dissected);
}

// Several threads order at once while others draw and seed the random numbers of the C library.
TEST(OrderingsTest, NestedDissectionIsTheSameOnBusyThreads) {
  std::vector<BlockGraph> graphs;
  std::vector<std::optional<std::vector<int>>> expected;
  for (unsigned seed = 0; seed < 4; ++seed) {
    graphs.push_back(BlockGraph::FromPattern(test::Pile(250, 5.5, seed).pattern()));
    expected.push_back(NestedDissectionOrder(graphs.back()));
    ASSERT_TRUE(expected.back());
  }
  std::atomic<bool> done{false};
  std::thread noise([&] {
    for (unsigned seed = 0; !done.load(); ++seed) {
      std::srand(seed);
      std::rand();
    }
  });
  std::vector<int> mismatches(4, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int repetition = 0; repetition < 10; ++repetition) {
        const int i = (t + repetition) % 4;
        if (NestedDissectionOrder(graphs[i]) != expected[i]) ++mismatches[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  noise.join();
  EXPECT_EQ(mismatches, std::vector<int>(4, 0));
}

// The random numbers of everyone else are those of the C library.
TEST(OrderingsTest, RandomNumbersOfTheProcessAreLeftAlone) {
  srandom(123);
  const long first = random();
  const long second = random();
  std::srand(123);
  EXPECT_EQ(std::rand(), first);
  NestedDissectionOrder(BlockGraph::FromPattern(test::Pile(200, 5.5, 1).pattern()));
  EXPECT_EQ(std::rand(), second);
}

}  // namespace
}  // namespace sap
