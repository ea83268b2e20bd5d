// Simulation of rigid bodies in frictional contact. One time step:
//
//   poses -> contacts -> contact problem in compact form -> solver -> velocities -> poses
//
// The solver is a function of the caller, as a step of a session. The velocities of a step are the
// guess of the next.
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

// Solves the problem of one step; an error if there is no answer.
using StepSolver =
    std::function<tl::expected<client::Solution, client::Error>(const client::Problem& problem)>;

// Statistics of one step.
struct StepStatistics {
  int step{0};
  int contacts{0};
  int islands{0};
  int largest_island_dofs{0};
  int iterations{0};              // largest over islands
  double iterations_weighted{0};  // mean over islands, weighted by their dofs
  double collision_s{0};
  double solve_s{0};         // on the server: search for islands and solve
  double round_trip_s{0};    // of the call
  double momentum_error{0};  // largest momentum residual over islands [-]
  double penetration{0};     // largest at the start of the step [m]
  double kinetic_energy{0};  // at the end of the step [J]
  int failed_islands{0};     // neither converged nor stalled at round-off
  SolveStatus worst_status{SolveStatus::kConverged};
};

// Motion of a body in one step without contact. The reach includes gravity. The rotation of a
// sphere does not bring its surface nearer and is left out.
Motion MotionOfStep(const Body& body, const Vector3d& gravity, double time_step);

// Writes the problem of one step into *problem and reuses its storage. tau_d is the time step; in a
// gap it is 0, so that the gap may close within the step: v_hat_n = -phi0 / dt. A gap that stays
// open in free motion has no friction: regularized friction would act up to a distance of mu dt
// |v_t| and would hold bodies that only pass.
void AssembleProblem(const Scene& scene, const ContactSet& contacts, double time_step,
                     client::Problem* problem);

class Simulation {
 public:
  // time_step > 0 [s].
  Simulation(Scene scene, double time_step, StepSolver solver);

  // Takes one step. After an error the bodies are unchanged.
  tl::expected<StepStatistics, client::Error> Step();

  double time_step() const { return time_step_; }
  int steps_done() const { return steps_done_; }
  const Scene& scene() const { return scene_; }  // with the current state of the bodies
  // Contacts of the last step, and the island of each body, -1 without contact.
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
