// The types of the client have every field of the wire: a message whose fields are all set comes
// back unchanged.
#include "client/cpp/transport/message_conversion.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "tests/support/message_fields.h"

namespace sap::client {
namespace {

using testing::HasSubstr;

// Differences, field by field; empty: none.
std::string Differences(const google::protobuf::Message& a, const google::protobuf::Message& b) {
  std::string differences;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&differences);
  differencer.Compare(a, b);
  return differences;
}

v1::ContactSolution FilledSolution() {
  v1::ContactSolution message;
  test::FillFields(/*count=*/3, &message);
  message.mutable_islands()->clear_swept();  // a list of islands, of which there are 3
  message.mutable_islands()->add_swept(1);
  return message;
}

TEST(MessageConversionTest, NoFieldOfAProblemIsForgotten) {
  v1::ContactProblem message;
  test::FillFields(/*count=*/3, &message);
  const auto problem = FromMessage(message);
  ASSERT_TRUE(problem.has_value()) << problem.error().message;
  v1::ContactProblem back;
  ToMessage(*problem, &back);
  message.mutable_regularization()->clear_preset();  // its numbers are given
  EXPECT_EQ(Differences(message, back), "");
}

TEST(MessageConversionTest, NoFieldOfASolutionIsForgotten) {
  const v1::ContactSolution message = FilledSolution();
  const auto solution = FromMessage(message);
  ASSERT_TRUE(solution.has_value()) << solution.error().message;
  v1::ContactSolution back;
  ToMessage(*solution, &back);
  EXPECT_EQ(Differences(message, back), "");
}

// A session writes every step into the same message.
TEST(MessageConversionTest, NothingIsLeftOfTheProblemThatAMessageHeldBefore) {
  v1::ContactProblem message;
  test::FillFields(/*count=*/3, &message);
  ToMessage(Problem(), &message);
  v1::ContactProblem expected;
  ToMessage(Problem(), &expected);
  EXPECT_EQ(Differences(expected, message), "");
}

TEST(MessageConversionTest, AbsentParametersOfTheRegularizationHaveTheDefaultsOfTheSchema) {
  const auto problem = FromMessage(v1::ContactProblem());
  ASSERT_TRUE(problem.has_value());
  EXPECT_EQ(problem->regularization.beta, 1);
  EXPECT_EQ(problem->regularization.sigma, 1e-3);
  EXPECT_EQ(problem->regularization.rule, DelassusRule::kFull);
  EXPECT_EQ(problem->regularization.row_beta, 0.1);
  EXPECT_EQ(problem->regularization.stiction_speed, 1e-4);
  EXPECT_EQ(problem->regularization.reference_time_step, 0);
}

TEST(MessageConversionTest, APresetGivesTheNumbersThatAreAbsent) {
  v1::ContactProblem message;
  message.mutable_regularization()->set_preset(v1::REGULARIZATION_PRESET_RIGID);
  message.mutable_regularization()->set_beta(0.5);
  const auto problem = FromMessage(message);
  ASSERT_TRUE(problem.has_value());
  EXPECT_EQ(problem->regularization.beta, 0.5);
  EXPECT_EQ(problem->regularization.sigma, Regularization::Rigid().sigma);
  EXPECT_EQ(problem->regularization.row_beta, Regularization::Rigid().row_beta);
  message.mutable_regularization()->set_preset(static_cast<v1::RegularizationPreset>(9));
  const auto refused = FromMessage(message);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().field, "regularization.preset");
}

TEST(MessageConversionTest, AReferenceTimeStepOfZeroIsNoAbsentOne) {
  v1::ContactProblem message;
  message.mutable_regularization()->set_reference_time_step(0);
  const auto problem = FromMessage(message);
  ASSERT_FALSE(problem.has_value());
  EXPECT_EQ(problem.error().field, "regularization.reference_time_step");
}

// Servers of version 0.1.0 have neither.
TEST(MessageConversionTest, IslandsWithoutRowsAndCostsAreRead) {
  v1::ContactSolution message = FilledSolution();
  message.mutable_islands()->clear_rows();
  message.mutable_islands()->clear_cost();
  const auto solution = FromMessage(message);
  ASSERT_TRUE(solution.has_value()) << solution.error().message;
  ASSERT_EQ(solution->islands.size(), 3u);
  EXPECT_EQ(solution->islands[2].rows, 0);
  EXPECT_EQ(solution->islands[2].cost, 0);
}

TEST(MessageConversionTest, IslandArraysOfDifferentLengthsAreMalformed) {
  for (const char* name : {"islands.dofs", "islands.contacts", "islands.rows"}) {
    v1::ContactSolution message = FilledSolution();
    test::Array<uint32_t>(name, &message).Resize(2, 0);
    const auto solution = FromMessage(message);
    ASSERT_FALSE(solution.has_value()) << name;
    EXPECT_THAT(solution.error().message, HasSubstr("different lengths"));
  }
  v1::ContactSolution message = FilledSolution();
  test::Array<double>("islands.cost", &message).Resize(4, 0);
  EXPECT_FALSE(FromMessage(message).has_value());
}

TEST(MessageConversionTest, TheLimitsOnRowsAreRead) {
  v1::GetServerInfoResponse message;
  message.mutable_limits()->set_max_contacts(7);
  message.mutable_limits()->set_max_rows(8);
  message.mutable_limits()->set_max_row_entries(9);
  message.mutable_limits()->set_max_row_pairs(10);
  message.mutable_limits()->set_max_derivatives(11);
  const ServerInfo info = FromMessage(message);
  EXPECT_EQ(info.max_contacts, 7u);
  EXPECT_EQ(info.max_rows, 8u);
  EXPECT_EQ(info.max_row_entries, 9u);
  EXPECT_EQ(info.max_row_pairs, 10u);
  EXPECT_EQ(info.max_derivatives, 11u);
}

TEST(MessageConversionTest, TheLimitsOfTheClientAreRead) {
  v1::GetServerInfoResponse message;
  message.mutable_limits()->set_max_solve_s(2.5);
  message.mutable_limits()->set_max_client_calls_per_s(100);
  message.mutable_limits()->set_high_priority(true);
  const ServerInfo info = FromMessage(message);
  EXPECT_EQ(info.max_solve_s, 2.5);
  EXPECT_EQ(info.max_client_calls_per_s, 100);
  EXPECT_TRUE(info.high_priority);
}

}  // namespace
}  // namespace sap::client
