// A ball pushed over a floor, 250 steps of 1 ms in one session: it slides, is slowed down by
// friction, and rolls in the end with 5/7 of the speed it began with, as a solid ball does.
#include <array>
#include <cstdio>

#include "client/cpp/client.h"

using namespace sap::client;

int main(int argc, char** argv) {
  constexpr double kTimeStep = 0.001;
  constexpr double kRadius = 0.1;
  constexpr double kMass = 1.0;
  constexpr double kInertia = 0.4 * kMass * kRadius * kRadius;
  const ContactLaw rubber{.stiffness = 1e5, .relaxation_time = kTimeStep, .friction = 0.2};

  auto client = Client::Connect(argc > 1 ? argv[1] : "embedded:");
  auto session = client ? client->OpenSession() : tl::unexpected(client.error());
  if (!session) {
    std::fprintf(stderr, "%s: %s\n", Name(session.error().code), session.error().message.c_str());
    return 1;
  }

  std::array<double, 3> position{0, 0, kRadius};
  std::array<double, 6> velocity{1.0, 0, 0, 0, 0, 0};  // pushed along x
  for (int i = 1; i <= 250; ++i) {
    ProblemBuilder builder(kTimeStep);
    RigidBody ball{.mass = kMass,
                   .inertia = {kInertia, kInertia, kInertia, 0, 0, 0},
                   .center_of_mass = position,
                   .free_motion_velocity = velocity};
    ball.free_motion_velocity[2] -= 9.81 * kTimeStep;
    ContactLaw law = rubber;
    law.signed_distance = position[2] - kRadius;
    if (law.signed_distance > 0) law.relaxation_time = 0;  // or it brakes before touch
    builder.AddBodyContact(builder.AddBody(ball), kWorld, {position[0], 0, 0}, {0, 0, 1}, law);
    Problem problem = builder.Build();
    problem.bodies.body_id = {1};  // the next step finds this velocity by the id

    const auto solution = session->Step(problem);
    if (!solution) {
      std::fprintf(stderr, "step %d: %s\n", i, solution.error().message.c_str());
      return 1;
    }
    for (int k = 0; k < 6; ++k) velocity[k] = solution->velocity[k];
    for (int k = 0; k < 3; ++k) position[k] += kTimeStep * velocity[k];
    if (i % 50 == 0) {
      std::printf("%.2f s: at %.3f m, %.3f m/s, rolling %.3f m/s\n", i * kTimeStep, position[0],
                  velocity[0], kRadius * velocity[4]);
    }
  }
  return session->Close() ? 0 : 1;
}
