#include "solver/newton/single_body_islands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "solver/newton/accuracy_certificate.h"
#include "solver/solve.h"
#include "tests/solver/prepared_problem.h"
#include "tests/support/answer_errors.h"
#include "tests/support/primal_problem.h"
#include "tests/support/random_problem.h"
#include "tests/support/same_bits.h"

namespace sap::test {
namespace {

constexpr int kDofs = 6;

// One body with `contacts` contacts with the world.
ProblemArrays SingleBody(uint64_t seed, int contacts) {
  return RandomTreesInContact(
      seed,
      {.trees = 1, .contacts = contacts, .min_dofs = kDofs, .max_dofs = kDofs, .world_share = 1});
}

template <typename Value>
void AppendTo(std::vector<Value>* all, const std::vector<Value>& more) {
  all->insert(all->end(), more.begin(), more.end());
}

void AppendBody(const ProblemArrays& body, ProblemArrays* all) {
  const int tree = all->num_trees();
  AppendTo(&all->trees.dofs, body.trees.dofs);
  AppendTo(&all->trees.dynamics_matrix, body.trees.dynamics_matrix);
  AppendTo(&all->trees.free_motion_velocity, body.trees.free_motion_velocity);
  for (const int32_t a : body.contacts.tree_a) all->contacts.tree_a.push_back(a + tree);
  AppendTo(&all->contacts.tree_b, body.contacts.tree_b);
  AppendTo(&all->contacts.jacobian, body.contacts.jacobian);
  AppendTo(&all->contacts.law.signed_distance, body.contacts.law.signed_distance);
  AppendTo(&all->contacts.law.stiffness, body.contacts.law.stiffness);
  AppendTo(&all->contacts.law.relaxation_time, body.contacts.law.relaxation_time);
  AppendTo(&all->contacts.law.friction, body.contacts.law.friction);
}

struct Bodies {
  std::vector<ProblemArrays> alone;
  ProblemArrays together;
};

// Solves the first island.
void SolveTheFirst(PreparedProblem* prepared, const SolverOptions& options, const StopToken& stop,
                   std::vector<IslandReport>* reports) {
  const std::vector<int> islands{0};
  SingleBodies bodies;
  prepared->model.GatherSingleBodies(prepared->problem, prepared->graph, islands,
                                     /*gathered=*/false, &bodies);
  SolveSingleBodyIslands(prepared->graph, prepared->model, bodies, islands, options, stop,
                         &prepared->data, *reports);
}

// 1 to 18 contacts each: more than 16 are too many for a vector.
Bodies RandomBodies(int count) {
  Bodies bodies;
  for (int i = 0; i < count; ++i) {
    bodies.alone.push_back(SingleBody(i, 1 + i % 18));
    AppendBody(bodies.alone.back(), &bodies.together);
  }
  return bodies;
}

void ExpectSameReport(const IslandReport& a, const IslandReport& b) {
  EXPECT_EQ(a.status, b.status);
  EXPECT_EQ(a.iterations, b.iterations);
  EXPECT_EQ(a.factorizations, b.factorizations);
  EXPECT_EQ(a.momentum_residual, b.momentum_residual);
  EXPECT_EQ(a.optimality_gap_bound, b.optimality_gap_bound);
  EXPECT_EQ(a.cost, b.cost);
}

std::vector<double> Part(const std::vector<double>& values, size_t begin, size_t size) {
  return {values.begin() + begin, values.begin() + begin + size};
}

// Solves each body alone, and expects of the answer to all its bits.
void ExpectBitsOfBodiesAlone(const Bodies& bodies, const SolverOptions& options) {
  const ContactSolution together = Solve(Checked(bodies.together), options);
  size_t contact = 0;
  for (size_t i = 0; i < bodies.alone.size(); ++i) {
    SCOPED_TRACE(i);
    const ContactSolution alone = Solve(Checked(bodies.alone[i]), options);
    ASSERT_EQ(alone.islands.size(), 1u);
    ExpectSameReport(together.islands[i], alone.islands[0]);
    const size_t components = alone.impulse.size();
    EXPECT_TRUE(SameBits(Part(together.velocity, kDofs * i, kDofs), alone.velocity));
    EXPECT_TRUE(SameBits(Part(together.impulse, contact, components), alone.impulse));
    EXPECT_TRUE(
        SameBits(Part(together.contact_velocity, contact, components), alone.contact_velocity));
    contact += components;
  }
}

TEST(SingleBodyIslandsTest, BitsDoNotDependOnWhoSharesAVector) {
  const Bodies bodies = RandomBodies(180);
  SolverOptions options;
  for (const int iterations : {0, 1, 2, 100}) {
    options.max_iterations = iterations;
    ExpectBitsOfBodiesAlone(bodies, options);
  }
}

TEST(SingleBodyIslandsTest, OneThatLeavesTheRangeOfDoublesChangesNoOther) {
  Bodies bodies = RandomBodies(90);
  for (size_t i = 0; i < bodies.alone.size(); i += 5) {
    bodies.alone[i].contacts.law.friction[0] = 1e200;  // its square is infinite
  }
  bodies.together = {};
  for (const ProblemArrays& body : bodies.alone) AppendBody(body, &bodies.together);
  ExpectBitsOfBodiesAlone(bodies, {});
  const ContactSolution solution = Solve(Checked(bodies.together));
  for (size_t i = 0; i < bodies.alone.size(); ++i) {
    EXPECT_EQ(solution.islands[i].status,
              i % 5 == 0 ? SolveStatus::kNumericalFailure : SolveStatus::kConverged);
  }
}

// The plain method does not solve in lanes.
TEST(SingleBodyIslandsTest, VelocitiesAreWithinTheirCertificatesOfThePlainMethod) {
  SolverOptions plain;
  plain.newton = NewtonMethod::kPlain;
  plain.relative_tolerance = 1e-13;
  for (const double tolerance : {1e-2, 1e-6, 1e-12}) {
    SolverOptions options;
    options.relative_tolerance = tolerance;
    for (int seed = 0; seed < 200; ++seed) {
      SCOPED_TRACE(seed);
      const ProblemArrays arrays = SingleBody(1000 + seed, 1 + seed % 16);
      const ContactSolution solution = Solve(Checked(arrays), options);
      const ContactSolution reference = Solve(Checked(arrays), plain);
      EXPECT_EQ(solution.islands[0].status, SolveStatus::kConverged);
      EXPECT_LE(solution.islands[0].momentum_residual, tolerance);
      const VectorL error = ToVectorL(solution.velocity) - ToVectorL(reference.velocity);
      const PrimalProblem primal(arrays);
      EXPECT_LE(static_cast<double>(primal.NormA(error)),
                CertifiedVelocityError(solution) + CertifiedVelocityError(reference));
    }
  }
}

TEST(SingleBodyIslandsTest, ReportsAreThoseOfTheFunctionsForAnyIsland) {
  for (int seed = 0; seed < 64; ++seed) {
    SCOPED_TRACE(seed);
    PreparedProblem prepared(SingleBody(seed, 1 + seed % 16));
    const IslandView view = prepared.View(0);
    SolverOptions options;
    options.max_iterations = seed % 4;
    ASSERT_TRUE(IsSingleBodyIsland(view.range(), options));
    std::vector<IslandReport> reports(1);
    SolveTheFirst(&prepared, options, StopToken(), &reports);
    const std::vector<double> gradient = prepared.data.gradient;
    const double unit = view.constants().mass_unit;
    const IslandNorms norms = Evaluate(view, &prepared.data, &prepared.scratch);
    const double bound =
        unit * OptimalityGapBound(view, norms.cost, StopToken(), &prepared.data, &prepared.scratch);
    EXPECT_NEAR(reports[0].cost, unit * norms.cost, 1e-12 * unit * norms.cost_size);
    const double size = std::max(norms.momentum, norms.impulse);
    EXPECT_NEAR(reports[0].momentum_residual, norms.gradient / size, 1e-12);
    // Near the optimum the gradient is what rounding leaves, in each order of sums another.
    EXPECT_NEAR(std::sqrt(reports[0].optimality_gap_bound), std::sqrt(bound),
                1e-6 * std::sqrt(bound) + 1e-12 * std::sqrt(unit) * size);
  }
}

TEST(SingleBodyIslandsTest, WhatADeadlineLeavesIsTheGuessCertified) {
  const StopToken expired(nullptr, StopToken::Clock::now());
  PreparedProblem prepared(SingleBody(3, 4));
  const std::vector<double> guess = prepared.data.v;
  std::vector<IslandReport> reports(1);
  SolveTheFirst(&prepared, {}, expired, &reports);
  EXPECT_EQ(reports[0].status, SolveStatus::kDeadline);
  EXPECT_EQ(reports[0].iterations, 0);
  EXPECT_TRUE(SameBits(prepared.data.v, guess));
  EXPECT_TRUE(std::isfinite(reports[0].optimality_gap_bound));
  EXPECT_GT(reports[0].optimality_gap_bound, 0);
}

TEST(SingleBodyIslandsTest, ACancelledSolveSaysSo) {
  const std::atomic<bool> cancelled{true};
  PreparedProblem prepared(SingleBody(3, 4));
  std::vector<IslandReport> reports(1);
  SolveTheFirst(&prepared, {}, StopToken(&cancelled, StopToken::Clock::time_point::max()),
                &reports);
  EXPECT_EQ(reports[0].status, SolveStatus::kCancelled);
}

}  // namespace
}  // namespace sap::test
