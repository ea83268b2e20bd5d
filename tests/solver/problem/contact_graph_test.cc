#include "solver/problem/contact_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "solver/sap/gauss_seidel.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

// A random problem and its graph.
class ContactGraphTest : public ::testing::TestWithParam<int> {
 protected:
  ContactGraphTest()
      : problem_(Checked(RandomTreesInContact(
            GetParam(), {.trees = 5 + 3 * GetParam(), .contacts = 4 * GetParam()}))) {
    graph_.Build(problem_, GetParam() % 2 == 0);
  }
  int SlotOf(int tree) const { return tree < 0 ? -1 : graph_.islands().slot_of_tree()[tree]; }

  const ContactProblem problem_;
  ContactGraph graph_;
};

TEST_P(ContactGraphTest, EveryContactStandsOnceInThePairOfItsTrees) {
  std::vector<int> seen(problem_.num_contacts(), 0);
  for (const ContactPair& pair : graph_.pairs()) {
    EXPECT_LT(pair.contact_begin, pair.contact_end);
    for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
      const int contact = graph_.contact_order()[i];
      ++seen[contact];
      const int a = SlotOf(problem_.tree_a()[contact]);
      const int b = SlotOf(problem_.tree_b()[contact]);
      const int low = b < 0 ? a : std::min(a, b);
      const int high = b < 0 ? -1 : std::max(a, b);
      EXPECT_EQ(pair.low, low);
      EXPECT_EQ(pair.high, high);
      EXPECT_EQ(graph_.swapped(i), a != low);
      if (i > pair.contact_begin) {
        EXPECT_LT(graph_.contact_order()[i - 1], contact);
      }
    }
  }
  EXPECT_EQ(seen, std::vector<int>(problem_.num_contacts(), 1));
}

TEST_P(ContactGraphTest, PairsAscendAndAreDistinct) {
  for (size_t p = 1; p < graph_.pairs().size(); ++p) {
    const ContactPair& before = graph_.pairs()[p - 1];
    const ContactPair& pair = graph_.pairs()[p];
    EXPECT_LT(std::make_pair(before.low, before.high), std::make_pair(pair.low, pair.high));
    EXPECT_EQ(before.contact_end, pair.contact_begin);
  }
}

TEST_P(ContactGraphTest, StorageOfPairsFollowsWithoutGapOrOverlap) {
  int64_t jacobian = 0, block = 0;
  for (const ContactPair& pair : graph_.pairs()) {
    EXPECT_EQ(pair.dofs_low, graph_.dofs()[pair.low]);
    EXPECT_EQ(pair.dofs_high, pair.high < 0 ? 0 : graph_.dofs()[pair.high]);
    EXPECT_EQ(pair.jacobian_start, jacobian);
    EXPECT_EQ(pair.block_start, block);
    const int contacts = pair.contact_end - pair.contact_begin;
    jacobian += int64_t{3} * contacts * (pair.dofs_low + pair.dofs_high);
    block += int64_t{1} * pair.dofs_low * pair.dofs_high;
  }
  EXPECT_EQ(graph_.jacobian_size(), jacobian);
  EXPECT_EQ(graph_.block_size(), block);
}

TEST_P(ContactGraphTest, SidesOfATreeAreAllItsPairsAscending) {
  std::vector<std::vector<int>> expected(graph_.num_slots());
  for (int p = 0; p < static_cast<int>(graph_.pairs().size()); ++p) {
    expected[graph_.pairs()[p].low].push_back(p);
    if (graph_.pairs()[p].high >= 0) expected[graph_.pairs()[p].high].push_back(p);
  }
  for (int slot = 0; slot < graph_.num_slots(); ++slot) {
    std::vector<int> listed;
    for (const PairSide& side : graph_.sides_of(slot)) {
      const ContactPair& pair = graph_.pairs()[side.pair];
      EXPECT_EQ(side.is_high ? pair.high : pair.low, slot);
      listed.push_back(side.pair);
    }
    EXPECT_EQ(listed, expected[slot]);
  }
}

