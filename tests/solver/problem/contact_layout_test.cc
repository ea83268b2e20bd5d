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
  int SlotOf(int tree) const { return graph_.islands().slot_of_tree()[tree]; }
  // Ascending.
  std::vector<int> SlotsOf(const ContactGroup& group) const {
    std::vector<int> slots;
    for (const ContactPart& part : layout().parts_of(group)) slots.push_back(part.slot);
    return slots;
  }
  std::vector<int> SlotsOfContact(int contact) const {
    std::vector<int> slots;
    for (const int tree : problem_.trees_of_contact(contact)) slots.push_back(SlotOf(tree));
    std::ranges::sort(slots);
    return slots;
  }

  const ContactProblem problem_;
  ConstraintGraph graph_;
};

TEST_P(ContactLayoutTest, EveryContactOfTheKindStandsOnceInTheGroupOfItsTrees) {
  std::vector<int> seen(problem_.num_contacts(), 0);
  for (const ContactGroup& group : layout().groups()) {
    EXPECT_LT(group.contact_begin, group.contact_end);
    for (int i = group.contact_begin; i < group.contact_end; ++i) {
      const int contact = layout().order()[i];
      ++seen[contact];
      EXPECT_EQ(SlotsOf(group), SlotsOfContact(contact));
      if (i > group.contact_begin) {
        EXPECT_LT(layout().order()[i - 1], contact);
      }
    }
  }
  for (int contact = 0; contact < problem_.num_contacts(); ++contact) {
    EXPECT_EQ(seen[contact], problem_.contact_kind()[contact] == Kind());
  }
}

TEST_P(ContactLayoutTest, BlocksOfAContactComeFromTheColumnsOfTheirTrees) {
  for (const ContactGroup& group : layout().groups()) {
    for (int i = group.contact_begin; i < group.contact_end; ++i) {
      int column = 0;
      for (const int tree : problem_.trees_of_contact(layout().order()[i])) {
        const auto parts = layout().parts_of(group);
        const auto part = std::ranges::find(parts, SlotOf(tree), &ContactPart::slot);
        ASSERT_NE(part, parts.end());
        const int number = group.part_begin + static_cast<int>(part - parts.begin());
        EXPECT_EQ(layout().source_column(group, i, number), column);
        column += problem_.dofs()[tree];
      }
    }
  }
}

TEST_P(ContactLayoutTest, GroupsAscendAndFollowEachOther) {
  for (size_t g = 1; g < layout().groups().size(); ++g) {
    const ContactGroup& before = layout().groups()[g - 1];
    const ContactGroup& group = layout().groups()[g];
    EXPECT_LT(SlotsOf(before), SlotsOf(group));
    EXPECT_EQ(before.contact_end, group.contact_begin);
    EXPECT_EQ(before.part_end, group.part_begin);
  }
}

TEST_P(ContactLayoutTest, JacobiansFollowWithoutGapOrOverlap) {
  int64_t jacobian = 0;
  for (const ContactGroup& group : layout().groups()) {
    int column = 0;
    for (const ContactPart& part : layout().parts_of(group)) {
      EXPECT_EQ(part.dofs, graph_.dofs()[part.slot]);
      EXPECT_EQ(part.column, column);
      column += part.dofs;
    }
    EXPECT_EQ(group.dofs, column);
    EXPECT_EQ(group.jacobian_start, jacobian);
    jacobian += int64_t{NumRows(Kind())} * group.num_contacts() * group.dofs;
  }
  EXPECT_EQ(layout().jacobian_size(), jacobian);
}

TEST_P(ContactLayoutTest, SidesOfATreeAreAllItsGroupsAscending) {
  std::vector<std::vector<int>> expected(graph_.num_slots());
  for (int g = 0; g < static_cast<int>(layout().groups().size()); ++g) {
    for (const int slot : SlotsOf(layout().groups()[g])) expected[slot].push_back(g);
  }
  for (int slot = 0; slot < graph_.num_slots(); ++slot) {
    std::vector<int> listed;
    for (const ContactSide& side : layout().sides_of(slot)) {
      const ContactGroup& group = layout().groups()[side.group];
      EXPECT_EQ(layout().parts()[side.part].slot, slot);
      EXPECT_GE(side.part, group.part_begin);
      EXPECT_LT(side.part, group.part_end);
      listed.push_back(side.group);
    }
    EXPECT_EQ(listed, expected[slot]);
  }
}

TEST_P(ContactLayoutTest, RangesOfIslandsTileGroupsAndContacts) {
  int group = 0, contact = 0;
  for (int island = 0; island < graph_.islands().count(); ++island) {
    const ContactRange range = layout().island(island);
    const IslandRange& trees = graph_.island_ranges()[island];
    EXPECT_EQ(range.group_begin, group);
    EXPECT_EQ(range.contact_begin, contact);
    for (int g = range.group_begin; g < range.group_end; ++g) {
      EXPECT_GE(SlotsOf(layout().groups()[g]).front(), trees.slot_begin);
      EXPECT_LT(SlotsOf(layout().groups()[g]).back(), trees.slot_end);
    }
    group = range.group_end;
    contact = range.contact_end;
  }
  EXPECT_EQ(group, static_cast<int>(layout().groups().size()));
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
  EXPECT_EQ(rebuilt.groups().size(), layout().groups().size());
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
