#include "solver/run/solution_scatter.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

class SolutionScatterTest : public testing::Test {
 protected:
  SolutionScatterTest() {
    ProblemArrays arrays = RandomTreesInContact(7, {.trees = 40, .contacts = 25});
    arrays.trees.guess_velocity.resize(arrays.trees.free_motion_velocity.size());
    std::iota(arrays.trees.guess_velocity.begin(), arrays.trees.guess_velocity.end(), 1000.0);
    problem_ = Checked(arrays);
    graph_.Build(problem_, true);
    data_.Resize(graph_);
    model_.Resize(problem_, graph_);
    PrepareSolution(problem_, graph_, &solution_);
  }

  ContactProblem problem_;
  ConstraintGraph graph_;
  SapModel model_;
  SapData data_;
  ContactSolution solution_;
};

TEST_F(SolutionScatterTest, ThereIsRoomForEverythingAndFreeTreesAreSolved) {
  EXPECT_EQ(solution_.impulse.size(), 3u * problem_.num_contacts());
  EXPECT_EQ(solution_.contact_velocity.size(), 3u * problem_.num_contacts());
  EXPECT_EQ(solution_.islands.size(), static_cast<size_t>(graph_.islands().count()));
  for (int i = 0; i < problem_.num_velocities(); ++i) {
    EXPECT_EQ(solution_.velocity[i], problem_.v_star()[i]);
  }
}

// Out as it came in, of the trees in contact and no others.
TEST_F(SolutionScatterTest, AGuessThatIsTheAnswerComesBackInItsPlaces) {
  for (int island = 0; island < graph_.islands().count(); ++island) {
    model_.Gather(problem_, graph_, island, StopToken(), nullptr);
    GatherGuess(problem_, graph_, island, &data_.v);
    ScatterIterate(problem_, {graph_, model_, island, nullptr}, data_, &solution_);
  }
  for (int tree = 0; tree < problem_.num_trees(); ++tree) {
    const bool free = solution_.island_of_tree[tree] < 0;
    for (int i = problem_.velocity_start()[tree]; i < problem_.velocity_start()[tree + 1]; ++i) {
      EXPECT_EQ(solution_.velocity[i], free ? problem_.v_star()[i] : problem_.v_guess()[i]);
    }
  }
}

TEST_F(SolutionScatterTest, ImpulsesGoToTheirContactInTheUnitOfTheProblem) {
  auto& pool = data_.pools[kFrictionPool];
  for (int i = 0; i < problem_.num_contacts(); ++i) {
    pool.gamma.Set(i, ContactVector<double>{1.0 * i, 2.0 * i, 3.0 * i});
    pool.v_c.Set(i, ContactVector<double>{4.0 * i, 5.0 * i, 6.0 * i});
  }
  for (int island = 0; island < graph_.islands().count(); ++island) {
    model_.Gather(problem_, graph_, island, StopToken(), nullptr);
    const IslandView view{graph_, model_, island, nullptr};
    ScatterIterate(problem_, view, data_, &solution_);
    const double unit = view.constants().mass_unit;
    const PoolRange range = view.range(kFrictionPool);
    for (int i = range.begin; i < range.end; ++i) {
      const int to = 3 * view.layout(kFrictionPool).order()[i];
      for (int axis = 0; axis < 3; ++axis) {
        EXPECT_EQ(solution_.impulse[to + axis], (1.0 + axis) * i * unit);
        EXPECT_EQ(solution_.contact_velocity[to + axis],
                  (4.0 + axis) * i + problem_.surface_velocity()[to + axis]);
      }
    }
  }
}

TEST_F(SolutionScatterTest, ACancelledIslandHasItsGuessAndNoImpulses) {
  solution_.impulse.assign(solution_.impulse.size(), 9);
  for (int island = 0; island < graph_.islands().count(); ++island) {
    ScatterGuess(problem_, graph_, island, &solution_);
  }
  for (const double gamma : solution_.impulse) EXPECT_EQ(gamma, 0);
  for (int tree = 0; tree < problem_.num_trees(); ++tree) {
    if (solution_.island_of_tree[tree] < 0) continue;
    for (int i = problem_.velocity_start()[tree]; i < problem_.velocity_start()[tree + 1]; ++i) {
      EXPECT_EQ(solution_.velocity[i], problem_.v_guess()[i]);
    }
  }
}

}  // namespace
}  // namespace sap::test
