#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cpp/client.h"
#include "client/cpp/problem.h"
#include "client/cpp/problem_file.h"
#include "client/cpp/transport/message_conversion.h"

namespace sap::client {
namespace {

using testing::DoubleEq;
using testing::DoubleNear;
using testing::ElementsAre;

constexpr ContactLaw kLaw{.stiffness = 1e4, .friction = 0.3};
// All fields with their names, so that a failure shows which differ.
std::string Text(const Problem& problem) {
  v1::ContactProblem message;
  ToMessage(problem, &message);
  return message.DebugString();
}

std::string TextOfJson(const std::string& json) {
  const auto problem = ProblemFromJson(json);
  EXPECT_TRUE(problem.has_value()) << problem.error().message;
  return problem ? Text(*problem) : "";
}

// A cart of one dof, an arm of three and a ball, whose velocities have the indices 0, 1 to 3 and 4
// to 9.
class RowBuilderTest : public testing::Test {
 protected:
  ProblemBuilder builder_{/*time_step=*/0.01};
  const Member ball_ = builder_.AddBody({.mass = 1});
  const Member cart_ = builder_.AddTree(std::vector{1.0}, std::vector{0.0});
  const Member arm_ = builder_.AddTree(std::vector<double>(9, 1.0), std::vector{0.0, 0.0, 0.0});
};

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
}

TEST(ProblemBuilderTest, ContactsOfTreesOnlyMakeNoBodyArrays) {
  ProblemBuilder builder(0.01);
  const Member cart = builder.AddTree(std::vector{1.0}, std::vector{0.0});
  builder.AddContact(cart, kWorld, std::vector<double>(3, 1.0), {}, kLaw);
  const Problem problem = builder.Build();
  EXPECT_TRUE(problem.bodies.mass.empty());
  EXPECT_TRUE(problem.body_contacts.law.surface_velocity.empty());
}

TEST(ProblemBuilderTest, ArraysThatHoldOnlyDefaultsAreEmpty) {
  ProblemBuilder builder(0.01);
  const Member cart = builder.AddTree(std::vector{1.0}, std::vector{0.0});
  const Member ball = builder.AddBody({.mass = 1});
  builder.AddContact(cart, kWorld, std::vector<double>(3, 1.0), {}, kLaw);
  builder.AddBodyContact(ball, kWorld, {0, 0, 0}, {0, 0, 1}, kLaw);
  builder.AddRow({{cart, 0, 1}}, {});
  EXPECT_EQ(Text(builder.Build()), TextOfJson(R"({"time_step": 0.01,
      "trees": {"dofs": [1], "dynamics_matrix": [1], "free_motion_velocity": [0]},
      "bodies": {"mass": [1], "inertia": [0, 0, 0, 0, 0, 0], "center_of_mass": [0, 0, 0],
                 "free_motion_velocity": [0, 0, 0, 0, 0, 0]},
      "contacts": {"tree_a": [0], "tree_b": [-1], "jacobian": [1, 1, 1], "signed_distance": [0],
                   "stiffness": [1e4], "relaxation_time": [0], "friction": [0.3]},
      "body_contacts": {"body_a": [0], "body_b": [-1], "point": [0, 0, 0], "normal": [0, 0, 1],
                        "signed_distance": [0], "stiffness": [1e4], "relaxation_time": [0],
                        "friction": [0.3]},
      "rows": {"entries": [1], "velocity_index": [0], "coefficient": [1]}})"));
}

TEST(ProblemBuilderTest, EveryParameterOfAContactIsInItsArray) {
  ProblemBuilder builder(0.01);
  const Member a = builder.AddTree(std::vector{1.0}, std::vector{0.0});
  const Member b = builder.AddTree(std::vector{1.0}, std::vector{0.0});
  const std::vector<double> jacobian{1, 2, 3}, angular_a{4, 5, 6}, angular_b{7, 8, 9};
  builder.AddContact(a, b, jacobian, jacobian,
                     {.signed_distance = 0.1,
                      .stiffness = 2e3,
                      .relaxation_time = 0.3,
                      .friction = 0.4,
                      .surface_velocity = {0.5, 0.6, 0.7},
                      .friction_2 = 0.0,
                      .torsional_friction = 0.8,
                      .rolling_friction = {0.9, 1.0},
                      .adhesion = 1.1,
                      .target_velocity = {{1.2, 1.3, 1.4}},
                      .target_angular_velocity = {1.5, 1.6, 1.7}},
                     angular_a, angular_b);
  builder.AddContact(b, kWorld, jacobian, {},
                     {.stiffness = 3e3,
                      .target_velocity = {{0, 0, 0}},
                      .hunt_crossley = {{.friction = HuntCrossleyLaw::Friction::kSimilar,
                                         .elastic_force = 2.1,
                                         .dissipation = 2.2,
                                         .lagged_normal_impulse = 2.3}}});
  builder.AddContact(a, kWorld, jacobian, {},
                     {.stiffness = 4e3, .target_velocity = {{0, 0, 0}}, .hunt_crossley = {{}}});
  EXPECT_EQ(Text(builder.Build()), TextOfJson(R"({"time_step": 0.01,
      "trees": {"dofs": [1, 1], "dynamics_matrix": [1, 1], "free_motion_velocity": [0, 0]},
      "contacts": {"tree_a": [0, 1, 0], "tree_b": [1, -1, -1],
                   "jacobian": [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3],
                   "angular_jacobian": [4, 5, 6, 7, 8, 9],
                   "signed_distance": [0.1, 0, 0],
                   "stiffness": [2e3, 3e3, 4e3],
                   "relaxation_time": [0.3, 0, 0],
                   "friction": [0.4, 0, 0],
                   "surface_velocity": [0.5, 0.6, 0.7, 0, 0, 0, 0, 0, 0],
                   "friction_2": [0, 0, 0],
                   "torsional_friction": [0.8, 0, 0],
                   "rolling_friction": [0.9, 1.0, 0, 0, 0, 0],
                   "adhesion": [1.1, 0, 0],
                   "target_velocity": [1.2, 1.3, 1.4, 0, 0, 0, 0, 0, 0],
                   "target_angular_velocity": [1.5, 1.6, 1.7],
                   "law": ["CONTACT_LAW_SAP", "CONTACT_LAW_HUNT_CROSSLEY_SIMILAR",
                           "CONTACT_LAW_HUNT_CROSSLEY_LAGGED"],
                   "hunt_crossley": {"elastic_force": [0, 2.1, 0], "dissipation": [0, 2.2, 0],
                                     "lagged_normal_impulse": [0, 2.3, 0]}}})"));
}

TEST(ProblemBuilderTest, AngularArraysHaveOnlyContactsWithAngularFriction) {
  ProblemBuilder builder(0.01);
  const Member cart = builder.AddTree(std::vector{1.0}, std::vector{0.0});
  const std::vector<double> jacobian{1, 2, 3};
  ContactLaw law = kLaw;
  for (const double rolling_friction : {0.0, 0.01, 0.0, 0.02}) {
    law.rolling_friction = {0, rolling_friction};
    law.target_angular_velocity = {rolling_friction, 0, 1};
    const std::vector<double> angular(3, rolling_friction);
    builder.AddContact(cart, kWorld, jacobian, {}, law, angular);
  }
  const Problem problem = builder.Build();
  EXPECT_THAT(problem.contacts.angular_jacobian, ElementsAre(0.01, 0.01, 0.01, 0.02, 0.02, 0.02));
  EXPECT_THAT(problem.contacts.law.target_angular_velocity, ElementsAre(0.01, 0, 1, 0.02, 0, 1));
}

// -phi0 / (dt + tau_d) = 0.02 / (0.01 + 0.03) = 0.5 m/s along the normal.
TEST(ProblemBuilderTest, BesideOthersAContactWithoutTargetGetsTheOneOfItsDistance) {
  ProblemBuilder builder(0.01);
  const Member cart = builder.AddTree(std::vector{1.0}, std::vector{0.0});
  const Member ball = builder.AddBody({.mass = 1});
  ContactLaw law{.signed_distance = -0.02, .stiffness = 1e4, .relaxation_time = 0.03};
  builder.AddContact(cart, kWorld, std::vector<double>(3, 1.0), {}, law);
  builder.AddBodyContact(ball, kWorld, {0, 0, 0}, {0.6, 0, -0.8}, law);
  law.target_velocity = {1, 2, 3};
  builder.AddContact(cart, kWorld, std::vector<double>(3, 1.0), {}, law);
  builder.AddBodyContact(ball, kWorld, {0, 0, 0}, {0, 0, 1}, law);
  const Problem problem = builder.Build();
  EXPECT_THAT(problem.contacts.law.target_velocity, ElementsAre(0, 0, DoubleEq(0.5), 1, 2, 3));
  EXPECT_THAT(problem.body_contacts.law.target_velocity,
              ElementsAre(DoubleEq(0.3), 0, DoubleEq(-0.4), 1, 2, 3));
}

TEST(ProblemBuilderTest, BesideOthersAContactWithoutSecondCoefficientHasTheFirst) {
  ProblemBuilder builder(0.01);
  const Member ball = builder.AddBody({.mass = 1});
  ContactLaw law = kLaw;
  builder.AddBodyContact(ball, kWorld, {0, 0, 0}, {0, 0, 1}, law);
  law.friction_2 = 0.7;
  builder.AddBodyContact(ball, kWorld, {0, 0, 0}, {0, 0, 1}, law);
  EXPECT_THAT(builder.Build().body_contacts.law.friction_2, ElementsAre(0.3, 0.7));
}

// The tangents of the schema: t1 = (1 + s a nx^2, s a nx ny, -s nx), s = sign(nz), a = -1/(s + nz).
// For n = (0.6, 0, 0.8) that is (1 - 0.36 / 1.8, 0, -0.6), for n = (0.6, 0, -0.8), where s = -1 and
// a = 1 / 1.8, it is (1 - 0.36 / 1.8, 0, 0.6).
TEST(ProblemBuilderTest, BesideOthersAContactWithoutTangentHasThatOfTheSchema) {
  ProblemBuilder builder(0.01);
  const Member ball = builder.AddBody({.mass = 1});
  builder.AddBodyContact(ball, kWorld, {0, 0, 0}, {0.6, 0, 0.8}, kLaw);
  builder.AddBodyContact(ball, kWorld, {0, 0, 0}, {0, 0, 1}, kLaw, {{0, 1, 0}});
  builder.AddBodyContact(ball, kWorld, {0, 0, 0}, {0.6, 0, -0.8}, kLaw);
  EXPECT_THAT(builder.Build().body_contacts.tangent,
              ElementsAre(DoubleNear(0.8, 1e-15), 0, DoubleNear(-0.6, 1e-15), 0, 1, 0,
                          DoubleNear(0.8, 1e-15), 0, DoubleNear(0.6, 1e-15)));
}

TEST_F(RowBuilderTest, TermsAreSortedByVelocityWhateverTheirOrder) {
  builder_.AddRow({{ball_, 5, 1}, {arm_, 2, 2}, {cart_, 0, 3}, {ball_, 0, 4}, {arm_, 0, 5}}, {});
  builder_.AddRow({{arm_, 1, 6}}, {});
  const Problem::Rows rows = builder_.Build().rows;
  EXPECT_THAT(rows.entries, ElementsAre(5, 1));
  EXPECT_THAT(rows.velocity_index, ElementsAre(0, 1, 3, 4, 9, 2));
  EXPECT_THAT(rows.coefficient, ElementsAre(3, 5, 2, 4, 1, 6));
}

TEST_F(RowBuilderTest, TermsOfOneVelocityAreAddedUp) {
  builder_.AddRow({{arm_, 1, 2}, {cart_, 0, 1}, {arm_, 1, 3}, {cart_, 0, -1}}, {});
  const Problem::Rows rows = builder_.Build().rows;
  EXPECT_THAT(rows.entries, ElementsAre(2));
  EXPECT_THAT(rows.velocity_index, ElementsAre(0, 2));
  EXPECT_THAT(rows.coefficient, ElementsAre(0, 5));
}

TEST_F(RowBuilderTest, TheWorldHasNoTerms) {
  builder_.AddRow({{kWorld, 3, 2}, {ball_, 2, 1}}, {});
  const Problem::Rows rows = builder_.Build().rows;
  EXPECT_THAT(rows.entries, ElementsAre(1));
  EXPECT_THAT(rows.velocity_index, ElementsAre(6));
}

// Trees that are added later move the velocities of bodies, but not the row.
TEST_F(RowBuilderTest, ARowMayComeBeforeATree) {
  builder_.AddRow({{ball_, 0, 1}}, {});
  builder_.AddTree(std::vector{1.0}, std::vector{0.0});
  EXPECT_THAT(builder_.Build().rows.velocity_index, ElementsAre(5));
}

// It is not the next member's velocity: the solver refuses the index.
TEST_F(RowBuilderTest, ADofThatAMemberDoesNotHaveIsNoVelocity) {
  for (const RowTerm& term : {RowTerm{cart_, 1, 1}, RowTerm{arm_, 3, 1}, RowTerm{arm_, -1, 1},
                              RowTerm{ball_, 6, 1}, RowTerm{{Member::Kind::kBody, 1}, 0, 1}}) {
    builder_.AddRow({term}, {});
  }
  for (const uint32_t index : builder_.Build().rows.velocity_index) EXPECT_GT(index, 1u << 31);
}

TEST_F(RowBuilderTest, EveryParameterOfARowIsInItsArray) {
  builder_.AddRow({{cart_, 0, 1}}, {.position_error = 1,
                                    .velocity_offset = 2,
                                    .stiffness = 3,
                                    .relaxation_time = 4,
                                    .force_lower = 5,
                                    .force_upper = 6,
                                    .regularization = 7,
                                    .target_velocity = 8,
                                    .delassus_estimate = 9,
                                    .slip_parameter = 10,
                                    .force_offset = 11});
  // -g_0 / (dt + tau) = -0.02 / (0.01 + 0.03).
  builder_.AddRow({{cart_, 0, 1}}, {.position_error = 0.02, .relaxation_time = 0.03});
  Problem expected = builder_.Build();
  expected.rows = ProblemFromJson(R"({"rows": {
      "entries": [1, 1], "velocity_index": [0, 0], "coefficient": [1, 1],
      "position_error": [1, 0.02], "velocity_offset": [2, 0], "stiffness": [3, "Infinity"],
      "relaxation_time": [4, 0.03], "force_lower": [5, "-Infinity"], "force_upper": [6, "Infinity"],
      "regularization": [7, 0], "target_velocity": [8, -0.5], "delassus_estimate": [9, 0],
      "slip_parameter": [10, 0], "force_offset": [11, 0]}})")
                      ->rows;
  EXPECT_EQ(Text(builder_.Build()), Text(expected));
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
