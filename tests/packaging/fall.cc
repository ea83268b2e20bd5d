// A program of a user of the simulation: a sphere falls from 5 cm onto the ground and comes to rest
// on it. It compiles under the flags of its own project: ours would refuse what is unused here.
#include <cmath>
#include <cstdio>

#include "client/cpp/client.h"
#include "client/cpp/simulation/simulation.h"

// As in the library, whatever the instruction set of this program.
static_assert(alignof(Eigen::Quaterniond) == EIGEN_MAX_STATIC_ALIGN_BYTES);

static int unused;

int main() {
  using namespace sap::simulation;
  auto client = sap::client::Client::Connect("embedded:");
  auto session = client ? client->OpenSession() : tl::unexpected(client.error());
  if (!session) return 1;

  Scene scene{.planes = {Plane{}}};
  scene.bodies.push_back(MakeBody(Shape::Sphere(0.05), 1000));
  scene.bodies[0].position = {0, 0, 0.1};
  Simulation simulation(scene, 0.01, [&](const auto& problem) { return session->Step(problem); });
  for (int step = 0; step < 50; ++step) {
    const auto statistics = simulation.Step();
    if (!statistics || statistics->failed_islands > 0) return 1;
  }
  const Body& sphere = simulation.scene().bodies[0];
  std::printf("at %.3f m, %.3f m/s\n", sphere.position.z(), sphere.velocity.z());
  return std::abs(sphere.position.z() - 0.05) < 1e-4 && sphere.velocity.norm() < 1e-3 ? 0 : 1;
}
