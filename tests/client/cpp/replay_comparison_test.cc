// Rows, angular impulses and islands that a replay compares, on solutions made by hand.
#include "client/cpp/files/replay_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "client/cpp/transport/message_conversion.h"

namespace sap::client {
namespace {

using testing::StartsWith;

// Two trees of one dof and a body; three islands in reverse order of their rows: the body has row 0
// and the contact with angular axes, tree 1 has row 1, tree 0 has row 2.
v1::ContactProblem ThreeIslands() {
  v1::ContactProblem problem;
  problem.set_time_step(0.01);
  for (const double v : {1.0, 2.0}) {
    problem.mutable_trees()->add_dofs(1);
    problem.mutable_trees()->add_dynamics_matrix(1);
    problem.mutable_trees()->add_free_motion_velocity(v);
  }
  problem.mutable_bodies()->add_mass(1);
  v1::ConstraintRows* rows = problem.mutable_rows();
  rows->add_entries(2);
  for (const uint32_t index : {3, 6}) rows->add_velocity_index(index);
  for (const uint32_t index : {1, 0}) {
    rows->add_entries(1);
    rows->add_velocity_index(index);
  }
  v1::BodyContacts* contacts = problem.mutable_body_contacts();
  for (const double torsional_friction : {0.0, 0.02}) {
    contacts->add_body_a(0);
    contacts->add_body_b(-1);
    contacts->add_torsional_friction(torsional_friction);
  }
  return problem;
}

// Every number is `base` and something of its own.
v1::ContactSolution SolutionOf(double base) {
  v1::ContactSolution solution;
  for (int i = 0; i < 8; ++i) solution.add_velocity(base + i);
  for (int i = 0; i < 6; ++i) {
    solution.add_impulse(base + 10 + i);
    solution.add_contact_velocity(base + 20 + i);
  }
  for (int i = 0; i < 2; ++i) solution.add_delassus_estimate(base + 100 + i);
  for (int i = 0; i < 3; ++i) {
    solution.add_row_impulse(base + 30 + i);
    solution.add_row_velocity(base + 40 + i);
    solution.add_angular_impulse(base + 50 + i);
    solution.add_island_of_tree(i);
    v1::IslandReports* islands = solution.mutable_islands();
    islands->add_status(v1::ISLAND_STATUS_CONVERGED);
    islands->add_iterations(4);
    islands->add_factorizations(4);
    islands->add_momentum_residual(base + 60 + i);
    islands->add_optimality_gap_bound(base + 70 + i);
    islands->add_dofs(i < 2 ? 1 : 6);
    islands->add_contacts(i < 2 ? 0 : 2);
    islands->add_rows(1);
    islands->add_solve_time_s(base + 150 + i);
    islands->add_cost(base + 80 + i);
    islands->add_coulomb_rounds(2);
    islands->add_coulomb_defect(base + 110 + i);
    islands->add_rest_drift(base + 120 + i);
    islands->add_sag(base + 130 + i);
    islands->add_creep(base + 140 + i);
  }
  solution.set_cost(base + 90);
  return solution;
}

class ReplayComparisonTest : public testing::Test {
 protected:
  ReplayComparisonTest() {
    *record_.mutable_problem() = ThreeIslands();
    *record_.mutable_outcome()->mutable_solution() = SolutionOf(0);
  }

  v1::ContactSolution* recorded() { return record_.mutable_outcome()->mutable_solution(); }

  // How the record differs from what the runs gave, one after the other.
  std::string Difference(const std::vector<v1::ContactSolution>& runs) {
    ReplayComparison comparison(record_);
    if (!comparison.complete()) return "not complete";
    EXPECT_EQ(comparison.runs().size(), runs.size());
    for (const v1::ContactSolution& run : runs) comparison.AddRun(*FromMessage(run));
    return comparison.FirstDifference();
  }

