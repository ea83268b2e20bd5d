// Three rods and the ground, joined by four pins to a parallelogram on a table: 1000 steps of 1 ms.
// A motor of limited torque turns the crank against dry friction. At its limit it accelerates the
// linkage by (0.4 - 0.1) N m / 0.15 kg m^2 = 2 rad/s^2; at 1 rad/s it only carries the friction.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "client/cpp/client.h"

using namespace sap::client;

constexpr double kTimeStep = 0.001;
constexpr double kMass = 1.0;

struct Rod {
  double length;
  std::array<double, 2> center;
  double angle;
  std::array<double, 6> velocity{};
  Member member{kWorld};

  // From the center to the end of the rod, or with -1 to its beginning.
  std::array<double, 2> Arm(int end) const {
    return {end * length / 2 * std::cos(angle), end * length / 2 * std::sin(angle)};
  }
};

// Vector from the beginning of `next` to the end of `rod`, which a pin holds together.
std::array<double, 2> Gap(const Rod& rod, const Rod& next) {
  const std::array<double, 2> a = rod.Arm(1);
  const std::array<double, 2> b = next.Arm(-1);
  return {rod.center[0] + a[0] - next.center[0] - b[0],
          rod.center[1] + a[1] - next.center[1] - b[1]};
}

// The velocity of a point at r from the center is (v_x - w_z r_y, v_y + w_z r_x).
void AddPin(const Rod& rod, const Rod& next, ProblemBuilder* builder) {
  const std::array<double, 2> a = rod.Arm(1);
  const std::array<double, 2> b = next.Arm(-1);
  const std::array<double, 2> gap = Gap(rod, next);
  builder->AddRow(
      {{rod.member, 0, 1}, {rod.member, 5, -a[1]}, {next.member, 0, -1}, {next.member, 5, b[1]}},
      {.position_error = gap[0]});
  builder->AddRow(
      {{rod.member, 1, 1}, {rod.member, 5, a[0]}, {next.member, 1, -1}, {next.member, 5, -b[0]}},
      {.position_error = gap[1]});
}

int main(int argc, char** argv) {
  // In a circle: the ground, the rocker, the coupler, the crank; each begins where the last ends.
  constexpr double kRise = 0.3 * 0.8660254037844386;  // of the crank, at 60 degrees
  std::array<Rod, 4> rods{Rod{.length = 0.5, .center = {0.25, 0}, .angle = 0},
                          Rod{.length = 0.3, .center = {0.575, kRise / 2}, .angle = M_PI / 3},
                          Rod{.length = 0.5, .center = {0.4, kRise}, .angle = M_PI},
                          Rod{.length = 0.3, .center = {0.075, kRise / 2}, .angle = M_PI * 4 / 3}};
  const Rod& rocker = rods[1];
  const Rod& crank = rods[3];

  auto client = Client::Connect(argc > 1 ? argv[1] : "embedded:");
  auto session = client ? client->OpenSession() : tl::unexpected(client.error());
  if (!session) {
    std::fprintf(stderr, "%s: %s\n", Name(session.error().code), session.error().message.c_str());
    return 1;
  }

  double largest_gap = 0;
  for (int step = 1; step <= 1000; ++step) {
    ProblemBuilder builder(kTimeStep);
    for (int i = 1; i < 4; ++i) {
      Rod& rod = rods[i];
      const double inertia = kMass * rod.length * rod.length / 12;
      rod.member = builder.AddBody({.mass = kMass,
                                    .inertia = {inertia, inertia, inertia, 0, 0, 0},
                                    .center_of_mass = {rod.center[0], rod.center[1], 0},
                                    .free_motion_velocity = rod.velocity});
    }
    builder.AddRow({{crank.member, 5, 1}},  // the motor
                   {.force_lower = -0.4, .force_upper = 0.4, .target_velocity = 1});
    builder.AddRow({{crank.member, 5, 1}},  // its dry friction
                   {.force_lower = -0.1, .force_upper = 0.1, .slip_parameter = 1e-3});
    for (int i = 0; i < 4; ++i) AddPin(rods[i], rods[(i + 1) % 4], &builder);

    const auto solution = session->Step(builder.Build());
    if (!solution || !solution->Solved()) {
      std::fprintf(stderr, "step %d: %s\n", step,
                   solution ? "not solved" : solution.error().message.c_str());
      return 1;
    }
    for (int i = 1; i < 4; ++i) {
      std::copy_n(solution->velocity.begin() + 6 * (i - 1), 6, rods[i].velocity.begin());
      for (int k = 0; k < 2; ++k) rods[i].center[k] += kTimeStep * rods[i].velocity[k];
      rods[i].angle += kTimeStep * rods[i].velocity[5];
    }
    for (int i = 0; i < 4; ++i) {
      const std::array<double, 2> gap = Gap(rods[i], rods[(i + 1) % 4]);
      largest_gap = std::max(largest_gap, std::hypot(gap[0], gap[1]));
    }
    if (step % 200 == 0) {
      std::printf("%.1f s: crank %.3f rad/s, rocker %.3f rad/s, motor %.3f N m\n", step * kTimeStep,
                  crank.velocity[5], rocker.velocity[5], solution->row_impulse[0] / kTimeStep);
    }
  }
  std::printf("pins within %.1f um\n", 1e6 * largest_gap);
  return session->Close() ? 0 : 1;
}
