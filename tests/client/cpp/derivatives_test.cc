// Derivatives through the public types: over every transport, alone and in batches.
#include "client/cpp/derivatives.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <numeric>

#include "client/cpp/transport/message_conversion.h"
#include "tests/support/message_fields.h"
#include "tests/support/same_bits.h"
#include "tests/support/scenes.h"
#include "tests/support/solution_bits.h"
#include "tests/support/transports.h"

namespace sap::client {
namespace {

using testing::HasSubstr;

std::vector<Cotangent> SumOfVelocities() {
  return {{.velocity = std::vector<double>(17, 1)}, {.cost = 1}};
}

class DerivativesClientTest : public testing::TestWithParam<const char*> {
 protected:
  test::Server server_ = test::Server(GetParam(), ServerConfig());
  Client client_ = server_.Connect();
};

TEST_P(DerivativesClientTest, GradientsHaveTheSameBitsEmbeddedAndRemote) {
  auto embedded = Client::Connect("embedded:");
  ASSERT_TRUE(embedded.has_value()) << embedded.error().message;
  DifferentiateOptions options;
  options.tangents.emplace_back().time_step = 1;
  const Problem problem = test::EveryConstraint();
  const auto expected = embedded->Differentiate(problem, SumOfVelocities(), options);
  const auto derivatives = client_.Differentiate(problem, SumOfVelocities(), options);
  ASSERT_TRUE(expected.has_value()) << expected.error().message;
  ASSERT_TRUE(derivatives.has_value()) << derivatives.error().message;
  EXPECT_TRUE(derivatives->Accurate());
  EXPECT_EQ(test::Bits(derivatives->solution), test::Bits(expected->solution));
  ASSERT_EQ(derivatives->gradients.size(), 2u);
  for (int k = 0; k < 2; ++k) {
    const Gradient& gradient = derivatives->gradients[k];
    EXPECT_EQ(gradient.problem.contacts.law.friction.size(), 3u);
    EXPECT_TRUE(test::SameBits(gradient.problem.contacts.law.friction,
                               expected->gradients[k].problem.contacts.law.friction));
    EXPECT_TRUE(
        test::SameBits(gradient.problem.bodies.mass, expected->gradients[k].problem.bodies.mass));
    EXPECT_TRUE(test::SameBits(gradient.applied_impulse, expected->gradients[k].applied_impulse));
    EXPECT_TRUE(gradient.problem.contacts.jacobian.empty());  // not wanted by default
  }
  ASSERT_EQ(derivatives->tangents.size(), 1u);
  EXPECT_TRUE(test::SameBits(derivatives->tangents[0].velocity, expected->tangents[0].velocity));
  EXPECT_TRUE(test::SameBits(derivatives->kink_margin, expected->kink_margin));
}

// The sum of velocities moves along the time step as the gradient says.
TEST_P(DerivativesClientTest, BothModesAgree) {
  DifferentiateOptions options;
  options.wanted = {"time_step"};
  options.tangents.emplace_back().time_step = 1;
  const auto derivatives =
      client_.Differentiate(test::EveryConstraint(), SumOfVelocities(), options);
  ASSERT_TRUE(derivatives.has_value()) << derivatives.error().message;
  const std::vector<double>& change = derivatives->tangents[0].velocity;
  const double sum = std::accumulate(change.begin(), change.end(), 0.0);
  EXPECT_NE(sum, 0);
  EXPECT_NEAR(derivatives->gradients[0].problem.time_step, sum, 1e-10 * std::abs(sum));
  EXPECT_NEAR(derivatives->gradients[1].problem.time_step, derivatives->tangents[0].cost,
              1e-10 * std::abs(derivatives->tangents[0].cost));
}

TEST_P(DerivativesClientTest, AProblemOfABatchFailsAlone) {
  std::vector<DifferentiateRequest> requests(
      3, {.problem = test::EveryConstraint(), .cotangents = SumOfVelocities(), .options = {}});
  requests[1].cotangents[0].velocity.pop_back();
  const auto outcomes = client_.DifferentiateBatch(requests);
  const auto single = client_.Differentiate(requests[0].problem, requests[0].cotangents);
  ASSERT_TRUE(single.has_value()) << single.error().message;
  ASSERT_EQ(outcomes.size(), 3u);
  for (const int i : {0, 2}) {
    ASSERT_TRUE(outcomes[i].has_value()) << outcomes[i].error().message;
    EXPECT_TRUE(test::SameBits(outcomes[i]->gradients[0].problem.bodies.inertia,
                               single->gradients[0].problem.bodies.inertia));
  }
  ASSERT_FALSE(outcomes[1].has_value());
  EXPECT_EQ(outcomes[1].error().field, "cotangents[0].velocity");
}

TEST_P(DerivativesClientTest, ErrorsNameTheField) {
  DifferentiateOptions options;
  options.wanted = {"bodies", "bodies.weight"};
  const auto derivatives =
      client_.Differentiate(test::EveryConstraint(), SumOfVelocities(), options);
  ASSERT_FALSE(derivatives.has_value());
  EXPECT_EQ(derivatives.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(derivatives.error().field, "wanted.paths[1]");
  EXPECT_THAT(derivatives.error().message, HasSubstr("'bodies.weight'"));
}

TEST_P(DerivativesClientTest, AnExpiredDeadlineIsAnError) {
  DifferentiateOptions options;
  options.solve.deadline = std::chrono::nanoseconds(-1);
  EXPECT_EQ(client_.Differentiate(test::EveryConstraint(), {}, options).error().code,
            ErrorCode::kDeadlineExceeded);
  const std::vector<DifferentiateRequest> requests(2);
  const auto outcomes =
      client_.DifferentiateBatch(requests, {.deadline = std::chrono::nanoseconds(-1)});
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(outcomes[1].error().code, ErrorCode::kDeadlineExceeded);
}

INSTANTIATE_TEST_SUITE_P(Transports, DerivativesClientTest,
                         testing::Values("embedded:", "tcp:", "unix:"), test::TransportName);

// A number that was not given has no derivative, so it must stay absent.
TEST(DerivativesTypesTest, NumbersThatWereNotGivenAreNotSent) {
  const Problem problem;
  DifferentiateView view = ViewOf(problem, {}, {});
  view.given.sigma = false;
  v1::DifferentiateRequest request;
  ToMessage(view, &request);
  EXPECT_TRUE(request.problem().regularization().has_beta());
  EXPECT_FALSE(request.problem().regularization().has_sigma());
}

// A direction that nobody has filled changes nothing.
TEST(DerivativesTypesTest, AnEmptyDirectionIsZero) {
  v1::DifferentiateRequest request;
  DifferentiateOptions options;
  options.tangents.emplace_back();
  ToMessage(ViewOf(Problem(), {}, options), &request);
  const v1::Regularization& change = request.tangents(0).regularization();
  EXPECT_EQ(request.tangents(0).time_step(), 0);
  EXPECT_EQ(change.beta() + change.sigma() + change.row_beta() + change.stiction_speed() +
                change.reference_time_step(),
            0);
  EXPECT_EQ(request.options().relative_tolerance(), 1e-10);
}

TEST(DerivativesTypesTest, NoFieldOfAResponseIsForgotten) {
  v1::DifferentiateResponse message;
  test::FillFields(/*count=*/2, message.mutable_solution()->mutable_islands());
  message.mutable_solution()->mutable_islands()->clear_swept();
  test::FillFields(/*count=*/3, message.add_gradients()->mutable_gradient());
  v1::Regularization* numbers =
      message.mutable_gradients(0)->mutable_gradient()->mutable_regularization();
  numbers->set_rule(v1::REGULARIZATION_RULE_FULL);
  numbers->clear_preset();
  message.mutable_gradients(0)->add_applied_impulse(1);
  message.mutable_gradients(0)->add_delassus_estimate(2);
  test::FillFields(/*count=*/3, message.add_tangents());
  message.add_kink_margin(0.5);
  message.add_adjoint_status(v1::ADJOINT_STATUS_INACCURATE);
  const auto derivatives = FromMessage(message);
  ASSERT_TRUE(derivatives.has_value()) << derivatives.error().message;

  v1::ContactProblem gradient;
  ToMessage(derivatives->gradients[0].problem, &gradient);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(gradient,
                                                                 message.gradients(0).gradient()));
  EXPECT_EQ(derivatives->gradients[0].applied_impulse, std::vector<double>{1});
  EXPECT_EQ(derivatives->gradients[0].delassus_estimate, std::vector<double>{2});
  const Tangent& tangent = derivatives->tangents[0];
  v1::DifferentiateRequest back;  // whose cotangents have the fields of a tangent
  ToMessage(ViewOf(Problem(), {&tangent, 1}, {}), &back);
  EXPECT_EQ(back.cotangents(0).SerializeAsString(), message.tangents(0).SerializeAsString());
  EXPECT_EQ(derivatives->kink_margin, std::vector<double>{0.5});
  EXPECT_STREQ(Name(derivatives->adjoint_status[0]), "INACCURATE");
  EXPECT_FALSE(derivatives->Accurate());
}

}  // namespace
}  // namespace sap::client
