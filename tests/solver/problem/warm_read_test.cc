// Reading a problem of the size of the last one allocates nothing, whatever constraints it has.
#include <gtest/gtest.h>

#include "solver/problem/contact_problem.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

void ExpectNoAllocationOnceWarm(const ProblemArrays& arrays) {
  const ContactProblemView view = arrays.View();
  ContactProblem problem;
  ASSERT_TRUE(problem.Reset(view));
  const int64_t before = AllocationCount();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(problem.Reset(view));
  EXPECT_EQ(AllocationCount() - before, 0);
}

TEST(WarmReadTest, PlainFrictionAllocatesNothing) {
  ExpectNoAllocationOnceWarm(RandomTreesInContact(1));
  ExpectNoAllocationOnceWarm(RandomBodiesInContact(1, 8, 30));
}

TEST(WarmReadTest, RowsGeneralConesAndHuntCrossleyAllocateNothing) {
  ProblemArrays arrays = RandomBodiesInContact(1, 8, 30);
  LawArrays& law = arrays.body_contacts.law;
  law.torsional_friction.assign(30, 0.1);
  law.rolling_friction.assign(60, 0.01);
  law.target_velocity.assign(90, 0.5);
  law.target_angular_velocity.assign(3 * 20, 0.5);
  for (int i = 0; i < 30; ++i) {
    law.law.push_back(i % 3 == 0 ? 2 : 1);
    if (i % 3 == 0) law.torsional_friction[i] = 0;
    if (i % 3 == 0) law.rolling_friction[2 * i] = law.rolling_friction[2 * i + 1] = 0;
    if (law.friction[i] == 0) law.friction[i] = 0.5;
  }
  for (std::vector<double>* array :
       {&law.hunt_crossley.elastic_force, &law.hunt_crossley.dissipation,
        &law.hunt_crossley.lagged_normal_impulse}) {
    array->assign(30, 1.0);
  }
  law.guess_impulse.assign(90, 0.5);
  law.guess_angular_impulse.assign(3 * 20, 0.5);
  for (uint32_t i = 0; i < 40; ++i) arrays.AddRow({i, i + 3, i + 8}, {1, -1, 0.5});
  arrays.rows.guess_impulse.assign(40, 0.5);
  ExpectNoAllocationOnceWarm(arrays);
}

}  // namespace
}  // namespace sap::test
