// A simulation through a server in another process is the embedded one, bit for bit.
#include <gtest/gtest.h>

#include <functional>

#include "client/cpp/simulation/simulation.h"
#include "tests/e2e/server_process.h"

namespace sap::test {
namespace {

using simulation::Body;
using simulation::Simulation;
using simulation::StepSolver;

// All that a step leaves behind, over a thousand steps.
std::vector<double> Trajectory(const StepSolver& solver) {
  Simulation run(*simulation::MakeScene("clutter"), 0.01, solver);
  std::vector<double> trajectory;
  for (int i = 0; i < 1000; ++i) {
    const auto step = run.Step();
    if (!step) {
      ADD_FAILURE() << "step " << i << ": " << step.error().message;
      break;
    }
    for (const Body& body : run.scene().bodies) {
      for (const auto& part : {body.position, body.velocity, body.angular_velocity}) {
        trajectory.insert(trajectory.end(), part.data(), part.data() + 3);
      }
      const Eigen::Vector4d turn = body.orientation.coeffs();
      trajectory.insert(trajectory.end(), turn.data(), turn.data() + 4);
    }
  }
  return trajectory;
}

std::vector<double> OneByOne(client::Client client) {
  return Trajectory([&](const client::Problem& problem) { return client.Solve(problem); });
}

std::vector<double> InASession(client::Client client) {
  auto session = client.OpenSession();
  EXPECT_TRUE(session.has_value()) << session.error().message;
  return Trajectory([&](const client::Problem& problem) { return session->Step(problem); });
}

client::Client Embedded(int threads) {
  return std::move(*client::Client::Connect("embedded:", {.threads = threads}));
}

TEST(ServedSimulationTest, AThousandStepsHaveTheSameBitsWhereverTheyAreSolved) {
  const TemporaryDirectory directory;
  const ServerProcess tcp({"--threads", "2"});
  const ServerProcess unix_socket(
      {"--listen", "unix:" + std::string(directory / "socket"), "--threads", "3"});
  const std::vector<double> expected = OneByOne(Embedded(1));
  EXPECT_EQ(InASession(Embedded(2)), expected);
  EXPECT_EQ(OneByOne(tcp.Connect()), expected);
  EXPECT_EQ(InASession(tcp.Connect()), expected);
  EXPECT_EQ(InASession(unix_socket.Connect()), expected);
}

}  // namespace
}  // namespace sap::test
