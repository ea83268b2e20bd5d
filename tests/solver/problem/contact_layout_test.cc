#include "solver/problem/contact_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "solver/problem/constraint_graph.h"
#include "tests/support/random_constraints.h"

namespace sap::test {
namespace {

// The contacts of one kind of a random problem.
class ContactLayoutTest : public ::testing::TestWithParam<std::tuple<int, ConstraintKind>> {
 protected:
  ContactLayoutTest()
      : problem_(Checked(RandomConstraintsOfEveryKind(
            Seed(),
            {.contacts = {.trees = 5 + 3 * Seed(), .contacts = 8 * Seed()}, .rows = Seed()}))) {
    graph_.Build(problem_, Seed() % 2 == 0);
  }
  static int Seed() { return std::get<0>(GetParam()); }
  static ConstraintKind Kind() { return std::get<1>(GetParam()); }
  const ContactLayout& layout() const { return graph_.contacts(Kind()); }
  int SlotOf(int tree) const { return tree < 0 ? -1 : graph_.islands().slot_of_tree()[tree]; }

  const ContactProblem problem_;
  ConstraintGraph graph_;
};

TEST_P(ContactLayoutTest, EveryContactOfTheKindStandsOnceInThePairOfItsTrees) {
  std::vector<int> seen(problem_.num_contacts(), 0);
  for (const ContactPair& pair : layout().pairs()) {
    EXPECT_LT(pair.contact_begin, pair.contact_end);
    for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
      const int contact = layout().order()[i];
      ++seen[contact];
      const int a = SlotOf(problem_.tree_a()[contact]);
      const int b = SlotOf(problem_.tree_b()[contact]);
      const int low = b < 0 ? a : std::min(a, b);
      const int high = b < 0 ? -1 : std::max(a, b);
      EXPECT_EQ(pair.low, low);
      EXPECT_EQ(pair.high, high);
      EXPECT_EQ(layout().swapped(i), a != low);
      if (i > pair.contact_begin) {
        EXPECT_LT(layout().order()[i - 1], contact);
      }
    }
  }
  for (int contact = 0; contact < problem_.num_contacts(); ++contact) {
    EXPECT_EQ(seen[contact], problem_.contact_kind()[contact] == Kind());
  }
}

TEST_P(ContactLayoutTest, PairsAscendAndFollowEachOther) {
  for (size_t p = 1; p < layout().pairs().size(); ++p) {
    const ContactPair& before = layout().pairs()[p - 1];
    const ContactPair& pair = layout().pairs()[p];
    EXPECT_LT(std::make_pair(before.low, before.high), std::make_pair(pair.low, pair.high));
    EXPECT_EQ(before.contact_end, pair.contact_begin);
  }
}

TEST_P(ContactLayoutTest, JacobiansFollowWithoutGapOrOverlap) {
  int64_t jacobian = 0;
  for (const ContactPair& pair : layout().pairs()) {
    EXPECT_EQ(pair.dofs_low, graph_.dofs()[pair.low]);
    EXPECT_EQ(pair.dofs_high, pair.high < 0 ? 0 : graph_.dofs()[pair.high]);
    EXPECT_EQ(pair.jacobian_start, jacobian);
    const int contacts = pair.contact_end - pair.contact_begin;
    jacobian += int64_t{NumRows(Kind())} * contacts * (pair.dofs_low + pair.dofs_high);
  }
  EXPECT_EQ(layout().jacobian_size(), jacobian);
}

TEST_P(ContactLayoutTest, SidesOfATreeAreAllItsPairsAscending) {
  std::vector<std::vector<int>> expected(graph_.num_slots());
  for (int p = 0; p < static_cast<int>(layout().pairs().size()); ++p) {
    expected[layout().pairs()[p].low].push_back(p);
    if (layout().pairs()[p].high >= 0) expected[layout().pairs()[p].high].push_back(p);
  }
  for (int slot = 0; slot < graph_.num_slots(); ++slot) {
    std::vector<int> listed;
    for (const PairSide& side : layout().sides_of(slot)) {
      const ContactPair& pair = layout().pairs()[side.pair];
      EXPECT_EQ(side.is_high ? pair.high : pair.low, slot);
      listed.push_back(side.pair);
    }
    EXPECT_EQ(listed, expected[slot]);
  }
}

TEST_P(ContactLayoutTest, RangesOfIslandsTilePairsAndContacts) {
  int pair = 0, contact = 0;
  for (int island = 0; island < graph_.islands().count(); ++island) {
    const ContactRange range = layout().island(island);
    const IslandRange& trees = graph_.island_ranges()[island];
    EXPECT_EQ(range.pair_begin, pair);
    EXPECT_EQ(range.contact_begin, contact);
    for (int p = range.pair_begin; p < range.pair_end; ++p) {
      EXPECT_GE(layout().pairs()[p].low, trees.slot_begin);
      EXPECT_LT(std::max(layout().pairs()[p].low, layout().pairs()[p].high), trees.slot_end);
    }
    pair = range.pair_end;
    contact = range.contact_end;
  }
  EXPECT_EQ(pair, static_cast<int>(layout().pairs().size()));
  EXPECT_EQ(contact, layout().num_contacts());
}

TEST_P(ContactLayoutTest, BuildingOverAnotherLayoutLeavesNothingOfIt) {
  ConstraintGraph other;
  other.Build(
      Checked(RandomConstraintsOfEveryKind(99, {.contacts = {.trees = 70, .contacts = 300}})),
      true);
  other.Build(problem_, Seed() % 2 == 0);
  const ContactLayout& rebuilt = other.contacts(Kind());
  EXPECT_TRUE(std::ranges::equal(rebuilt.order(), layout().order()));
  EXPECT_EQ(rebuilt.pairs().size(), layout().pairs().size());
  EXPECT_EQ(rebuilt.jacobian_size(), layout().jacobian_size());
  for (int slot = 0; slot < graph_.num_slots(); ++slot) {
    EXPECT_EQ(rebuilt.sides_of(slot).size(), layout().sides_of(slot).size());
  }
}

INSTANTIATE_TEST_SUITE_P(
    RandomGraphs, ContactLayoutTest,
    ::testing::Combine(::testing::Range(0, 24),
                       ::testing::Values(ConstraintKind::kFriction, ConstraintKind::kCone,
                                         ConstraintKind::kSpinCone, ConstraintKind::kRollingCone,
                                         ConstraintKind::kHuntCrossleyLagged,
                                         ConstraintKind::kHuntCrossleySimilar)));

}  // namespace
}  // namespace sap::test