  v1::RecordedSolve record_;
};

TEST_F(ReplayComparisonTest, EqualSolutionsHaveNoDifference) {
  EXPECT_EQ(Difference({SolutionOf(0)}), "");
}

TEST_F(ReplayComparisonTest, ADifferenceOfAnyArrayIsNamed) {
  using Solution = v1::ContactSolution;
  const std::vector<std::pair<std::string, std::function<void(Solution*)>>> changes = {
      {"row_impulse[1] is 31, recorded as 0.5", [](Solution* s) { s->set_row_impulse(1, 0.5); }},
      {"row_velocity[2] is 42, recorded as 0.5", [](Solution* s) { s->set_row_velocity(2, 0.5); }},
      {"angular_impulse[0] is 50, recorded as 0.5",
       [](Solution* s) { s->set_angular_impulse(0, 0.5); }},
      {"delassus_estimate[1] is 101, recorded as 0.5",
       [](Solution* s) { s->set_delassus_estimate(1, 0.5); }},
      {"the length of delassus_estimate is 2, recorded as 3",
       [](Solution* s) { s->add_delassus_estimate(0); }},
      {"islands.rows[2] is 1, recorded as 5",
       [](Solution* s) { s->mutable_islands()->set_rows(2, 5); }},
      {"islands.cost[1] is 81, recorded as 0.5",
       [](Solution* s) { s->mutable_islands()->set_cost(1, 0.5); }},
      {"islands.coulomb_rounds[0] is 2, recorded as 7",
       [](Solution* s) { s->mutable_islands()->set_coulomb_rounds(0, 7); }},
      {"islands.coulomb_defect[1] is 111, recorded as 0.5",
       [](Solution* s) { s->mutable_islands()->set_coulomb_defect(1, 0.5); }},
      {"the length of row_impulse is 3, recorded as 4", [](Solution* s) { s->add_row_impulse(0); }},
      {"the length of row_velocity is 3, recorded as 4",
       [](Solution* s) { s->add_row_velocity(0); }},
      {"the length of angular_impulse is 3, recorded as 4",
       [](Solution* s) { s->add_angular_impulse(0); }},
      {"not complete", [](Solution* s) { s->mutable_islands()->add_rows(0); }},
      {"not complete", [](Solution* s) { s->mutable_islands()->add_cost(0); }},
      {"not complete", [](Solution* s) { s->mutable_islands()->add_coulomb_defect(0); }},
      {"not complete", [](Solution* s) { s->mutable_islands()->add_rest_drift(0); }}};
  for (const auto& [words, change] : changes) {
    *recorded() = SolutionOf(0);
    change(recorded());
    EXPECT_EQ(Difference({SolutionOf(0)}), words);
  }
}

// Islands that a deadline cut after 1, 2 and 3 iterations: the solution with a limit of k
// iterations has the bits of the island that was cut after k, and others everywhere else.
TEST_F(ReplayComparisonTest, RowsAndContactsAreComparedWithTheRunOfTheirIsland) {
  const std::vector<v1::ContactSolution> runs = {SolutionOf(100), SolutionOf(200), SolutionOf(300)};
  const auto row_of_island = [](int island) { return 2 - island; };
  for (int i = 0; i < 3; ++i) {
    recorded()->mutable_islands()->set_status(i, v1::ISLAND_STATUS_DEADLINE);
    recorded()->mutable_islands()->set_iterations(i, i + 1);
    recorded()->mutable_islands()->set_momentum_residual(i, runs[i].islands().momentum_residual(i));
    recorded()->mutable_islands()->set_optimality_gap_bound(
        i, runs[i].islands().optimality_gap_bound(i));
    recorded()->mutable_islands()->set_cost(i, runs[i].islands().cost(i));
    recorded()->mutable_islands()->set_coulomb_defect(i, runs[i].islands().coulomb_defect(i));
    recorded()->mutable_islands()->set_rest_drift(i, runs[i].islands().rest_drift(i));
    recorded()->mutable_islands()->set_sag(i, runs[i].islands().sag(i));
    recorded()->mutable_islands()->set_creep(i, runs[i].islands().creep(i));
    recorded()->set_row_impulse(row_of_island(i), runs[i].row_impulse(row_of_island(i)));
    recorded()->set_row_velocity(row_of_island(i), runs[i].row_velocity(row_of_island(i)));
  }
  for (int i = 0; i < 8; ++i) recorded()->set_velocity(i, runs[std::min(i, 2)].velocity(i));
  *recorded()->mutable_impulse() = runs[2].impulse();
  *recorded()->mutable_contact_velocity() = runs[2].contact_velocity();
  *recorded()->mutable_angular_impulse() = runs[2].angular_impulse();
  *recorded()->mutable_delassus_estimate() = runs[2].delassus_estimate();

  std::vector<v1::ContactSolution> now = runs;
  for (int i = 0; i < 3; ++i) {
    now[i].mutable_islands()->set_status(i, v1::ISLAND_STATUS_ITERATION_LIMIT);
    now[i].mutable_islands()->set_iterations(i, i + 1);
  }
  EXPECT_EQ(Difference(now), "");
  now[1].set_row_impulse(row_of_island(1), 0.5);
  EXPECT_THAT(Difference(now), StartsWith("row_impulse[1] is 0.5"));
  now[1].set_row_impulse(row_of_island(1), runs[1].row_impulse(row_of_island(1)));
  now[2].set_angular_impulse(2, 0.5);
  EXPECT_THAT(Difference(now), StartsWith("angular_impulse[2] is 0.5"));
}

// Servers of version 0.1.0 have neither rows nor costs of islands, nor Delassus estimates, those
// before exact Coulomb friction nothing of it.
TEST_F(ReplayComparisonTest, WhatWasNotRecordedIsNotCompared) {
  recorded()->clear_delassus_estimate();
  recorded()->mutable_islands()->clear_rows();
  recorded()->mutable_islands()->clear_cost();
  recorded()->mutable_islands()->clear_coulomb_rounds();
  recorded()->mutable_islands()->clear_coulomb_defect();
  EXPECT_EQ(Difference({SolutionOf(0)}), "");
}

}  // namespace
}  // namespace sap::client
