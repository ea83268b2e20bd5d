#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cpp/client.h"
#include "client/cpp/problem.h"

namespace sap::client {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

constexpr ContactLaw kLaw{.stiffness = 1e4, .friction = 0.3};

TEST(ProblemBuilderTest, BodiesAreNumberedAfterTheTreesWhateverTheOrderOfAdding) {
  ProblemBuilder builder(0.01);
  const Member ball = builder.AddBody({.mass = 1});
  const Member cart = builder.AddTree(std::vector{1.0}, std::vector{0.0});
  const std::vector<double> cart_jacobian(3, 1.0), ball_jacobian(18, 1.0);
  builder.AddContact(ball, cart, ball_jacobian, cart_jacobian, kLaw);
  const Member rail = builder.AddTree(std::vector{2.0}, std::vector{0.0});
  builder.AddContact(rail, kWorld, cart_jacobian, {}, kLaw);
  const Problem problem = builder.Build();
  EXPECT_THAT(problem.contacts.tree_a, ElementsAre(2, 1));
  EXPECT_THAT(problem.contacts.tree_b, ElementsAre(0, -1));
  EXPECT_EQ(problem.contacts.jacobian.size(), 18u + 3u + 3u);
  EXPECT_EQ(problem.contacts.law.surface_velocity.size(), 6u);
}

TEST(ProblemBuilderTest, ContactsOfTreesOnlyMakeNoBodyArrays) {
  ProblemBuilder builder(0.01);
  const Member cart = builder.AddTree(std::vector{1.0}, std::vector{0.0});
  builder.AddContact(cart, kWorld, std::vector<double>(3, 1.0), {}, kLaw);
  const Problem problem = builder.Build();
  EXPECT_TRUE(problem.bodies.mass.empty());
  EXPECT_TRUE(problem.body_contacts.law.surface_velocity.empty());
}

// A ball of mass m that presses on the floor keeps nothing of its downward speed but what the
// stiffness lets through: v_n = -phi0 / dt of a contact that neither bounces nor sinks.
TEST(ProblemBuilderTest, ABallThatFallsOnTheFloorStops) {
  ProblemBuilder builder(0.01);
  const Member ball = builder.AddBody({.mass = 2,
                                       .inertia = {0.1, 0.1, 0.1, 0, 0, 0},
                                       .center_of_mass = {0, 0, 0.1},
                                       .free_motion_velocity = {0, 0, -1, 0, 0, 0}});
  builder.AddBodyContact(ball, kWorld, {0, 0, 0}, {0, 0, 1}, {.stiffness = 1e12, .friction = 0.5});
  auto client = Client::Connect("embedded:");
  ASSERT_TRUE(client.has_value());
  const auto solution = client->Solve(builder.Build());
  ASSERT_TRUE(solution.has_value()) << solution.error().message;
  ASSERT_TRUE(solution->Solved());
  // The near-rigid regularization gives way by R_n gamma; beta = 1 makes that 1 / (4 pi^2) of w m,
  // and here w = |J A^-1 J'|_F / 3 with J A^-1 J' = diag(1/m + r^2/I, 1/m + r^2/I, 1/m).
  const double w = std::sqrt(2 * 0.6 * 0.6 + 0.5 * 0.5) / 3;
  const double R_n = w / (4 * M_PI * M_PI);
  const double gamma_n = 1.0 / (0.5 + R_n);
  EXPECT_THAT(solution->impulse[2], DoubleNear(gamma_n, 1e-6));
  EXPECT_THAT(solution->velocity[2], DoubleNear(-1 + gamma_n / 2, 1e-6));
}

}  // namespace
}  // namespace sap::client
