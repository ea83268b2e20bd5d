#include "solver/problem/islands.h"

#include <gtest/gtest.h>

#include <queue>
#include <vector>

#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

// Trees of one dof each and contacts between them; -1 is the world.
ProblemArrays Graph(int trees, const std::vector<std::pair<int, int>>& contacts) {
  ProblemArrays arrays;
  const ProblemArrays::Jacobian J = ProblemArrays::Jacobian::Ones(3, 1);
  for (int i = 0; i < trees; ++i) {
    arrays.AddTree(Eigen::MatrixXd::Identity(1, 1), Eigen::VectorXd::Zero(1));
  }
  for (const auto& [a, b] : contacts) {
    if (b < 0) {
      arrays.AddContact(a, J, {});
    } else {
      arrays.AddContact(a, J, b, -J, {});
    }
  }
  return arrays;
}

std::vector<int> Labels(int trees, const std::vector<std::pair<int, int>>& contacts,
                        bool split = true) {
  Islands islands;
  islands.Find(Checked(Graph(trees, contacts)), split);
  return {islands.island_of_tree().begin(), islands.island_of_tree().end()};
}

using LabelList = std::vector<int>;

TEST(IslandsTest, EmptyProblemHasNone) {
  EXPECT_EQ(Labels(0, {}), LabelList());
  Islands islands;
  islands.Find(Checked(Graph(0, {})), true);
  EXPECT_EQ(islands.count(), 0);
  EXPECT_EQ(islands.num_slots(), 0);
}

TEST(IslandsTest, AProblemHasThoseOfWhatWasReadLast) {
  ContactProblem problem;
  EXPECT_EQ(problem.islands().count(), 0);
  ASSERT_TRUE(problem.Reset(Graph(4, {{0, 1}, {2, 3}}).View()).has_value());
  EXPECT_EQ(problem.islands().count(), 2);
  ASSERT_TRUE(problem.Reset(Graph(2, {{1, -1}}).View()).has_value());
  EXPECT_EQ(problem.islands().count(), 1);
  EXPECT_EQ(problem.islands().island_of_tree()[0], -1);
  ProblemArrays refused = Graph(2, {{0, 1}});
  refused.time_step = -1;
  ASSERT_FALSE(problem.Reset(refused.View()).has_value());
  EXPECT_EQ(problem.islands().count(), 0);
  EXPECT_TRUE(problem.islands().island_of_tree().empty());
}

TEST(IslandsTest, TreesWithoutContactBelongToNone) {
  EXPECT_EQ(Labels(3, {}), LabelList({-1, -1, -1}));
  EXPECT_EQ(Labels(3, {{1, -1}}), LabelList({-1, 0, -1}));
}

TEST(IslandsTest, WorldJoinsNothing) {
  EXPECT_EQ(Labels(3, {{0, -1}, {1, -1}, {2, -1}}), LabelList({0, 1, 2}));
}

TEST(IslandsTest, ChainIsOne) {
  EXPECT_EQ(Labels(4, {{3, 2}, {1, 0}, {2, 1}}), LabelList({0, 0, 0, 0}));
}

TEST(IslandsTest, TwoPairsAreTwo) {
  EXPECT_EQ(Labels(4, {{0, 1}, {2, 3}}), LabelList({0, 0, 1, 1}));
}

TEST(IslandsTest, NumbersFollowTheLowestTreeAndNotTheContacts) {
  const LabelList expected{0, 1, 2, 0, 2, 2};
  EXPECT_EQ(Labels(6, {{3, 0}, {4, 2}, {2, 5}, {1, -1}}), expected);
  EXPECT_EQ(Labels(6, {{1, -1}, {5, 2}, {2, 4}, {0, 3}}), expected);
}

TEST(IslandsTest, WithoutSplittingAllTreesInContactAreOne) {
  EXPECT_EQ(Labels(6, {{3, 0}, {4, 2}, {1, -1}}, false), LabelList({0, 0, 0, 0, 0, -1}));
  EXPECT_EQ(Labels(2, {}, false), LabelList({-1, -1}));
}

std::vector<std::pair<int, int>> RandomContacts(Random* random, int trees, int contacts) {
  std::vector<std::pair<int, int>> result;
  for (int i = 0; i < contacts; ++i) {
    const int a = UniformInt(random, 0, trees - 1);
    const int b = UniformInt(random, -1, trees - 1);
    result.emplace_back(a, b == a ? -1 : b);
  }
  return result;
}

// Components by breadth-first search from every tree in turn, numbered as found.
LabelList BreadthFirstLabels(int trees, const std::vector<std::pair<int, int>>& contacts) {
  std::vector<std::vector<int>> neighbors(trees);
  std::vector<bool> touched(trees, false);
  for (const auto& [a, b] : contacts) {
    touched[a] = true;
    if (b < 0) continue;
    touched[b] = true;
    neighbors[a].push_back(b);
    neighbors[b].push_back(a);
  }
  LabelList labels(trees, -1);
  int count = 0;
  for (int start = 0; start < trees; ++start) {
    if (!touched[start] || labels[start] >= 0) continue;
    std::queue<int> front({start});
    labels[start] = count;
    while (!front.empty()) {
      const int tree = front.front();
      front.pop();
      for (const int other : neighbors[tree]) {
        if (labels[other] >= 0) continue;
        labels[other] = count;
        front.push(other);
      }
    }
    ++count;
  }
  return labels;
}

TEST(IslandsTest, AreTheComponentsThatBreadthFirstSearchFinds) {
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    const int trees = UniformInt(&random, 1, 60);
    const auto contacts = RandomContacts(&random, trees, UniformInt(&random, 0, 80));
    EXPECT_EQ(Labels(trees, contacts), BreadthFirstLabels(trees, contacts));
  }
}

TEST(IslandsTest, SlotsListTheTreesOfEachIslandAscending) {
  Random random(2);
  Islands islands;  // the same object again and again: what it held before must not matter
  for (int i = 0; i < 100; ++i) {
    const int trees = UniformInt(&random, 1, 40);
    const auto contacts = RandomContacts(&random, trees, UniformInt(&random, 0, 40));
    islands.Find(Checked(Graph(trees, contacts)), i % 3 != 0);
    ASSERT_EQ(static_cast<int>(islands.first_slot().size()), islands.count() + 1);
    int listed = 0;
    for (int island = 0; island < islands.count(); ++island) {
      int last = -1;
      for (int slot = islands.first_slot()[island]; slot < islands.first_slot()[island + 1];
           ++slot, ++listed) {
        const int tree = islands.tree_of_slot()[slot];
        EXPECT_EQ(islands.island_of_tree()[tree], island);
        EXPECT_EQ(islands.slot_of_tree()[tree], slot);
        EXPECT_GT(tree, last);
        last = tree;
      }
    }
    EXPECT_EQ(listed, islands.num_slots());
    for (int tree = 0; tree < trees; ++tree) {
      EXPECT_EQ(islands.slot_of_tree()[tree] < 0, islands.island_of_tree()[tree] < 0);
    }
  }
}

TEST(IslandsTest, LongChainInTheWorstOrderIsFoundInGoodTime) {
  constexpr int kTrees = 200000;
  std::vector<std::pair<int, int>> contacts;
  for (int i = kTrees - 1; i > 0; --i) contacts.emplace_back(i, i - 1);
  const LabelList labels = Labels(kTrees, contacts);
  EXPECT_EQ(labels, LabelList(kTrees, 0));
}

}  // namespace
}  // namespace sap::test
