#include "solver/split/shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sap {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Five shafts of one dof: a gear joins 0 and 3, another one 1 and 2; nothing touches 4.
class ShardsTest : public testing::Test {
 protected:
  ShardsTest() {
    whole_.time_step = 0.01;
    whole_.trees.dofs = {1, 1, 1, 1, 1};
    whole_.trees.dynamics_matrix = {10, 11, 12, 13, 14};
    whole_.trees.free_motion_velocity = {20, 21, 22, 23, 24};
    whole_.rows.entries = {2, 1, 2};
    whole_.rows.velocity_index = {1, 2, 3, 0, 3};
    whole_.rows.coefficient = {1, -2, 3, 4, -5};
    whole_.rows.force_upper = {100, 101, 102};
    EXPECT_TRUE(layout_.Read(ViewOf(whole_)));
  }

  Shards Deal(const std::vector<std::vector<int>>& dealt) {
    return Shards(ViewOf(whole_), layout_, island_of_tree_, dealt);
  }

  OwnedContactProblem whole_;
  ProblemLayout layout_;
  const std::vector<int> island_of_tree_{0, 1, 1, 0, -1};
};

TEST_F(ShardsTest, AShardHasTheTreesAndRowsOfItsIslandsInTheirOrder) {
  const OwnedContactProblem shard = Deal({{0}, {1}}).Extract(1);
  EXPECT_EQ(shard.time_step, 0.01);
  EXPECT_THAT(shard.trees.dynamics_matrix, ElementsAre(11, 12));
  EXPECT_THAT(shard.trees.free_motion_velocity, ElementsAre(21, 22));
  EXPECT_THAT(shard.rows.entries, ElementsAre(2));
  EXPECT_THAT(shard.rows.coefficient, ElementsAre(1, -2));
  EXPECT_THAT(shard.rows.force_upper, ElementsAre(100));
}

TEST_F(ShardsTest, VelocitiesAreCountedWithinTheShard) {
  const OwnedContactProblem shard = Deal({{0}, {1}}).Extract(0);
  EXPECT_THAT(shard.rows.entries, ElementsAre(1, 2));
  EXPECT_THAT(shard.rows.velocity_index, ElementsAre(1, 0, 1));
  EXPECT_THAT(shard.rows.coefficient, ElementsAre(3, 4, -5));
}

TEST_F(ShardsTest, ATreeWithoutConstraintsIsInOneShard) {
  const Shards shards = Deal({{0}, {1}});
  EXPECT_THAT(shards.shard(0).trees, ElementsAre(0, 3, 4));
  EXPECT_THAT(shards.shard(1).trees, ElementsAre(1, 2));
}

TEST_F(ShardsTest, AnAbsentArrayStaysAbsent) {
  const OwnedContactProblem shard = Deal({{0}, {1}}).Extract(0);
  EXPECT_THAT(shard.trees.guess_velocity, IsEmpty());
  EXPECT_THAT(shard.rows.force_lower, IsEmpty());
}

}  // namespace
}  // namespace sap