TEST_P(ContactGraphTest, RangesOfIslandsTileEverything) {
  int slot = 0, velocity = 0, pair = 0, contact = 0;
  int64_t matrix = 0, block = 0;
  for (const IslandRange& range : graph_.island_ranges()) {
    EXPECT_EQ(range.slot_begin, slot);
    EXPECT_EQ(range.velocity_begin, velocity);
    EXPECT_EQ(range.pair_begin, pair);
    EXPECT_EQ(range.contact_begin, contact);
    EXPECT_EQ(range.matrix_begin, matrix);
    EXPECT_EQ(range.block_begin, block);
    EXPECT_GT(range.num_contacts(), 0);
    for (int p = range.pair_begin; p < range.pair_end; ++p) {
      EXPECT_GE(graph_.pairs()[p].low, range.slot_begin);
      EXPECT_LT(std::max(graph_.pairs()[p].low, graph_.pairs()[p].high), range.slot_end);
    }
    slot = range.slot_end;
    velocity = range.velocity_end;
    pair = range.pair_end;
    contact = range.contact_end;
    matrix = range.matrix_end;
    block = range.block_end;
  }
  EXPECT_EQ(slot, graph_.num_slots());
  EXPECT_EQ(velocity, graph_.velocity_start().back());
  EXPECT_EQ(pair, static_cast<int>(graph_.pairs().size()));
  EXPECT_EQ(contact, problem_.num_contacts());
  EXPECT_EQ(matrix, graph_.matrix_start().back());
  EXPECT_EQ(block, graph_.block_size());
}

TEST_P(ContactGraphTest, BuildingOverAnotherGraphLeavesNothingOfIt) {
  ContactGraph other;
  other.Build(Checked(RandomTreesInContact(99, {.trees = 70, .contacts = 200})), true);
  other.Build(problem_, GetParam() % 2 == 0);
  EXPECT_TRUE(std::ranges::equal(other.contact_order(), graph_.contact_order()));
  ASSERT_EQ(other.num_slots(), graph_.num_slots());
  for (int slot = 0; slot < graph_.num_slots(); ++slot) {
    EXPECT_EQ(other.sides_of(slot).size(), graph_.sides_of(slot).size());
  }
  EXPECT_TRUE(std::ranges::equal(other.velocity_start(), graph_.velocity_start()));
  EXPECT_EQ(other.pairs().size(), graph_.pairs().size());
  EXPECT_EQ(other.island_ranges().size(), graph_.island_ranges().size());
}

TEST_P(ContactGraphTest, SweepsTakeEveryTreeOnceAndNoTwoOfAColorTouch) {
  SweepOrder order;
  order.Build(graph_);
  std::vector<int> color_of_slot(graph_.num_slots(), -1);
  for (int island = 0; island < graph_.islands().count(); ++island) {
    const IslandRange& range = graph_.island_ranges()[island];
    for (int c = 0; c < order.num_colors(island); ++c) {
      EXPECT_TRUE(std::ranges::is_sorted(order.color(island, c)));
      EXPECT_FALSE(order.color(island, c).empty());
      for (const int slot : order.color(island, c)) {
        EXPECT_GE(slot, range.slot_begin);
        EXPECT_LT(slot, range.slot_end);
        EXPECT_EQ(color_of_slot[slot], -1);
        color_of_slot[slot] = c;
      }
    }
  }
  EXPECT_EQ(std::ranges::count(color_of_slot, -1), 0);
  for (const ContactPair& pair : graph_.pairs()) {
    if (pair.high >= 0) {
      EXPECT_NE(color_of_slot[pair.low], color_of_slot[pair.high]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(RandomGraphs, ContactGraphTest, ::testing::Range(0, 24));

}  // namespace
}  // namespace sap::test
