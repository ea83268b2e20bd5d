#include "solver/split/neighbours.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

using testing::Each;
using testing::Ge;
using testing::Le;

class NeighboursTest : public testing::Test {
 protected:
  bool Deal(const ProblemArrays& scene, int least_trees = Neighbours::kLeastTrees) {
    EXPECT_TRUE(layout_.Read(scene.View()));
    islands_.Find(layout_.joined(), true);
    return neighbours_.Deal(layout_, islands_, least_trees);
  }

  std::vector<int> TreesOfShards() const {
    std::vector<int> trees(neighbours_.count());
    for (const int island : islands_.island_of_tree()) {
      if (island >= 0) ++trees[neighbours_.shard_of_island()[island]];
    }
    return trees;
  }

  ProblemLayout layout_;
  Islands islands_;
  Neighbours neighbours_;
};

TEST_F(NeighboursTest, AShardHasConsecutiveIslandsOf160TreesTogether) {
  ASSERT_TRUE(Deal(Heaps(1, 4000, 4)));
  EXPECT_TRUE(std::ranges::is_sorted(neighbours_.shard_of_island()));
  EXPECT_EQ(neighbours_.count(), 100);
  EXPECT_THAT(TreesOfShards(), Each(160));
}

TEST_F(NeighboursTest, SmallScenesHaveWorkForSixteenThreads) {
  ASSERT_TRUE(Deal(Heaps(1, 800, 4)));
  EXPECT_GE(neighbours_.count(), 60);
  EXPECT_THAT(TreesOfShards(), Each(Le(60)));
}

TEST_F(NeighboursTest, TheShardWithMostConstraintsIsSolvedFirst) {
  ASSERT_TRUE(Deal(HeapsBeforeAPile(500, 20)));
  std::vector<int> constraints;
  int64_t after = 0;
  for (const int shard : neighbours_.order()) {
    constraints.push_back(neighbours_.constraints(shard));
  }
  EXPECT_TRUE(std::ranges::is_sorted(constraints, std::greater()));
  for (int position = neighbours_.count() - 1; position >= 0; --position) {
    EXPECT_EQ(neighbours_.constraints_after(position), after);
    after += constraints[position];
  }
  EXPECT_EQ(after, layout_.num_contacts());
}

TEST_F(NeighboursTest, ScenesWithFewTreesInSmallIslandsAreNotDealt) {
  EXPECT_FALSE(Deal(Heaps(1, 100, 4)));
  EXPECT_FALSE(Deal(BlockOfBodies(14)));
  EXPECT_TRUE(Deal(Heaps(1, 100, 4), 400));
  EXPECT_FALSE(Deal(Heaps(1, 100, 4), 401));
}

TEST_F(NeighboursTest, IslandsWithWorkForSeveralThreadsAreTheFirstShard) {
  ASSERT_TRUE(Deal(HeapsBeforeAPile(400, 125)));
  EXPECT_TRUE(neighbours_.has_large());
  EXPECT_EQ(neighbours_.shard_of_island()[400], 0);
  EXPECT_EQ(neighbours_.order()[0], 0);
  EXPECT_THAT(neighbours_.shard_of_island().first(400), Each(Ge(1)));
}

}  // namespace
}  // namespace sap::test
