// Two balls on a floor, one at rest and one pushed: one time step of 10 ms.
#include <cstdio>

#include "client/cpp/client.h"

using namespace sap::client;

int main() {
  ProblemBuilder builder(/*time_step=*/0.01);
  for (const double push : {0.0, 0.1}) {  // m/s, and 10 ms of gravity without contact
    const Member ball = builder.AddBody({.mass = 1.0,
                                         .inertia = {0.004, 0.004, 0.004, 0, 0, 0},
                                         .center_of_mass = {10 * push, 0, 0.1},
                                         .free_motion_velocity = {push, 0, -0.0981, 0, 0, 0}});
    builder.AddBodyContact(ball, kWorld, /*point=*/{10 * push, 0, 0}, /*normal=*/{0, 0, 1},
                           {.stiffness = 1e6, .relaxation_time = 0.01, .friction = 0.5});
  }
  auto client = Client::Connect("embedded:");  // or "127.0.0.1:50051", "unix:/run/sap.sock"
  const auto solution = client ? client->Solve(builder.Build()) : tl::unexpected(client.error());
  if (!solution) return std::fprintf(stderr, "%s\n", solution.error().message.c_str()), 1;
  for (int i = 0; i < 2; ++i) {
    std::printf("ball %d: %.3f m/s, turning %.3f rad/s, pressed with %.2f N\n", i,
                solution->velocity[6 * i], solution->velocity[6 * i + 4],
                solution->impulse[3 * i + 2] / 0.01);
  }
  std::printf("islands: %zu, %s\n", solution->islands.size(), Name(solution->islands[0].status));
  return solution->Solved() ? 0 : 1;
}
