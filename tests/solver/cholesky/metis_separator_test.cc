// Separators by METIS: what they separate, and that METIS changes no state of the process.
#include "solver/cholesky/metis_separator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "tests/solver/cholesky/block_patterns.h"
#include "tests/solver/cholesky/hard_graphs.h"

namespace sap {
namespace {

BlockGraph PileOf(int num_blocks, unsigned seed) {
  return BlockGraph::FromPattern(test::Pile(num_blocks, 5.5, seed).pattern());
}

int64_t Weight(const BlockGraph& graph, const std::vector<Side>& side, Side which) {
  int64_t weight = 0;
  for (int i = 0; i < graph.num_blocks(); ++i) {
    if (side[i] == which) weight += graph.weight[i];
  }
  return weight;
}

TEST(MetisSeparatorTest, NoEdgeJoinsTheSides) {
  int num_separated = 0;
  for (const test::GraphCase& c : test::HardGraphs()) {
    SCOPED_TRACE(c.name);
    const BlockGraph graph = BlockGraph::FromPattern(c.data.pattern());
    const auto side = VertexSeparator(graph);
    if (!side) continue;
    ++num_separated;
    for (int i = 0; i < graph.num_blocks(); ++i) {
      for (const int j : graph.neighbors(i)) {
        EXPECT_FALSE((*side)[i] == Side::kFirst && (*side)[j] == Side::kSecond) << i << " " << j;
      }
    }
    EXPECT_GT(Weight(graph, *side, Side::kFirst), 0);
    EXPECT_GT(Weight(graph, *side, Side::kSecond), 0);
  }
  EXPECT_GT(num_separated, 20);
}

TEST(MetisSeparatorTest, GraphsWithoutEdgesHaveNoSeparator) {
  for (const int n : {0, 1, 2, 34, 1000}) {
    EXPECT_FALSE(VertexSeparator(BlockGraph::FromPattern(test::Blocks(n).pattern())));
  }
}

// A grid of n x n has a separator of n blocks; nothing smaller halves it.
TEST(MetisSeparatorTest, TheSeparatorOfAGridIsAboutOneLineAndHalvesIt) {
  const BlockGraph graph = BlockGraph::FromPattern(test::Grid(40, 40).pattern());
  const auto side = VertexSeparator(graph);
  ASSERT_TRUE(side);
  EXPECT_LE(std::ranges::count(*side, Side::kSeparator), 60);
  EXPECT_GE(std::ranges::count(*side, Side::kFirst), 600);
  EXPECT_GE(std::ranges::count(*side, Side::kSecond), 600);
}

// Four threads find separators while a fifth draws and seeds the random numbers of the C library.
TEST(MetisSeparatorTest, SeparatorsAreTheSameWhileOtherThreadsDrawAndSeedRandomNumbers) {
  std::vector<BlockGraph> graphs;
  std::vector<std::optional<std::vector<Side>>> expected;
  for (unsigned seed = 0; seed < 4; ++seed) {
    graphs.push_back(PileOf(250, seed));
    expected.push_back(VertexSeparator(graphs.back()));
    ASSERT_TRUE(expected.back());
  }
  std::atomic<bool> done{false};
  std::thread noise([&] {
    for (unsigned seed = 0; !done.load(); ++seed) {
      srandom(seed);
      random();
    }
  });
  std::vector<int> mismatches(4, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int repetition = 0; repetition < 10; ++repetition) {
        const int i = (t + repetition) % 4;
        if (VertexSeparator(graphs[i]) != expected[i]) ++mismatches[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  noise.join();
  EXPECT_EQ(mismatches, std::vector<int>(4, 0));
}

TEST(MetisSeparatorTest, LeavesTheRandomNumbersOfTheProcessAlone) {
  srandom(123);
  const long first = random();
  const long second = random();
  srandom(123);
  EXPECT_EQ(random(), first);
  EXPECT_TRUE(VertexSeparator(PileOf(200, 1)));
  EXPECT_EQ(random(), second);
}

// METIS_NodeND replaces the handlers of SIGTERM and SIGABRT while it runs.
TEST(MetisSeparatorTest, LeavesSignalHandlersAlone) {
  static std::atomic<int> terminations;
  terminations = 0;
  const auto before = std::signal(SIGTERM, [](int) { ++terminations; });
  const BlockGraph graph = PileOf(1000, 1);
  std::atomic<bool> done{false};
  std::thread sender([&] {
    for (int i = 0; i < 50; ++i) {
      std::raise(SIGTERM);
      std::this_thread::yield();
    }
    done = true;
  });
  const auto expected = VertexSeparator(graph);
  while (!done.load()) EXPECT_EQ(VertexSeparator(graph), expected);
  sender.join();
  EXPECT_EQ(terminations, 50);
  std::signal(SIGTERM, before);
}

}  // namespace
}  // namespace sap
