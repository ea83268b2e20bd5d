// Who rests is known to the client alone: a session that moves to another server between two
// horizons goes on with the same bits.
#include <gtest/gtest.h>

#include "client/cpp/simulation/simulation.h"
#include "tests/client/cpp/session_steps.h"
#include "tests/support/faulty_link.h"
#include "tests/support/transports.h"

namespace sap::test {
namespace {

using simulation::Simulation;
using simulation::StepStatistics;

constexpr double kStep = 0.01;
constexpr double kHorizon = 0.05;

// Stacks that are left out at once, with tolerances as loose as that, and one that is pushed.
class RestingRun {
 public:
  explicit RestingRun(const std::string& address)
      : client_(*client::Client::Connect(address, {.reconnect_within = kLong})),
        session_(*client_.OpenSession(Options())),
        simulation_(
            *simulation::MakeScene("stacks", {.bodies = 30}), kStep,
            [this](const client::Problem& problem) { return session_.Step(problem); },
            *client::RestingIslands::Make(
                {.horizon = kHorizon, .tolerance = 1e-3, .time_step = kStep})) {}

  StepStatistics Step(int number) {
    if (number == 22) simulation_.SetVelocity(9, {{0.3, 0, 0}, {0, 0, 0}});
    const auto step = simulation_.Step();
    EXPECT_TRUE(step.has_value()) << step.error().message;
    return step.value_or(StepStatistics{});
  }

  std::vector<double> Poses() const {
    std::vector<double> numbers;
    for (const simulation::Body& body : simulation_.scene().bodies) {
      numbers.insert(numbers.end(), body.position.begin(), body.position.end());
      const auto& q = body.orientation.coeffs();
      numbers.insert(numbers.end(), q.begin(), q.end());
      numbers.insert(numbers.end(), body.velocity.begin(), body.velocity.end());
    }
    return numbers;
  }

 private:
  static client::SolveOptions Options() {
    client::SolveOptions options;
    options.solver.rest = {.horizon = kHorizon};
    return options;
  }

  client::Client client_;
  client::Session session_;
  Simulation simulation_;
};

TEST(RestingSessionTest, GoesOnAtAnotherServerBetweenTwoHorizonsWithTheSameBits) {
  Server servers[2] = {Server("tcp:", ConfigWithThreads(1)), Server("tcp:", ConfigWithThreads(1))};
  FaultyLink link(servers[0].grpc()->address());
  RestingRun moved(link.address()), whole("embedded:");
  int64_t long_steps = 0, woken = 0;
  int left_out = 0;
  for (int i = 1; i <= 60; ++i) {
    const StepStatistics step = moved.Step(i);
    whole.Step(i);
    ASSERT_EQ(moved.Poses(), whole.Poses()) << i;
    long_steps += step.rest.long_steps;
    woken += step.rest.woken_by_input;
    left_out += step.bodies < 30;
    if (i % 3 != 0) continue;
    link.Redirect(servers[i % 2].grpc()->address());
    link.Cut();
  }
  EXPECT_GT(link.connections(), 10);
  EXPECT_GT(left_out, 40);
  EXPECT_GT(long_steps, 10);
  EXPECT_EQ(woken, 1);
}

}  // namespace
}  // namespace sap::test
