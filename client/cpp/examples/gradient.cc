// A block that slides on a table: one time step of 10 ms, friction by the law of Hunt & Crossley
// with the normal impulse of its weight. Friction takes mu g dt of its speed, so that
// d(speed)/d(mu) = -g dt; a push of 1 N s adds 1 / m. One call gives the derivatives with respect
// to every input.
#include <cstdio>
#include <vector>

#include "client/cpp/client.h"

using namespace sap::client;

int main(int argc, char** argv) {
  constexpr double kTimeStep = 0.01, kGravity = 9.81, kMass = 2.0;
  ProblemBuilder builder(kTimeStep);
  const Member block =
      builder.AddTree(std::vector{kMass, 0.0, 0.0, 0.0, kMass, 0.0, 0.0, 0.0, kMass},
                      std::vector{1.0, 0.0, -kGravity * kTimeStep});
  const std::vector<double> jacobian{1, 0, 0, 0, 1, 0, 0, 0, 1};  // axes of the contact: x, y, z
  ContactLaw law{.stiffness = 1e6, .friction = 0.3};
  law.hunt_crossley = HuntCrossleyLaw{.elastic_force = kMass * kGravity,
                                      .lagged_normal_impulse = kMass * kGravity * kTimeStep};
  builder.AddContact(block, kWorld, jacobian, {}, law);

  // L is the speed along x: dL/dv = (1, 0, 0).
  auto client = Client::Connect(argc > 1 ? argv[1] : "embedded:");
  const std::vector<Cotangent> speed{{.velocity = {1, 0, 0}}};
  const auto derivatives =
      client ? client->Differentiate(builder.Build(), speed) : tl::unexpected(client.error());
  if (!derivatives) {
    const Error& error = derivatives.error();
    std::fprintf(stderr, "%s: %s\n", Name(error.code), error.message.c_str());
    return 1;
  }
  const Gradient& gradient = derivatives->gradients[0];
  std::printf("speed            %.6f m/s\n", derivatives->solution.velocity[0]);
  std::printf("d speed/d mu     %.6f m/s\n", gradient.problem.contacts.law.friction[0]);
  std::printf("  closed form    %.6f m/s\n", -kGravity * kTimeStep);
  std::printf("d speed/d push   %.6f 1/kg\n", gradient.applied_impulse[0]);
  std::printf("  closed form    %.6f 1/kg\n", 1 / kMass);
  return derivatives->Accurate() ? 0 : 1;
}
