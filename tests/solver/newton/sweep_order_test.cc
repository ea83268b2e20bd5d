#include "solver/newton/sweep_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "tests/support/random_constraints.h"

namespace sap::test {
namespace {

// Small trees with constraints of every kind.
class SweepOrderTest : public ::testing::TestWithParam<int> {
 protected:
  SweepOrderTest()
      : problem_(Checked(RandomConstraintsOfEveryKind(
            GetParam(), {.contacts = {.trees = 5 + 5 * GetParam(),
                                      .contacts = 4 * GetParam(),
                                      .max_dofs = GetParam() % 5 == 4 ? 40 : 9},
                         .rows = 3 * GetParam(),
                         .max_entries = 3}))) {
    graph_.Build(problem_, GetParam() % 2 == 0);
    order_.Build(graph_);
    for (int island = 0; island < graph_.islands().count(); ++island) {
      num_groups_ += order_.num_groups(island);
    }
  }
  int Dofs(const TreeGroup& group) const {
    int dofs = 0;
    for (const int slot : group.slots) dofs += graph_.dofs()[slot];
    return dofs;
  }

  const ContactProblem problem_;
  ConstraintGraph graph_;
  SweepOrder order_;
  int num_groups_{0};
};

TEST_P(SweepOrderTest, EveryTreeIsInOneGroupOfItsIsland) {
  std::vector<int> group_of(graph_.num_slots(), -1);
  int number = 0;
  for (int island = 0; island < graph_.islands().count(); ++island) {
    const IslandRange& range = graph_.island_ranges()[island];
    for (int i = 0; i < order_.num_groups(island); ++i, ++number) {
      const TreeGroup group = order_.group(number);
      EXPECT_EQ(group.number, number);
      EXPECT_FALSE(group.slots.empty());
      EXPECT_TRUE(std::ranges::is_sorted(group.slots));
      for (const int slot : group.slots) {
        EXPECT_GE(slot, range.slot_begin);
        EXPECT_LT(slot, range.slot_end);
        EXPECT_EQ(group_of[slot], -1);
        group_of[slot] = number;
      }
    }
  }
  for (number = 0; number < num_groups_; ++number) {
    for (int slot = 0; slot < graph_.num_slots(); ++slot) {
      EXPECT_EQ(order_.group(number).Contains(slot), group_of[slot] == number);
    }
  }
}

// Rows join the first tree with each of the others.
TEST_P(SweepOrderTest, GroupsAreSmallAndConnectedByBilateralRows) {
  const RowLayout& rows = graph_.rows(ConstraintKind::kBilateralRow);
  for (int number = 0; number < num_groups_; ++number) {
    const TreeGroup group = order_.group(number);
    if (group.slots.size() > 1) {
      EXPECT_LE(Dofs(group), kMaxGroupDofs);
    }
    std::set<int> reached{group.slots.front()};
    for (size_t before = 0; before < reached.size();) {
      before = reached.size();
      for (int row = 0; row < rows.num_rows(); ++row) {
        const std::span<const RowPart> parts = rows.parts_of_row(row);
        const auto is_reached = [&](const RowPart& part) { return reached.contains(part.slot); };
        if (std::ranges::none_of(parts, is_reached)) continue;
        for (const RowPart& part : parts) {
          if (group.Contains(part.slot)) reached.insert(part.slot);
        }
      }
    }
    EXPECT_TRUE(std::ranges::equal(reached, group.slots));
  }
}

// A row leaves the first of its trees apart from another only where the two groups together are
// too large: they do not shrink later.
TEST_P(SweepOrderTest, TreesOfABilateralRowAreApartOnlyWhereTogetherTheyAreTooLarge) {
  const RowLayout& rows = graph_.rows(ConstraintKind::kBilateralRow);
  std::vector<TreeGroup> group_of(graph_.num_slots());
  for (int number = 0; number < num_groups_; ++number) {
    for (const int slot : order_.group(number).slots) group_of[slot] = order_.group(number);
  }
  for (int row = 0; row < rows.num_rows(); ++row) {
    const TreeGroup first = group_of[rows.parts_of_row(row).front().slot];
    for (const RowPart& part : rows.parts_of_row(row)) {
      const TreeGroup other = group_of[part.slot];
      if (first.number == other.number) continue;
      EXPECT_GT(Dofs(first) + Dofs(other), kMaxGroupDofs);
    }
  }
}

TEST_P(SweepOrderTest, SweepsTakeEveryGroupOnceAndNoTwoOfAColorTouch) {
  std::vector<int> color_of(num_groups_, -1);
  for (int island = 0; island < graph_.islands().count(); ++island) {
    for (int c = 0; c < order_.num_colors(island); ++c) {
      EXPECT_TRUE(std::ranges::is_sorted(order_.color(island, c)));
      EXPECT_FALSE(order_.color(island, c).empty());
      for (const int group : order_.color(island, c)) {
        EXPECT_EQ(color_of[group], -1);
        color_of[group] = c;
      }
    }
  }
  EXPECT_EQ(std::ranges::count(color_of, -1), 0);
  std::vector<int> group_of(graph_.num_slots());
  for (int number = 0; number < num_groups_; ++number) {
    for (const int slot : order_.group(number).slots) group_of[slot] = number;
  }
  for (const TreePair& pair : graph_.pairs()) {
    if (group_of[pair.low] == group_of[pair.high]) continue;
    EXPECT_NE(color_of[group_of[pair.low]], color_of[group_of[pair.high]]);
  }
}

INSTANTIATE_TEST_SUITE_P(RandomGraphs, SweepOrderTest, ::testing::Range(0, 24));

// A clique and a chain in one island: many colors, of which all but two have one tree.
TEST(SweepOrderTest, EveryTreeHasOneColorThatNoNeighborHas) {
  constexpr int kClique = 40;
  constexpr int kChain = 500;
  ProblemArrays arrays;
  const ProblemArrays::Jacobian J = ProblemArrays::Jacobian::Ones(3, 1);
  const auto touch = [&](int a, int b) { arrays.AddContact(a, J, b, J, {}); };
  for (int tree = 0; tree < kClique + kChain; ++tree) {
    arrays.AddTree(Eigen::MatrixXd::Identity(1, 1), Eigen::VectorXd::Zero(1));
    if (tree >= kClique) touch(tree - 1, tree);
    for (int other = 0; tree < kClique && other < tree; ++other) touch(other, tree);
  }
  ConstraintGraph graph;
  graph.Build(Checked(arrays), true);
  SweepOrder order;
  order.Build(graph);
  ASSERT_EQ(order.num_colors(0), kClique);
  std::vector<int> color_of(kClique + kChain, -1);
  for (int c = 0; c < kClique; ++c) {
    EXPECT_TRUE(std::ranges::is_sorted(order.color(0, c)));
    for (const int group : order.color(0, c)) {
      ASSERT_EQ(order.group(group).slots.size(), 1u);
      const int slot = order.group(group).slots[0];
      EXPECT_EQ(color_of[slot], -1);
      color_of[slot] = c;
    }
  }
  EXPECT_EQ(std::ranges::count(color_of, -1), 0);
  for (const TreePair& pair : graph.pairs()) {
    EXPECT_NE(color_of[pair.low], color_of[pair.high]);
  }
}

}  // namespace
}  // namespace sap::test
