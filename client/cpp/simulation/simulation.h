// Rigid bodies in frictional contact, one time step after the other:
//
//   poses -> contacts -> contact problem in the compact form of rigid bodies -> solver ->
//   velocities
//   -> poses
//
// The solver is whatever answers a contact problem: a server behind a connection or a session, or
// an embedded one. The velocities of the step before are the guess of the next.
#pragma once

#include <functional>
#include <span>
#include <tl/expected.hpp>
#include <vector>

#include "client/cpp/error.h"
#include "client/cpp/problem.h"
#include "client/cpp/simulation/collision.h"
#include "client/cpp/simulation/scene.h"
#include "client/cpp/solution.h"

namespace sap::simulation {

// Answers the problem of one step, or says why there is no answer.
using StepSolver =
    std::function<tl::expected<client::Solution, client::Error>(const client::Problem& problem)>;

// What a step was like.
struct StepStatistics {
  int step{0};
  int contacts{0};
  int islands{0};
  int largest_island_dofs{0};
  int iterations{0};              // largest of all islands
  double iterations_weighted{0};  // mean over islands, weighted by their dofs
  double collision_s{0};
  double solve_s{0};         // on the server: finding islands and solving them
  double round_trip_s{0};    // of the call
  double momentum_error{0};  // largest momentum residual of all islands [-]
  double penetration{0};     // largest at the beginning of the step [m]
  double kinetic_energy{0};  // at the end of the step [J]
  int failed_islands{0};     // neither converged nor stalled at round-off
  SolveStatus worst_status{SolveStatus::kConverged};
};

// What a body does in a step unless others push it: its way, and how far any of its points may
// come. Gravity acts for the step, and a sphere comes no nearer by turning.
Motion MotionOfStep(const Body& body, const Vector3d& gravity, double time_step);

// The problem of one step into *problem, reusing its storage. tau_d is the time step, and 0 where
// nothing touches yet: a gap may close within the step, so that v_hat_n = -phi0 / dt. A gap that
// the free motion leaves open has no friction: regularized friction acts up to mu dt |v_t| away,
// and would hold what only passes.
void AssembleProblem(const Scene& scene, const ContactSet& contacts, double time_step,
                     client::Problem* problem);

class Simulation {
 public:
  // time_step > 0 [s].
  Simulation(Scene scene, double time_step, StepSolver solver);

  // One step. After an error the bodies are as before it.
  tl::expected<StepStatistics, client::Error> Step();

  double time_step() const { return time_step_; }
  int steps_done() const { return steps_done_; }
  const Scene& scene() const { return scene_; }  // with the bodies as they are now
  // Of the step before: contacts, and the island of each body, -1 without contact.
  const ContactSet& contacts() const { return contacts_; }
  std::span<const int32_t> island_of_body() const { return island_of_body_; }

 private:
  Scene scene_;
  double time_step_;
  StepSolver solver_;
  CollisionDetector collision_;
  std::vector<Motion> motions_;
  ContactSet contacts_;
  client::Problem problem_;
  std::vector<int32_t> island_of_body_;
  int steps_done_{0};
};

}  // namespace sap::simulation
