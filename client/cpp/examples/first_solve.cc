// Two balls on a floor, one at rest and one pushed: one time step of 10 ms.
#include <cmath>
#include <cstdio>

#include "client/cpp/client.h"

using namespace sap::client;

int main(int argc, char** argv) {
  // A ball of 1 kg with 10 cm radius. Without contact, it would have this velocity after the step.
  constexpr double kTimeStep = 0.01;
  constexpr double kFall = -9.81 * kTimeStep;
  RigidBody ball{.mass = 1.0, .inertia = {0.004, 0.004, 0.004, 0, 0, 0}};
  const ContactLaw rubber{.stiffness = 1e6, .relaxation_time = 0.01, .friction = 0.5};

  ProblemBuilder builder(kTimeStep);
  for (const double push : {0.0, 0.1}) {
    ball.center_of_mass = {10 * push, 0, 0.1};
    ball.free_motion_velocity = {push, 0, kFall, 0, 0, 0};
    const Member member = builder.AddBody(ball);
    builder.AddBodyContact(member, kWorld, {10 * push, 0, 0}, {0, 0, 1}, rubber);
  }

  // "embedded:" solves in this process; "127.0.0.1:50051" or "unix:/run/sap.sock" on a server.
  auto client = Client::Connect(argc > 1 ? argv[1] : "embedded:");
  const auto solution = client ? client->Solve(builder.Build()) : tl::unexpected(client.error());
  if (!solution) {
    std::fprintf(stderr, "%s: %s\n", Name(solution.error().code), solution.error().message.c_str());
    return 1;
  }

  const std::vector<double>& v = solution->velocity;
  const std::vector<double>& gamma = solution->impulse;
  for (int i = 0; i < 2; ++i) {
    std::printf("ball %d: %.3f m/s, turning %.3f rad/s, pressed with %.2f N, rubbed with %.2f N\n",
                i, v[6 * i], v[6 * i + 4], gamma[3 * i + 2] / kTimeStep,
                std::abs(gamma[3 * i]) / kTimeStep);
  }
  for (const auto& island : solution->islands) {
    std::printf("island of %d contact: %s\n", island.contacts, Name(island.status));
  }
  return solution->Solved() ? 0 : 1;
}
