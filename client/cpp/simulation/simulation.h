// Simulation of rigid bodies in frictional contact. One time step:
//
//   poses -> contacts -> contact problem in compact form -> solver -> velocities -> poses
//
// The solver is a function of the caller, as a step of a session. The velocities of a step are the
// guess of the next. Bodies at rest may be left out of the steps (client/cpp/resting_islands.h):
// contacts among them are not looked for, and every horizon they take a long step of their own.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <tl/expected.hpp>
#include <vector>

#include "client/cpp/error.h"
#include "client/cpp/problem.h"
#include "client/cpp/resting_islands.h"
#include "client/cpp/simulation/collision.h"
#include "client/cpp/simulation/dynamics.h"
#include "client/cpp/simulation/scene.h"
#include "client/cpp/solution.h"

namespace sap::simulation {

// Solves the problem of one step; an error if there is no answer. Where bodies at rest are left
// out, it asks for the certificate of rest with their horizon.
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
  int bodies{0};            // that took a step; all, where none is left out
  int long_step_bodies{0};  // that took a long step
  client::RestCounts rest;  // of this step, with what changed since the one before
};

// How long a step is, and what springs and dashpots stand for.
struct StepLength {
  double time_step{0};            // of the problem [s]
  double reference_time_step{0};  // that of ordinary steps, which is also tau_d; 0: time_step [s]
};

// Motion of a body in one step without contact. The reach includes gravity. The rotation of a
// sphere does not bring its surface nearer and is left out.
Motion MotionOfStep(const Body& body, const Vector3d& gravity, double time_step);

// Writes the problem of one step into *problem and reuses its storage. tau_d is the time step; in a
// gap it is 0, so that the gap may close within the step: v_hat_n = -phi0 / dt. A gap that stays
// open in free motion has no friction: regularized friction would act up to a distance of mu dt
// |v_t| and would hold bodies that only pass.
//
// The bodies are indices, ascending; a contact with any other body is left out.
void AssembleProblem(const Scene& scene, std::span<const int32_t> bodies,
                     const ContactSet& contacts, const StepLength& step, client::Problem* problem);
// The problem of all bodies.
void AssembleProblem(const Scene& scene, const ContactSet& contacts, double time_step,
                     client::Problem* problem);

class Simulation {
 public:
  // time_step > 0 [s]. With `resting`, of the same time step, bodies at rest are left out.
  Simulation(Scene scene, double time_step, StepSolver solver,
             std::optional<client::RestingIslands> resting = std::nullopt);

  // Takes one step. After an error bodies that are awake are unchanged; the next call goes on.
  tl::expected<StepStatistics, client::Error> Step();

  // Sets the velocity of a body, which wakes with its island.
  void SetVelocity(int body, const Velocity& velocity);

  double time_step() const { return time_step_; }
  int steps_done() const { return steps_done_; }
  const Scene& scene() const { return scene_; }  // with the current state of the bodies
  // Contacts of the last step, without those among resting bodies.
  const ContactSet& contacts() const { return contacts_; }
  // The island of each body in the last step that it took, -1 without contact. Islands at rest have
  // numbers of their own.
  std::vector<int32_t> IslandOfBody() const;

 private:
  bool IsAwake(size_t body) const { return rests_[body] == 0 && due_[body] == 0; }
  std::vector<int32_t> BodiesThat(bool are_due) const;
  void FindContacts();
  bool WakeTouched();
  void Apply(std::span<const client::BodyMove> moves, bool rest);
  tl::expected<void, client::Error> TakeLongSteps(StepStatistics* statistics);
  tl::expected<client::Solution, client::Error> Solve(std::span<const int32_t> bodies,
                                                      const StepLength& step,
                                                      StepStatistics* statistics);
  client::RestCounts NewCounts();

  Scene scene_;
  double time_step_;
  StepSolver solver_;
  std::optional<client::RestingIslands> resting_;
  client::RestCounts reported_;  // in statistics
  CollisionDetector collision_;
  // Whether each body rests and is not due, and whether it is due for a long step.
  std::vector<uint8_t> rests_, due_;
  std::vector<Motion> motions_;
  ContactSet contacts_;
  client::Problem problem_;
  std::vector<int32_t> island_of_body_;  // of those that are awake
  int islands_{0};                       // of the last step
  int steps_done_{0};
};

}  // namespace sap::simulation
