#include "client/cpp/split/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "solver/run/island_forecast.h"
#include "tests/support/random_islands.h"

namespace sap::client {
namespace {

using testing::ElementsAre;

// Two bodies on the ground, and between them one that touches nothing.
class MergeTest : public testing::Test {
 protected:
  MergeTest() {
    ProblemBuilder builder(0.01);
    const auto add_body = [&](double speed) {
      return builder.AddBody({.mass = 1,
                              .inertia = {1, 1, 1, 0, 0, 0},
                              .center_of_mass = {0, 0, 1},
                              .free_motion_velocity = {speed, 0, 0, 0, 0, 0}});
    };
    const ContactLaw law{.stiffness = 1e5, .friction = 0.5};
    const Member first = add_body(1);
    add_body(2);
    const Member last = add_body(3);
    builder.AddBodyContact(last, kWorld, {0, 0, 0}, {0, 0, 1}, law);
    builder.AddBodyContact(first, kWorld, {0, 0, 0}, {0, 0, 1}, law);
    problem_ = builder.Build();
    EXPECT_TRUE(layout_.Read(ViewOf(problem_)));
    ForecastIslands(layout_, &forecast_);
    shards_ = std::make_unique<Shards>(ViewOf(problem_), layout_, forecast_.island_of_tree, dealt_);
  }

  // The solution of the first shard, with body 1 and body 2, and of the second with body 0: every
  // number is the same.
  static Solution SolutionOfShard(double value) {
    Solution solution;
    solution.velocity.assign(value == 1 ? 12 : 6, value);
    solution.impulse.assign(3, value);
    solution.contact_velocity.assign(3, value);
    solution.delassus_estimate.assign(1, value);
    solution.islands.resize(1);
    solution.islands[0].iterations = static_cast<int>(value);
    solution.islands[0].cost = value;
    solution.timings.queue_s = value;
    solution.timings.solve_s = 10 - value;
    return solution;
  }

  Problem problem_;
  ProblemLayout layout_;
  IslandForecast forecast_;
  const std::vector<std::vector<int>> dealt_{{1}, {0}};
  std::unique_ptr<Shards> shards_;
};

TEST_F(MergeTest, EverythingGoesWhereItIsInTheWhole) {
  const auto whole =
      Merge(*shards_, std::vector<Solution>{SolutionOfShard(1), SolutionOfShard(2)}, {});
  ASSERT_TRUE(whole.has_value()) << whole.error().message;
  EXPECT_THAT(whole->velocity, ElementsAre(2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(whole->impulse, ElementsAre(1, 1, 1, 2, 2, 2));
  EXPECT_THAT(whole->contact_velocity, ElementsAre(1, 1, 1, 2, 2, 2));
  EXPECT_THAT(whole->delassus_estimate, ElementsAre(1, 2));
  EXPECT_THAT(whole->island_of_tree, ElementsAre(0, -1, 1));
  ASSERT_EQ(whole->islands.size(), 2u);
  EXPECT_EQ(whole->islands[0].iterations, 2);
  EXPECT_EQ(whole->islands[1].iterations, 1);
  EXPECT_EQ(whole->cost, 3);
}

TEST_F(MergeTest, APhaseTakesAsLongAsInTheSlowestShard) {
  const auto whole =
      Merge(*shards_, std::vector<Solution>{SolutionOfShard(1), SolutionOfShard(2)}, {});
  EXPECT_EQ(whole->timings.queue_s, 2);
  EXPECT_EQ(whole->timings.solve_s, 9);
}

TEST_F(MergeTest, ACostAloneIsSummedByIslandsThatAreNotReturned) {
  EXPECT_THAT(MaskOfShards({"cost"}), ElementsAre("cost", "islands"));
  EXPECT_THAT(MaskOfShards({"velocity"}), ElementsAre("velocity"));
  EXPECT_THAT(MaskOfShards({}), ElementsAre());
  const auto whole =
      Merge(*shards_, std::vector<Solution>{SolutionOfShard(1), SolutionOfShard(2)}, {"cost"});
  EXPECT_EQ(whole->cost, 3);
  EXPECT_TRUE(whole->islands.empty());
  EXPECT_TRUE(whole->velocity.empty());
  EXPECT_TRUE(whole->island_of_tree.empty());
}

TEST_F(MergeTest, AnAnswerOfAnotherShapeIsAnError) {
  for (auto ContactSolution::*array : {&Solution::velocity, &Solution::impulse}) {
    std::vector<Solution> solutions{SolutionOfShard(1), SolutionOfShard(2)};
    (solutions[1].*array).pop_back();
    const auto whole = Merge(*shards_, solutions, {});
    ASSERT_FALSE(whole.has_value());
    EXPECT_EQ(whole.error().code, ErrorCode::kInternal);
  }
  std::vector<Solution> solutions{SolutionOfShard(1), SolutionOfShard(2)};
  solutions[0].islands.push_back({});
  EXPECT_FALSE(Merge(*shards_, solutions, {}).has_value());
  EXPECT_TRUE(Merge(*shards_, solutions, {"velocity"}).has_value());
}

}  // namespace
}  // namespace sap::client
