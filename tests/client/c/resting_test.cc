// Bodies at rest through the C interface: the class itself is tested in
// tests/client/cpp/resting_islands_test.cc.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/client/c/c_objects.h"

namespace sap::test {
namespace {

constexpr double kStep = 0.01;
constexpr double kGravity = 9.81;

// An empty struct of the interface.
template <typename Struct>
Struct Sized() {
  Struct sized{};
  sized.struct_size = sizeof sized;
  return sized;
}

using Resting = Owned<sap_resting, sap_resting_free>;

sap_rest_rules Rules(double horizon = 2 * kStep) {
  return {.struct_size = sizeof(sap_rest_rules),
          .horizon = horizon,
          .tolerance = 1e-4,
          .time_step = kStep};
}

Resting Make() {
  const Answer answer;
  const sap_rest_rules rules = Rules();
  sap_resting* resting = nullptr;
  EXPECT_EQ(sap_resting_create(&rules, &resting, answer.get()), SAP_OK);
  return Resting(resting);
}

sap_doubles Array(const std::vector<double>& values) {
  return {values.data(), static_cast<int64_t>(values.size())};
}

// A ball of 1 kg on a floor, at rest on its spring: its drift is what rounding makes of it.
struct BallOnFloor {
  explicit BallOnFloor(double time_step) : free{0, 0, -kGravity * time_step, 0, 0, 0} {
    bodies.mass = Array(mass);
    bodies.inertia = Array(inertia);
    bodies.center_of_mass = Array(center);
    bodies.free_motion_velocity = Array(free);
    bodies.guess_velocity = bodies.initial_velocity = Array(zero);
    bodies.body_id = {&id, 1};
    laws.signed_distance = Array(distance);
    laws.stiffness = Array(stiffness);
    laws.relaxation_time = Array(relaxation_time);
    laws.friction = Array(friction);
    contacts.body_a = {&ball, 1};
    contacts.body_b = {&world, 1};
    contacts.point = Array(point);
    contacts.normal = Array(normal);
    contacts.laws = &laws;
    regularization.beta = &beta;
    problem.time_step = time_step;
    problem.bodies = &bodies;
    problem.body_contacts = &contacts;
    problem.regularization = &regularization;
  }
  BallOnFloor(const BallOnFloor&) = delete;
  BallOnFloor& operator=(const BallOnFloor&) = delete;

  const std::vector<double> mass{1}, inertia{0.004, 0.004, 0.004, 0, 0, 0}, center{0, 0, 0.1},
      zero{0, 0, 0, 0, 0, 0}, distance{-kGravity / 1e5}, stiffness{1e5}, relaxation_time{kStep},
      friction{0.5}, point{0, 0, 0}, normal{0, 0, 1};
  const std::vector<double> free;
  const double beta{0};
  const uint32_t id{7};
  const int32_t ball{0}, world{-1};
  sap_bodies bodies = Sized<sap_bodies>();
  sap_contact_laws laws = Sized<sap_contact_laws>();
  sap_body_contacts contacts = Sized<sap_body_contacts>();
  sap_regularization regularization = Sized<sap_regularization>();
  sap_problem problem = Sized<sap_problem>();
};

class CRestingTest : public testing::Test {
 protected:
  // Solves with the certificate, or without.
  const sap_solution* Solve(const BallOnFloor& ball, bool certified = true) {
    const double horizon = sap_resting_horizon(resting_.get());
    auto rest = Sized<sap_rest>();
    rest.horizon = &horizon;
    auto options = Sized<sap_options>();
    if (certified) options.rest = &rest;
    EXPECT_EQ(sap_solve(client_.get(), &ball.problem, &options, nullptr, solved_.get()), SAP_OK)
        << solved_.error().message;
    return solved_.solution();
  }

  int32_t TakeStep(const BallOnFloor& ball) {
    return sap_resting_take_step(resting_.get(), &ball.problem, Solve(ball), answer_.get());
  }

  // A step of nobody.
  int32_t Pass() {
    auto problem = Sized<sap_problem>();
    problem.time_step = kStep;
    auto islands = Sized<sap_island_reports>();
    auto solution = Sized<sap_solution>();
    solution.islands = &islands;
    return sap_resting_take_step(resting_.get(), &problem, &solution, answer_.get());
  }

  int32_t Island(uint32_t id) const {
    int32_t island = 0;
    EXPECT_EQ(sap_resting_islands(resting_.get(), &id, 1, &island), SAP_OK);
    return island;
  }

