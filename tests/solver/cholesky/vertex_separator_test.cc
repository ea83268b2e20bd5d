// Separators by METIS: what they separate, and what METIS leaves behind in the process.
#include "solver/cholesky/vertex_separator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "tests/solver/cholesky/block_patterns.h"
#include "tests/solver/cholesky/hard_graphs.h"

namespace sap {
namespace {

using Clock = StopToken::Clock;

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

TEST(VertexSeparatorTest, NoEdgeJoinsTheSides) {
  int num_separated = 0;
  for (const test::GraphCase& c : test::HardGraphs()) {
    SCOPED_TRACE(c.name);
    const BlockGraph graph = BlockGraph::FromPattern(c.data.pattern());
    const auto side = VertexSeparator(graph, StopToken());
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

TEST(VertexSeparatorTest, GraphsWithoutEdgesAreLeftAlone) {
  for (const int n : {0, 1, 2, 34, 1000}) {
    EXPECT_FALSE(VertexSeparator(BlockGraph::FromPattern(test::Blocks(n).pattern()), StopToken()));
  }
}

// A grid of n x n has a separator of n blocks; nothing smaller halves it.
TEST(VertexSeparatorTest, OfAGridIsAboutOneLineAndHalvesIt) {
  const BlockGraph graph = BlockGraph::FromPattern(test::Grid(40, 40).pattern());
  const auto side = VertexSeparator(graph, StopToken());
  ASSERT_TRUE(side);
  EXPECT_LE(std::ranges::count(*side, Side::kSeparator), 60);
  EXPECT_GE(std::ranges::count(*side, Side::kFirst), 600);
  EXPECT_GE(std::ranges::count(*side, Side::kSecond), 600);
}

// Several threads at once while others draw and seed the random numbers of the C library.
TEST(VertexSeparatorTest, IsTheSameOnBusyThreads) {
  std::vector<BlockGraph> graphs;
  std::vector<std::optional<std::vector<Side>>> expected;
  for (unsigned seed = 0; seed < 4; ++seed) {
    graphs.push_back(PileOf(250, seed));
    expected.push_back(VertexSeparator(graphs.back(), StopToken()));
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
        if (VertexSeparator(graphs[i], StopToken()) != expected[i]) ++mismatches[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  noise.join();
  EXPECT_EQ(mismatches, std::vector<int>(4, 0));
}

// Stops at moments spread over a whole call leave METIS by a jump: nothing is lost
// (AddressSanitizer looks for it) and the next call is not disturbed.
TEST(VertexSeparatorTest, CanBeStoppedWithinMetisAndUsedAgain) {
  const BlockGraph graph = PileOf(3000, 1);
  const Clock::time_point start = Clock::now();
  const auto expected = VertexSeparator(graph, StopToken());
  const Clock::duration whole = Clock::now() - start;
  ASSERT_TRUE(expected);
  int num_stopped = 0;
  constexpr int kStops = 20;
  for (int i = 0; i < kStops; ++i) {
    const StopToken stop(nullptr, Clock::now() + i * whole / kStops);
    const auto side = VertexSeparator(graph, stop);
    num_stopped += !side;
    if (side) {
      EXPECT_EQ(side, expected);
    }
    if (i % 5 == 0) {
      EXPECT_EQ(VertexSeparator(graph, StopToken()), expected);
    }
  }
  EXPECT_GE(num_stopped, 1);  // the first has no time at all
}

// The random numbers of everyone else are those of the C library, also after a stop.
TEST(VertexSeparatorTest, LeavesTheRandomNumbersOfTheProcessAlone) {
  srandom(123);
  const long first = random();
  const long second = random();
  const long third = random();
  std::srand(123);
  EXPECT_EQ(std::rand(), first);
  EXPECT_TRUE(VertexSeparator(PileOf(200, 1), StopToken()));
  EXPECT_EQ(std::rand(), second);
  EXPECT_FALSE(VertexSeparator(PileOf(200, 1), StopToken().Expired()));
  EXPECT_EQ(std::rand(), third);
}

// METIS_NodeND replaces the handlers of SIGTERM and SIGABRT while it runs.
TEST(VertexSeparatorTest, LeavesSignalHandlersAlone) {
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
  const auto expected = VertexSeparator(graph, StopToken());
  while (!done.load()) EXPECT_EQ(VertexSeparator(graph, StopToken()), expected);
  sender.join();
  EXPECT_EQ(terminations, 50);
  std::signal(SIGTERM, before);
}

}  // namespace
}  // namespace sap
