// A ball on a floor is pushed: one time step of 10 ms.
#include <cstdio>

#include "client/cpp/client.h"

using namespace sap::client;

int main() {
  ProblemBuilder builder(/*time_step=*/0.01);
  const Member ball = builder.AddBody({.mass = 1.0,
                                       .inertia = {0.004, 0.004, 0.004, 0, 0, 0},
                                       .center_of_mass = {0, 0, 0.1},
                                       .free_motion_velocity = {0.1, 0, -0.0981, 0, 0, 0}});
  builder.AddBodyContact(ball, kWorld, /*point=*/{0, 0, 0}, /*normal=*/{0, 0, 1},
                         {.stiffness = 1e6, .relaxation_time = 0.01, .friction = 0.5});
  auto client = Client::Connect("embedded:");  // or "127.0.0.1:50051", "unix:/run/sap.sock"
  const auto solution = client ? client->Solve(builder.Build()) : tl::unexpected(client.error());
  if (!solution) return std::fprintf(stderr, "%s\n", solution.error().message.c_str()), 1;
  std::printf("%.3f m/s, turning %.3f rad/s, pressed with %.2f N: %s\n", solution->velocity[0],
              solution->velocity[4], solution->impulse[2] / 0.01,
              Name(solution->islands[0].status));
  return solution->Solved() ? 0 : 1;
}
