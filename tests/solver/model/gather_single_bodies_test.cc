#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "tests/solver/prepared_problem.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

constexpr int kDofs = SingleBodies::kDofs;

// Bodies on the ground, four contacts each, with what the problem may give instead of a rule.
ProblemArrays Bodies(int seed, int bodies) {
  ProblemArrays arrays = Heaps(seed, bodies, 1);
  Random random(seed);
  auto& law = arrays.body_contacts.law;
  const int contacts = 4 * bodies;
  law.friction.clear();
  for (int i = 0; i < contacts; ++i) {
    law.friction.push_back(i % 5 == 0 ? 0 : Uniform(&random, 0.1, 2));
    if (seed % 4 == 1 || seed % 4 == 2) law.regularization_t.push_back(Uniform(&random, 0.1, 1));
    if (seed % 4 == 2) law.regularization_n.push_back(Uniform(&random, 0.1, 1));
    if (seed % 4 == 3) law.delassus_estimate.push_back(Uniform(&random, 0.1, 1));
  }
  return arrays;
}

// Expects of a lane all bits that the model has of its island.
void ExpectBitsOfTheModel(const PreparedProblem& prepared, const SapModel& gathered,
                          const SingleBodies& bodies, int island, int lane) {
  const SapModel& model = prepared.model;
  const IslandConstants& constants = gathered.constants(island);
  EXPECT_EQ(constants.mass_unit, model.constants(island).mass_unit);
  EXPECT_EQ(constants.trace_A, model.constants(island).trace_A);
  EXPECT_EQ(constants.representable, model.constants(island).representable);
  const IslandView view = prepared.View(island);
  const int slot = view.range().slot_begin;
  const int start = prepared.graph.velocity_start()[slot];
  for (int i = 0; i < kDofs * kDofs; ++i) {
    EXPECT_EQ(bodies.A[i][lane], model.A(prepared.graph, slot)[i]);
    EXPECT_EQ(bodies.A_factor[i][lane], model.A_factor(prepared.graph, slot).entries[i]);
  }
  for (int i = 0; i < kDofs; ++i) {
    EXPECT_EQ(bodies.D[i][lane], model.D()[start + i]);
    EXPECT_EQ(bodies.v_star[i][lane], model.v_star()[start + i]);
  }
  const auto& [laws, jacobians] = model.pools[kFrictionPool];
  const PoolRange range = view.range(kFrictionPool);
  ASSERT_EQ(bodies.num_contacts, range.end - range.begin);
  const ContactGroup& group = view.layout(kFrictionPool).groups()[range.unit_begin];
  for (int c = 0; c < bodies.num_contacts; ++c) {
    const SingleBodies::Contact& contact = bodies.contacts[c];
    const int i = range.begin + c;
    for (int k = 0; k < 3 * kDofs; ++k) {
      EXPECT_EQ(contact.J[k][lane], jacobians.of(group, i)[k]);
    }
    const ConeParameters<double> law = laws.At(i, double{});
    EXPECT_EQ(contact.law.v_hat_n[lane], law.v_hat_n);
    EXPECT_EQ(contact.law.inv_R_t[lane], law.inv_R_t);
    EXPECT_EQ(contact.law.R_n[lane], law.R_n);
    EXPECT_EQ(contact.law.mu[lane], law.mu);
    EXPECT_EQ(contact.law.slide_factor[lane], law.slide_factor);
    EXPECT_EQ(contact.target_size.n[lane], laws.target_size(i).n);
    const int number = view.layout(kFrictionPool).order()[i];
    EXPECT_EQ(gathered.w[number], model.w[number]);
  }
}

class GatherSingleBodiesTest : public ::testing::TestWithParam<DelassusRule> {};

TEST_P(GatherSingleBodiesTest, LanesHaveTheBitsOfTheModel) {
  for (int seed = 0; seed < 8; ++seed) {
    for (const int count : {1, 3, 4}) {
      SCOPED_TRACE(std::to_string(seed) + ", " + std::to_string(count));
      ProblemArrays arrays = Bodies(seed, count);
      arrays.regularization.rule = GetParam();
      arrays.bodies.initial_velocity = arrays.bodies.free_motion_velocity;
      const PreparedProblem prepared(arrays);
      std::vector<int> islands(count);
      std::iota(islands.begin(), islands.end(), 0);
      SapModel gathered;
      gathered.Resize(prepared.problem, prepared.graph);
      const bool by_load = GetParam() == DelassusRule::kLoadPath;
      if (by_load) gathered.w = prepared.model.w;
      SingleBodies bodies;
      gathered.GatherSingleBodies(prepared.problem, prepared.graph, islands, by_load, &bodies);
      for (int lane = 0; lane < SingleBodies::kLanes; ++lane) {
        ExpectBitsOfTheModel(prepared, gathered, bodies, std::min(lane, count - 1), lane);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, GatherSingleBodiesTest,
                         testing::Values(DelassusRule::kFull, DelassusRule::kDiagonal,
                                         DelassusRule::kLoadPath));

TEST(SingleBodiesTest, WhatTheModelCannotRepresentLanesCannotEither) {
  for (const int wrong : {0, 1, 2, 3}) {
    ProblemArrays arrays = Bodies(1, 4);
    arrays.body_contacts.law.friction[4 * wrong + 1] = 1e200;
    const PreparedProblem prepared(arrays);
    SapModel gathered;
    gathered.Resize(prepared.problem, prepared.graph);
    SingleBodies bodies;
    gathered.GatherSingleBodies(prepared.problem, prepared.graph, std::vector<int>{0, 1, 2, 3},
                                false, &bodies);
    for (int island = 0; island < 4; ++island) {
      EXPECT_EQ(gathered.constants(island).representable, island != wrong);
      EXPECT_EQ(prepared.model.constants(island).representable, island != wrong);
    }
  }
}

}  // namespace
}  // namespace sap::test