  sap_rest_counts Counts() const {
    auto counts = Sized<sap_rest_counts>();
    EXPECT_EQ(sap_resting_counts(resting_.get(), &counts), SAP_OK);
    return counts;
  }

  const sap_body_moves& moves() const { return *sap_answer_moves(answer_.get()); }

  Client client_{1};
  Resting resting_ = Make();
  Answer answer_, solved_;
};

TEST_F(CRestingTest, ABallAtRestIsLeftOutTakesALongStepAndWakes) {
  const BallOnFloor ball(kStep), at_end(2 * kStep);
  EXPECT_EQ(Island(7), -1);
  ASSERT_EQ(TakeStep(ball), SAP_OK) << answer_.error().message;
  ASSERT_EQ(moves().body_id.length, 1);
  EXPECT_EQ(moves().body_id.data[0], 7u);
  EXPECT_EQ(moves().resting, 1);
  EXPECT_GE(Island(7), 0);

  for (int i = 0; i < 2; ++i) ASSERT_EQ(Pass(), SAP_OK) << answer_.error().message;
  EXPECT_EQ(Pass(), SAP_FAILED_PRECONDITION);
  ASSERT_EQ(sap_resting_due(resting_.get(), answer_.get()), SAP_OK);
  ASSERT_EQ(moves().velocity.length, 6);
  EXPECT_EQ(
      sap_resting_take_long_steps(resting_.get(), &at_end.problem, Solve(at_end), answer_.get()),
      SAP_OK)
      << answer_.error().message;
  ASSERT_EQ(moves().resting, 1);
  EXPECT_NEAR(moves().duration.data[0], 2 * kStep, 1e-15);

  ASSERT_EQ(Pass(), SAP_OK);
  const uint32_t id = 7;
  ASSERT_EQ(sap_resting_wake(resting_.get(), &id, 1, SAP_WAKE_INPUT, answer_.get()), SAP_OK);
  EXPECT_EQ(moves().resting, 0);
  ASSERT_EQ(moves().duration.length, 1);
  EXPECT_NEAR(moves().duration.data[0], kStep, 1e-15);
  EXPECT_EQ(Island(7), -1);
  EXPECT_EQ(Counts().woken_by_input, 1);
  EXPECT_EQ(Counts().long_steps, 1);
  EXPECT_EQ(Counts().long_steps_refused, 0);

  ASSERT_EQ(TakeStep(ball), SAP_OK);
  ASSERT_EQ(sap_resting_set_time_step(resting_.get(), kStep / 2, answer_.get()), SAP_OK);
  EXPECT_EQ(moves().body_id.length, 1);
  EXPECT_EQ(sap_resting_horizon(resting_.get()), 2 * kStep);
}

TEST_F(CRestingTest, MistakesAreNamed) {
  const BallOnFloor ball(kStep);
  EXPECT_EQ(sap_resting_take_step(resting_.get(), &ball.problem, Solve(ball, false), answer_.get()),
            SAP_INVALID_ARGUMENT);
  EXPECT_STREQ(answer_.error().field, "islands.rest_drift");
  EXPECT_EQ(sap_answer_moves(answer_.get()), nullptr);
  EXPECT_EQ(sap_resting_take_step(resting_.get(), &ball.problem, nullptr, answer_.get()),
            SAP_INVALID_ARGUMENT);
  EXPECT_STREQ(answer_.error().field, "solution");
  const uint32_t id = 7;
  EXPECT_EQ(sap_resting_wake(resting_.get(), &id, 1, 2, answer_.get()), SAP_INVALID_ARGUMENT);
  EXPECT_STREQ(answer_.error().field, "reason");
  EXPECT_EQ(sap_resting_wake(resting_.get(), nullptr, 1, 0, answer_.get()), SAP_INVALID_ARGUMENT);
  const sap_rest_rules rules = Rules(-1);
  sap_resting* resting = nullptr;
  EXPECT_EQ(sap_resting_create(&rules, &resting, answer_.get()), SAP_INVALID_ARGUMENT);
  EXPECT_STREQ(answer_.error().field, "horizon");
  EXPECT_EQ(resting, nullptr);
  EXPECT_EQ(sap_resting_create(nullptr, &resting, answer_.get()), SAP_INVALID_ARGUMENT);
  EXPECT_EQ(sap_resting_due(nullptr, answer_.get()), SAP_INVALID_ARGUMENT);
  EXPECT_EQ(sap_resting_islands(resting_.get(), nullptr, 1, nullptr), SAP_INVALID_ARGUMENT);
  EXPECT_EQ(sap_resting_horizon(nullptr), 0);
  sap_resting_free(nullptr);
}

}  // namespace
}  // namespace sap::test
