// A program of a user: includes what it says it needs, solves one step in its own process and
// compares with the closed form. A gear halves the speed of a shaft: with 2 N m on the first shaft,
// 0.1 kg m^2 and 0.4 kg m^2 behind the gear, it accelerates by 2 / (0.1 + 0.4 / 4) = 10 rad/s^2.
#include <cmath>
#include <cstdio>
#include <vector>

#include "client/cpp/client.h"

using namespace sap::client;

int main() {
  constexpr double kTimeStep = 0.01;
  ProblemBuilder builder(kTimeStep);
  const Member fast = builder.AddTree(std::vector{0.1}, std::vector{2 / 0.1 * kTimeStep});
  const Member slow = builder.AddTree(std::vector{0.4}, std::vector{0.0});
  builder.AddRow({{fast, 0, 1}, {slow, 0, -2}}, {});

  auto client = Client::Connect("embedded:");
  const auto solution = client ? client->Solve(builder.Build()) : tl::unexpected(client.error());
  if (!solution) {
    std::fprintf(stderr, "%s\n", solution.error().message.c_str());
    return 1;
  }
  const double speed = solution->velocity[0];
  std::printf("fast %.3f rad/s\n", speed);
  return std::abs(speed - 0.1) < 1e-3 ? 0 : 1;
}
