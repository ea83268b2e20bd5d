// Eight boxes of 9 kg on each other for a second, in a world of gz-physics (ignition-physics 5)
// with the engine dartsim, and what the ground carries.
//
//   gz_stack PLUGIN        SAP in place of the world's solver, by the feature RetrieveWorld
//   gz_stack PLUGIN own    the world keeps its solver, which a preloaded library may replace
//
// PLUGIN: libignition-physics5-dartsim-plugin.so.
#include <sap_islands/dart.h>

#include <cmath>
#include <cstdio>
#include <dart/simulation/World.hpp>
#include <ignition/physics/FeatureList.hh>
#include <ignition/physics/ForwardStep.hh>
#include <ignition/physics/GetContacts.hh>
#include <ignition/physics/GetEntities.hh>
#include <ignition/physics/RequestEngine.hh>
#include <ignition/physics/dartsim/World.hh>
#include <ignition/physics/sdf/ConstructWorld.hh>
#include <ignition/plugin/Loader.hh>
#include <iostream>
#include <sdf/Root.hh>
#include <sdf/World.hh>
#include <string>

namespace {

namespace physics = ignition::physics;
using Features = physics::FeatureList<physics::sdf::ConstructSdfWorld, physics::ForwardStep,
                                      physics::GetContactsFromLastStepFeature,
                                      physics::GetShapeFromLink, physics::dartsim::RetrieveWorld>;
using World = physics::World3d<Features>;

std::string Box(const std::string& name, const std::string& size, double z, bool is_static) {
  const std::string geometry = "<geometry><box><size>" + size + "</size></box></geometry>";
  return "<model name='" + name + "'><static>" + (is_static ? "true" : "false") +
         "</static><pose>0 0 " + std::to_string(z) + " 0 0 0</pose><link name='link'>" +
         "<inertial><mass>9</mass><inertia><ixx>0.06</ixx><iyy>0.06</iyy><izz>0.06</izz></"
         "inertia>" +
         "</inertial><collision name='" + name + "'>" + geometry + "</collision></link></model>";
}

std::string Stack() {
  std::string text = "<?xml version='1.0'?><sdf version='1.8'><world name='stack'>";
  text += Box("ground", "5 5 1", -0.5, true);
  for (int i = 0; i < 8; ++i)
    text += Box("box" + std::to_string(i), "0.2 0.2 0.2", 0.1 + 0.2 * i, false);
  return text + "</world></sdf>";
}

// The vertical force between the ground and what stands on it, at the end of the last step.
double ForceOnGround(const World& world) {
  double force = 0;
  for (const auto& contact : world.GetContactsFromLastStep()) {
    const auto& point = contact.Get<World::ContactPoint>();
    const auto* more = contact.Query<World::ExtraContactData>();
    const bool on_ground =
        point.collision1->GetName() == "ground" || point.collision2->GetName() == "ground";
    if (more != nullptr && on_ground) force += std::abs(more->force.z());
  }
  return force;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  ignition::plugin::Loader loader;
  loader.LoadLib(argv[1]);
  const auto plugin = loader.Instantiate("ignition::physics::dartsim::Plugin");
  const auto engine = physics::RequestEngine3d<Features>::From(plugin);
  sdf::Root root;
  for (const sdf::Error& error : root.LoadSdfString(Stack())) std::cerr << error << '\n';
  if (engine == nullptr || root.WorldCount() == 0) return 1;
  const auto world = engine->ConstructWorld(*root.WorldByIndex(0));

  const sap_islands::dart::SapConstraintSolver* sap = nullptr;
  if (argc < 3) {
    auto solver = std::make_unique<sap_islands::dart::SapConstraintSolver>();
    sap = solver.get();
    world->GetDartsimWorld()->setConstraintSolver(std::move(solver));
  }

  physics::ForwardStep::Output output;
  physics::ForwardStep::State state;
  physics::ForwardStep::Input input;
  for (int step = 0; step < 1000; ++step) world->Step(output, state, input);

  if (sap != nullptr) {
    const sap_islands::dart::Report report = sap->lastReport();
    std::printf("%d contacts in %d island, %s; ", report.contacts, report.islands,
                report.solved ? "solved" : "not solved");
  }
  std::printf("the ground carries %.2f N of %.2f N\n", ForceOnGround(*world), 8 * 9 * 9.8);
}
