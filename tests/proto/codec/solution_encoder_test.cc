#include "proto/codec/solution_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace sap {
namespace {

using testing::ElementsAre;

ContactSolution Example() {
  ContactSolution solution;
  solution.velocity = {1, 2};
  solution.impulse = {3, 4, 5};
  solution.contact_velocity = {6, 7, 8};
  solution.row_impulse = {20, 21};
  solution.row_velocity = {22, 23};
  solution.angular_impulse = {24, 25, 26};
  solution.delassus_estimate = {29};
  solution.cost = 9;
  solution.island_of_tree = {0, -1};
  solution.islands = {{.status = SolveStatus::kStalledAtRoundoff,
                       .swept = true,
                       .iterations = 10,
                       .factorizations = 11,
                       .momentum_residual = 12,
                       .optimality_gap_bound = 13,
                       .dofs = 14,
                       .contacts = 15,
                       .rows = 28,
                       .solve_time_s = 16,
                       .cost = 27}};
  solution.times = {.islands_s = 17, .solve_s = 18};
  return solution;
}

TEST(SolutionEncoderTest, CarriesEveryField) {
  v1::ContactSolution message;
  EncodeSolution(Example(), SolutionMask().set(), &message);
  EXPECT_THAT(message.velocity(), ElementsAre(1, 2));
  EXPECT_THAT(message.impulse(), ElementsAre(3, 4, 5));
  EXPECT_THAT(message.contact_velocity(), ElementsAre(6, 7, 8));
  EXPECT_THAT(message.row_impulse(), ElementsAre(20, 21));
  EXPECT_THAT(message.row_velocity(), ElementsAre(22, 23));
  EXPECT_THAT(message.angular_impulse(), ElementsAre(24, 25, 26));
  EXPECT_THAT(message.delassus_estimate(), ElementsAre(29));
  EXPECT_EQ(message.cost(), 9);
  EXPECT_THAT(message.island_of_tree(), ElementsAre(0, -1));
  EXPECT_THAT(message.islands().status(), ElementsAre(v1::ISLAND_STATUS_STALLED_AT_ROUNDOFF));
  EXPECT_THAT(message.islands().iterations(), ElementsAre(10u));
  EXPECT_THAT(message.islands().factorizations(), ElementsAre(11u));
  EXPECT_THAT(message.islands().momentum_residual(), ElementsAre(12));
  EXPECT_THAT(message.islands().optimality_gap_bound(), ElementsAre(13));
  EXPECT_THAT(message.islands().dofs(), ElementsAre(14u));
  EXPECT_THAT(message.islands().contacts(), ElementsAre(15u));
  EXPECT_THAT(message.islands().rows(), ElementsAre(28u));
  EXPECT_THAT(message.islands().cost(), ElementsAre(27));
  EXPECT_THAT(message.islands().solve_time_s(), ElementsAre(16));
  EXPECT_THAT(message.islands().swept(), ElementsAre(0u));
  EXPECT_EQ(message.timings().islands_s(), 17);
  EXPECT_EQ(message.timings().solve_s(), 18);
}

TEST(SolutionEncoderTest, DriftsAreSentWhereTheyWereAskedForAlsoIfTheyAreZero) {
  v1::ContactSolution message;
  ContactSolution solution = Example();
  EncodeSolution(solution, SolutionMask().set(), &message);
  EXPECT_EQ(message.islands().rest_drift_size(), 0);
  for (const double drift : {0.0, 2e-5, std::numeric_limits<double>::infinity()}) {
    solution.islands[0].rest_drift = drift;
    EncodeSolution(solution, SolutionMask().set(), &message);
    EXPECT_THAT(message.islands().rest_drift(), ElementsAre(drift));
  }
}

TEST(SolutionEncoderTest, ReportsOfExactFrictionAreEmptyWithoutIt) {
  v1::ContactSolution message;
  ContactSolution solution = Example();
  EncodeSolution(solution, SolutionMask().set(), &message);
  EXPECT_EQ(message.islands().coulomb_rounds_size(), 0);
  EXPECT_EQ(message.islands().coulomb_defect_size(), 0);
  solution.islands[0].status = SolveStatus::kCoulombLimit;
  solution.islands[0].coulomb_rounds = 30;
  solution.islands[0].coulomb_defect = 31;
  EncodeSolution(solution, SolutionMask().set(), &message);
  EXPECT_THAT(message.islands().status(), ElementsAre(v1::ISLAND_STATUS_COULOMB_LIMIT));
  EXPECT_THAT(message.islands().coulomb_rounds(), ElementsAre(30u));
  EXPECT_THAT(message.islands().coulomb_defect(), ElementsAre(31));
}

// For every field of the schema: a mask of it alone returns it, and nothing else.
TEST(SolutionEncoderTest, AMaskOfOneFieldReturnsThatFieldAlone) {
  const auto* descriptor = v1::ContactSolution::descriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const std::string_view name = descriptor->field(i)->name();
    v1::ContactSolution message;
    EncodeSolution(Example(), *ReadMask({&name, 1}), &message);
    std::vector<const google::protobuf::FieldDescriptor*> present;
    message.GetReflection()->ListFields(message, &present);
    EXPECT_THAT(present, ElementsAre(descriptor->field(i)));
  }
}

TEST(SolutionEncoderTest, EachStatusHasItsOwnName) {
  const std::vector<std::pair<SolveStatus, v1::IslandStatus>> statuses = {
      {SolveStatus::kConverged, v1::ISLAND_STATUS_CONVERGED},
      {SolveStatus::kStalledAtRoundoff, v1::ISLAND_STATUS_STALLED_AT_ROUNDOFF},
      {SolveStatus::kIterationLimit, v1::ISLAND_STATUS_ITERATION_LIMIT},
      {SolveStatus::kDeadline, v1::ISLAND_STATUS_DEADLINE},
      {SolveStatus::kCancelled, v1::ISLAND_STATUS_CANCELLED},
      {SolveStatus::kNumericalFailure, v1::ISLAND_STATUS_NUMERICAL_FAILURE}};
  for (const auto& [status, expected] : statuses) {
    ContactSolution solution;
    solution.islands = {{.status = status}};
    v1::ContactSolution message;
    EncodeSolution(solution, SolutionMask().set(), &message);
    EXPECT_THAT(message.islands().status(), ElementsAre(expected));
  }
}

// A message that serves call after call must not keep what the last one was answered.
TEST(SolutionEncoderTest, ReplacesWhatTheMessageHeld) {
  v1::ContactSolution message;
  EncodeSolution(Example(), SolutionMask().set(), &message);
  EncodeSolution(ContactSolution(), SolutionMask().set(), &message);
  EXPECT_EQ(message.velocity_size(), 0);
  EXPECT_EQ(message.row_impulse_size(), 0);
  EXPECT_EQ(message.islands().status_size(), 0);
}

}  // namespace
}  // namespace sap
