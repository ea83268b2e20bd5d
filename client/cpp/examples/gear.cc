// A motor of limited torque turns a shaft, a gear turns a second one at half the speed against dry
// friction: one time step of 10 ms from rest, three constraint rows. With 2 N m, which is all that
// the motor has, and 1 N m of friction behind the gear, the first shaft accelerates by
// (2 - 1 / 2) N m / (0.1 + 0.4 / 4) kg m^2 = 7.5 rad/s^2.
#include <cstdio>
#include <vector>

#include "client/cpp/client.h"

using namespace sap::client;

int main(int argc, char** argv) {
  constexpr double kTimeStep = 0.01;
  ProblemBuilder builder(kTimeStep);
  const Member fast = builder.AddTree(std::vector{0.1}, std::vector{0.0});  // kg m^2, rad/s
  const Member slow = builder.AddTree(std::vector{0.4}, std::vector{0.0});
  builder.AddRow({{fast, 0, 1}, {slow, 0, -2}}, {});  // the gear: an equality
  builder.AddRow({{fast, 0, 1}}, {.force_lower = -2, .force_upper = 2, .target_velocity = 100});
  builder.AddRow({{slow, 0, 1}}, {.force_lower = -1, .force_upper = 1, .slip_parameter = 1e-3});

  auto client = Client::Connect(argc > 1 ? argv[1] : "embedded:");
  const auto solution = client ? client->Solve(builder.Build()) : tl::unexpected(client.error());
  if (!solution) {
    std::fprintf(stderr, "%s: %s\n", Name(solution.error().code), solution.error().message.c_str());
    return 1;
  }
  const std::vector<double>& v = solution->velocity;
  const std::vector<double>& gamma = solution->row_impulse;
  std::printf("fast %.4f rad/s, slow %.4f rad/s\n", v[0], v[1]);
  std::printf("gear %.3f N m, motor %.3f N m, friction %.3f N m\n", gamma[0] / kTimeStep,
              gamma[1] / kTimeStep, gamma[2] / kTimeStep);
  return solution->Solved() ? 0 : 1;
}
