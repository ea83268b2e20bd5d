#include "solver/problem/row_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "solver/problem/constraint_graph.h"
#include "tests/support/random_constraints.h"

namespace sap::test {
namespace {

// A random problem of few or of many islands and its layouts.
class RowLayoutTest : public ::testing::TestWithParam<std::tuple<int, ConstraintKind>> {
 protected:
  RowLayoutTest()
      : problem_(Checked(RandomConstraintsOfEveryKind(
            Seed(), {.contacts = {.trees = 10 + 4 * Seed(), .contacts = 5, .max_dofs = 4},
                     .rows = 4 * Seed(),
                     .max_entries = 2 + Seed() % 7}))) {
    graph_.Build(problem_, Seed() % 3 != 0);
  }
  static int Seed() { return std::get<0>(GetParam()); }
  static ConstraintKind Kind() { return std::get<1>(GetParam()); }
  const RowLayout& layout() const { return graph_.rows(Kind()); }
  // The entries of a row of the problem by slot: degree of freedom, and number among the entries.
  std::map<int, std::vector<int>> DofsBySlot(int number) const {
    std::map<int, std::vector<int>> dofs;
    for (int64_t e = problem_.row_start()[number]; e < problem_.row_start()[number + 1]; ++e) {
      const RowEntry& entry = problem_.row_entries()[e];
      dofs[graph_.islands().slot_of_tree()[entry.tree]].push_back(entry.dof);
    }
    return dofs;
  }
  int IslandOf(int number) const {
    const RowEntry& entry = problem_.row_entries()[problem_.row_start()[number]];
    return graph_.islands().island_of_tree()[entry.tree];
  }

  const ContactProblem problem_;
  ConstraintGraph graph_;
};

TEST_P(RowLayoutTest, RowsOfTheKindStandOnceEachIslandByIsland) {
  std::vector<int> expected;
  for (int number = 0; number < problem_.num_rows(); ++number) {
    if (problem_.row_kind()[number] == Kind()) expected.push_back(number);
  }
  std::vector<int> listed(layout().order().begin(), layout().order().end());
  EXPECT_TRUE(std::ranges::is_sorted(listed, {}, [&](int number) { return IslandOf(number); }));
  std::ranges::sort(listed);
  EXPECT_EQ(listed, expected);
}

TEST_P(RowLayoutTest, RangeOfAnIslandIsItsRows) {
  for (int island = 0; island < graph_.islands().count(); ++island) {
    std::vector<int> expected, listed;
    for (int row = 0; row < layout().num_rows(); ++row) {
      if (IslandOf(layout().order()[row]) == island) expected.push_back(row);
    }
    const IndexRange range = layout().island(island);
    for (int row = range.begin; row < range.end; ++row) listed.push_back(row);
    EXPECT_EQ(listed, expected);
    EXPECT_EQ(range.size(), static_cast<int>(expected.size()));
    EXPECT_EQ(range.empty(), expected.empty());
  }
}

TEST_P(RowLayoutTest, PartsOfARowAreItsTreesWithTheirEntries) {
  int64_t entry = 0;
  for (int row = 0; row < layout().num_rows(); ++row) {
    std::map<int, std::vector<int>> listed;
    int before = -1;
    for (const RowPart& part : layout().parts_of_row(row)) {
      EXPECT_EQ(part.row, row);
      EXPECT_GT(part.slot, before);
      before = part.slot;
      EXPECT_EQ(part.entry_begin, entry);
      EXPECT_LT(part.entry_begin, part.entry_end);
      for (; entry < part.entry_end; ++entry) listed[part.slot].push_back(layout().dof()[entry]);
    }
    EXPECT_EQ(listed, DofsBySlot(layout().order()[row]));
  }
  EXPECT_EQ(entry, layout().num_entries());
}

TEST_P(RowLayoutTest, PartsOfASlotAreAllThatItHasAscending) {
  for (int slot = 0; slot < graph_.num_slots(); ++slot) {
    std::vector<int> expected;
    for (int p = 0; p < static_cast<int>(layout().parts().size()); ++p) {
      if (layout().parts()[p].slot == slot) expected.push_back(p);
    }
    EXPECT_TRUE(std::ranges::equal(layout().parts_of_slot(slot), expected));
  }
}

TEST_P(RowLayoutTest, CouplingsAreAllPairsOfPartsOfARowByPairOfTrees) {
  std::set<std::tuple<int, int, int>> expected, listed;
  for (int row = 0; row < layout().num_rows(); ++row) {
    const auto dofs = DofsBySlot(layout().order()[row]);
    for (const auto& [low, of_low] : dofs) {
      for (const auto& [high, of_high] : dofs) {
        if (low < high) expected.insert({low, high, row});
      }
    }
  }
  std::tuple<int, int, int> before{-1, -1, -1};
  for (const PartCoupling& coupling : layout().couplings()) {
    const std::tuple<int, int, int> key{coupling.low, coupling.high, coupling.unit};
    EXPECT_LT(before, key);
    before = key;
    listed.insert(key);
    for (const auto& [part, slot] :
         {std::pair(coupling.part_low, coupling.low), {coupling.part_high, coupling.high}}) {
      EXPECT_EQ(layout().parts()[part].row, coupling.unit);
      EXPECT_EQ(layout().parts()[part].slot, slot);
    }
  }
  EXPECT_EQ(listed, expected);
}

TEST_P(RowLayoutTest, BuildingOverAnotherLayoutLeavesNothingOfIt) {
  ConstraintGraph other;
  other.Build(Checked(RandomConstraintsOfEveryKind(99, {.contacts = {.trees = 70}, .rows = 200})),
              true);
  other.Build(problem_, Seed() % 3 != 0);
  const RowLayout& rebuilt = other.rows(Kind());
  EXPECT_TRUE(std::ranges::equal(rebuilt.order(), layout().order()));
  EXPECT_TRUE(std::ranges::equal(rebuilt.dof(), layout().dof()));
  EXPECT_EQ(rebuilt.parts().size(), layout().parts().size());
  EXPECT_EQ(rebuilt.couplings().size(), layout().couplings().size());
  for (int slot = 0; slot < graph_.num_slots(); ++slot) {
    EXPECT_TRUE(std::ranges::equal(rebuilt.parts_of_slot(slot), layout().parts_of_slot(slot)));
  }
  for (int island = 0; island < graph_.islands().count(); ++island) {
    EXPECT_EQ(rebuilt.island(island).begin, layout().island(island).begin);
    EXPECT_EQ(rebuilt.island(island).end, layout().island(island).end);
  }
}

INSTANTIATE_TEST_SUITE_P(RandomRows, RowLayoutTest,
                         ::testing::Combine(::testing::Range(0, 20),
                                            ::testing::Values(ConstraintKind::kBilateralRow,
                                                              ConstraintKind::kBoundedRow)));

}  // namespace
}  // namespace sap::test
