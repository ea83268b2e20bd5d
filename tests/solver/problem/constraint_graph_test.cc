#include "solver/problem/constraint_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "tests/support/random_constraints.h"

namespace sap::test {
namespace {

// A random problem and its graph.
class ConstraintGraphTest : public ::testing::TestWithParam<int> {
 protected:
  ConstraintGraphTest()
      : problem_(Checked(RandomConstraintsOfEveryKind(
            GetParam(), {.contacts = {.trees = 5 + 3 * GetParam(), .contacts = 4 * GetParam()},
                         .rows = GetParam()}))) {
    graph_.Build(problem_, GetParam() % 2 == 0);
  }
  // The slots of a contact, ascending, or of a row.
  std::set<int> SlotsOfContact(int contact) const {
    std::set<int> slots;
    for (const int tree : problem_.trees_of_contact(contact)) {
      slots.insert(graph_.islands().slot_of_tree()[tree]);
    }
    return slots;
  }
  std::set<int> SlotsOfRow(int row) const {
    std::set<int> slots;
    for (int64_t e = problem_.row_start()[row]; e < problem_.row_start()[row + 1]; ++e) {
      slots.insert(graph_.islands().slot_of_tree()[problem_.row_entries()[e].tree]);
    }
    return slots;
  }

  const ContactProblem problem_;
  ConstraintGraph graph_;
};

TEST_P(ConstraintGraphTest, PairsAscendAndAreDistinct) {
  for (size_t p = 1; p < graph_.pairs().size(); ++p) {
    const TreePair& before = graph_.pairs()[p - 1];
    const TreePair& pair = graph_.pairs()[p];
    EXPECT_LT(std::make_pair(before.low, before.high), std::make_pair(pair.low, pair.high));
  }
}

TEST_P(ConstraintGraphTest, PairsAreThoseOfAllConstraintsTogether) {
  std::set<std::pair<int, int>> expected, listed;
  const auto add = [&](const std::set<int>& slots) {
    for (const int low : slots) {
      for (const int high : slots) {
        if (low < high) expected.insert({low, high});
      }
    }
  };
  for (int contact = 0; contact < problem_.num_contacts(); ++contact) {
    add(SlotsOfContact(contact));
  }
  for (int row = 0; row < problem_.num_rows(); ++row) add(SlotsOfRow(row));
  for (const TreePair& pair : graph_.pairs()) listed.insert({pair.low, pair.high});
  EXPECT_EQ(listed, expected);
}

TEST_P(ConstraintGraphTest, CouplingsOfTwoTreesAreTheContactsThatTouchBoth) {
  for (int k = 0; k < kNumContactKinds; ++k) {
    const auto kind = static_cast<ConstraintKind>(k);
    const ContactLayout& layout = graph_.contacts(kind);
    for (int p = 0; p < static_cast<int>(graph_.pairs().size()); ++p) {
      const TreePair& pair = graph_.pairs()[p];
      std::vector<int> expected, listed;
      for (int i = 0; i < layout.num_contacts(); ++i) {
        const std::set<int> slots = SlotsOfContact(layout.order()[i]);
        if (slots.contains(pair.low) && slots.contains(pair.high)) expected.push_back(i);
      }
      const IndexRange range = graph_.couplings(kind, p);
      for (int c = range.begin; c < range.end; ++c) {
        const PartCoupling& coupling = layout.couplings()[c];
        EXPECT_EQ(layout.parts()[coupling.part_low].slot, pair.low);
        EXPECT_EQ(layout.parts()[coupling.part_high].slot, pair.high);
        const ContactGroup& group = layout.groups()[coupling.unit];
        for (int i = group.contact_begin; i < group.contact_end; ++i) listed.push_back(i);
      }
      EXPECT_EQ(listed, expected);
    }
  }
}

TEST_P(ConstraintGraphTest, CouplingsOfTwoTreesAreTheRowsThatTouchBoth) {
  for (const ConstraintKind kind : {ConstraintKind::kBilateralRow, ConstraintKind::kBoundedRow}) {
    const RowLayout& layout = graph_.rows(kind);
    for (int p = 0; p < static_cast<int>(graph_.pairs().size()); ++p) {
      const TreePair& pair = graph_.pairs()[p];
      std::vector<int> expected, listed;
      for (int row = 0; row < layout.num_rows(); ++row) {
        const std::set<int> slots = SlotsOfRow(layout.order()[row]);
        if (slots.contains(pair.low) && slots.contains(pair.high)) expected.push_back(row);
      }
      const IndexRange range = graph_.couplings(kind, p);
      for (int c = range.begin; c < range.end; ++c) {
        const PartCoupling& coupling = layout.couplings()[c];
        EXPECT_EQ(std::pair(coupling.low, coupling.high), std::pair(pair.low, pair.high));
        listed.push_back(coupling.unit);
      }
      EXPECT_EQ(listed, expected);
    }
  }
}

TEST_P(ConstraintGraphTest, AnIslandKnowsItsConstraintsAndTheirKinds) {
  std::vector<IslandRange> expected(graph_.islands().count());
  for (IslandRange& range : expected) range.num_contacts = range.num_rows = range.kinds = 0;
  for (int contact = 0; contact < problem_.num_contacts(); ++contact) {
    const int island =
        graph_.islands().island_of_tree()[problem_.trees_of_contact(contact).front()];
    ++expected[island].num_contacts;
    expected[island].kinds |= 1U << static_cast<int>(problem_.contact_kind()[contact]);
  }
  for (int row = 0; row < problem_.num_rows(); ++row) {
    const RowEntry& entry = problem_.row_entries()[problem_.row_start()[row]];
    const int island = graph_.islands().island_of_tree()[entry.tree];
    ++expected[island].num_rows;
    expected[island].kinds |= 1U << static_cast<int>(problem_.row_kind()[row]);
  }
  for (int island = 0; island < graph_.islands().count(); ++island) {
    const IslandRange& range = graph_.island_ranges()[island];
    EXPECT_EQ(range.num_contacts, expected[island].num_contacts);
    EXPECT_EQ(range.num_rows, expected[island].num_rows);
    EXPECT_EQ(range.kinds, expected[island].kinds);
    for (int k = 0; k < kNumConstraintKinds; ++k) {
      EXPECT_EQ(range.has(static_cast<ConstraintKind>(k)), (expected[island].kinds >> k & 1) != 0);
    }
  }
}

TEST_P(ConstraintGraphTest, StorageOfPairsFollowsWithoutGapOrOverlap) {
  int64_t block = 0;
  for (const TreePair& pair : graph_.pairs()) {
    EXPECT_EQ(pair.dofs_low, graph_.dofs()[pair.low]);
    EXPECT_EQ(pair.dofs_high, graph_.dofs()[pair.high]);
    EXPECT_EQ(pair.block_start, block);
    block += int64_t{1} * pair.dofs_low * pair.dofs_high;
  }
  EXPECT_EQ(graph_.block_size(), block);
}

TEST_P(ConstraintGraphTest, SidesOfATreeAreAllItsPairsAscending) {
  std::vector<std::vector<int>> expected(graph_.num_slots());
  for (int p = 0; p < static_cast<int>(graph_.pairs().size()); ++p) {
    expected[graph_.pairs()[p].low].push_back(p);
    expected[graph_.pairs()[p].high].push_back(p);
  }
  for (int slot = 0; slot < graph_.num_slots(); ++slot) {
    std::vector<int> listed;
    for (const PairSide& side : graph_.sides_of(slot)) {
      const TreePair& pair = graph_.pairs()[side.pair];
      EXPECT_EQ(side.is_high ? pair.high : pair.low, slot);
      listed.push_back(side.pair);
    }
    EXPECT_EQ(listed, expected[slot]);
  }
}

TEST_P(ConstraintGraphTest, RangesOfIslandsTileEverything) {
  int slot = 0, velocity = 0, pair = 0, contacts = 0;
  int64_t matrix = 0, block = 0;
  for (const IslandRange& range : graph_.island_ranges()) {
    EXPECT_EQ(range.slot_begin, slot);
    EXPECT_EQ(range.velocity_begin, velocity);
    EXPECT_EQ(range.pair_begin, pair);
    EXPECT_EQ(range.matrix_begin, matrix);
    EXPECT_EQ(range.block_begin, block);
    EXPECT_GT(range.num_constraints(), 0);
    for (int p = range.pair_begin; p < range.pair_end; ++p) {
      EXPECT_GE(graph_.pairs()[p].low, range.slot_begin);
      EXPECT_LT(graph_.pairs()[p].high, range.slot_end);
    }
    slot = range.slot_end;
    velocity = range.velocity_end;
    pair = range.pair_end;
    contacts += range.num_contacts;
    matrix = range.matrix_end;
    block = range.block_end;
  }
  EXPECT_EQ(slot, graph_.num_slots());
  EXPECT_EQ(velocity, graph_.velocity_start().back());
  EXPECT_EQ(pair, static_cast<int>(graph_.pairs().size()));
  EXPECT_EQ(contacts, problem_.num_contacts());
  EXPECT_EQ(matrix, graph_.matrix_start().back());
  EXPECT_EQ(block, graph_.block_size());
}

TEST_P(ConstraintGraphTest, BuildingOverAnotherGraphLeavesNothingOfIt) {
  ConstraintGraph other;
  other.Build(Checked(RandomConstraintsOfEveryKind(99, {.contacts = {.trees = 70}, .rows = 100})),
              true);
  other.Build(problem_, GetParam() % 2 == 0);
  ASSERT_EQ(other.num_slots(), graph_.num_slots());
  for (int slot = 0; slot < graph_.num_slots(); ++slot) {
    EXPECT_EQ(other.sides_of(slot).size(), graph_.sides_of(slot).size());
  }
  EXPECT_TRUE(std::ranges::equal(other.velocity_start(), graph_.velocity_start()));
  EXPECT_EQ(other.pairs().size(), graph_.pairs().size());
  EXPECT_EQ(other.island_ranges().size(), graph_.island_ranges().size());
}

// One contact and one row, over pairs that interleave: two kinds of constraints are enough to need
// the pairs sorted.
TEST(ConstraintGraphOfTwoKindsTest, PairsAscendAndAreMatched) {
  ProblemArrays arrays;
  const ProblemArrays::Jacobian J = ProblemArrays::Jacobian::Ones(3, 1);
  for (int tree = 0; tree < 4; ++tree) {
    arrays.AddTree(Eigen::MatrixXd::Identity(1, 1), Eigen::VectorXd::Zero(1));
  }
  arrays.AddContact(1, J, 2, J, {});
  arrays.AddRow({0, 2, 3}, {1, 1, 1});
  ConstraintGraph graph;
  graph.Build(Checked(arrays), true);
  std::vector<std::pair<int, int>> pairs;
  for (const TreePair& pair : graph.pairs()) pairs.push_back({pair.low, pair.high});
  EXPECT_EQ(pairs, (std::vector<std::pair<int, int>>{{0, 2}, {0, 3}, {1, 2}, {2, 3}}));
  EXPECT_EQ(graph.couplings(ConstraintKind::kFriction, 2).size(), 1);
  for (const int pair : {0, 1, 3}) {
    EXPECT_TRUE(graph.couplings(ConstraintKind::kFriction, pair).empty());
    EXPECT_EQ(graph.couplings(ConstraintKind::kBilateralRow, pair).size(), 1);
  }
  EXPECT_TRUE(graph.couplings(ConstraintKind::kBilateralRow, 2).empty());
}

INSTANTIATE_TEST_SUITE_P(RandomGraphs, ConstraintGraphTest, ::testing::Range(0, 24));

}  // namespace
}  // namespace sap::test
