// Rigid bodies in frictional contact, one time step after the other:
//
//   poses -> contacts -> contact problem in the compact form of rigid bodies -> solver ->
//   velocities
//   -> poses
//
// The solver is whatever answers a contact problem: a server behind a connection, an embedded one,
// or the library itself. The velocities of the step before are the guess of the next.
#pragma once

#include <functional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "client/cpp/simulation/collision.h"
#include "client/cpp/simulation/scene.h"
#include "solver/contact_problem.h"
#include "solver/contact_solution.h"

namespace sap::simulation {

// Answers the problem of one step, or says why there is no answer. The view is valid during the
// call.
using StepSolver =
    std::function<tl::expected<ContactSolution, std::string>(const ContactProblemView& problem)>;

// What a step was like.
struct StepStatistics {
  int step{0};
  double time_s{0};  // at the end of the step
  int contacts{0};
  int islands{0};
  int largest_island_dofs{0};
  int iterations{0};              // largest of all islands
  double iterations_weighted{0};  // mean over islands, weighted by their dofs
  double solve_s{0};              // by the solver's own clock
  double round_trip_s{0};         // of the call
  double collision_s{0};
  double momentum_error{0};  // largest momentum residual of all islands [-]
  double penetration{0};     // largest at the beginning of the step [m]
  double kinetic_energy{0};  // at the end of the step [J]
  int failed_islands{0};     // neither converged nor stalled at round-off
};

// Arrays of the problem of one step, reused from step to step.
class BodyProblem {
 public:
  // Reads the bodies and points at the contacts, which have to stay until the view is used.
  void Assemble(std::span<const Body> bodies, const Vector3d& gravity, const Material& material,
                double time_step, const ContactSet& contacts);

  const ContactProblemView& view() const { return view_; }

 private:
  std::vector<double> mass_;
  std::vector<double> inertia_;
  std::vector<double> center_of_mass_;
  std::vector<double> free_motion_velocity_;
  std::vector<double> guess_velocity_;
  std::vector<uint32_t> body_id_;
  std::vector<double> stiffness_;
  std::vector<double> relaxation_time_;
  std::vector<double> friction_;
  ContactProblemView view_;
};

class Simulation {
 public:
  Simulation(Scene scene, double time_step, StepSolver solver);

  // One step. After an error the bodies are as before it.
  tl::expected<StepStatistics, std::string> Step();

  double time_step() const { return time_step_; }
  int steps_done() const { return steps_done_; }
  const Scene& scene() const { return scene_; }  // with the bodies as they are now
  // Of the step before: contacts, and the island of each body, -1 without contact.
  const ContactSet& contacts() const { return contacts_; }
  const std::vector<int32_t>& island_of_body() const { return island_of_body_; }

 private:
  Scene scene_;
  double time_step_;
  StepSolver solver_;
  CollisionDetector collision_;
  ContactSet contacts_;
  BodyProblem problem_;
  std::vector<int32_t> island_of_body_;
  int steps_done_{0};
};

}  // namespace sap::simulation
