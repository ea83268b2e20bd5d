// Bodies at rest are left out of the steps of a simulation until something moves them, so that a
// step costs as much as the moving ones. All state is at the client: any server solves any step.
//
// SolveOptions::solver.rest makes an answer bound how far each island can move within a horizon
// (rest_drift). An island within a tolerance rests: its bodies stay where they are and its contacts
// need not be found. At the end of the horizon it takes one long step, by a problem with
//
//   time_step = horizon(),  regularization.reference_time_step = time_step(),
//   initial_velocity = guess_velocity = the kept velocity
//
// Within the tolerance again it is moved by the new velocity and rests for another horizon. Else
// the step is refused: its bodies wake where they are, with the kept velocity, and stay awake for a
// horizon at least, since an unstable equilibrium has to leave the tolerance by short steps.
//
// An island wakes at once where one of its bodies comes within the margin of a body outside of it,
// or an input of its bodies changes. It is never a wall: all of it is solved. If its velocity is
// that of a long step it is first moved by the part of the horizon that has passed. The velocity of
// a short step is noise against stiff contacts and moves nothing.
//
// One step of a simulation:
//
//   for (id : resting.Due()) ...               // the long step of these, solved
//   resting.TakeLongSteps(problem, solution);  // moves those that rest on, wakes the others
//   resting.Wake(ids, WakeReason::kPair);      // and find the contacts of those that wake
//   ...                                        // the step of all that do not rest, solved
//   resting.TakeStep(problem, solution);       // some of them rest from now on
//
// The margin is at least the tolerance plus what the other body may travel in a step. Islands with
// articulated trees never rest. Exact Coulomb friction has no bound, so that nothing rests with it.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <tl/expected.hpp>
#include <unordered_map>
#include <vector>

#include "client/cpp/error.h"
#include "solver/problem/contact_solution.h"
#include "solver/problem/problem_fields.h"

namespace sap::client {

// All finite and > 0; the horizon at most 10000 time steps.
struct RestRules {
  double horizon{0.25};    // of certificates and long steps, rounded to whole time steps [s]
  double tolerance{1e-4};  // largest rest_drift of an island that rests [m]
  double time_step{0.01};  // of the other steps [s]
};

enum class WakeReason : uint8_t {
  kPair,   // a body outside of the island within the margin
  kInput,  // load, motor, target, material or gravity changed
};

// How the pose of a body follows its velocity, and the velocity that it has from now on.
struct BodyMove {
  uint32_t body_id{0};
  double duration{0};                // [s]; 0: it stays where it is
  std::array<double, 6> velocity{};  // linear, then angular, in world axes [m/s, rad/s]
};

struct LongSteps {
  std::vector<BodyMove> resting;  // bodies that rest for another horizon
  std::vector<BodyMove> woken;    // bodies of refused steps
};

// Since the beginning, in islands.
struct RestCounts {
  int64_t woken_by_pair{0};
  int64_t woken_by_input{0};
  int64_t long_steps{0};
  int64_t long_steps_refused{0};  // each wakes an island
};

// Bodies are told apart by body_id. Not thread-safe.
class RestingIslands {
 public:
  // kInvalidArgument names the rule at fault: "horizon", "tolerance", "time_step".
  static tl::expected<RestingIslands, Error> Make(const RestRules& rules);

  double horizon() const { return static_cast<double>(horizon_steps_) * time_step_; }  // [s]
  double time_step() const { return time_step_; }                                      // [s]
  double tolerance() const { return tolerance_; }                                      // [m]
  int64_t resting_bodies() const { return static_cast<int64_t>(island_of_.size()); }
  const RestCounts& counts() const { return counts_; }

  // Number of the island that the body rests in, -1: it is awake, and part of the next problem.
  // Numbers are used again once an island has woken.
  int IslandOf(uint32_t body_id) const;
  bool Rests(uint32_t body_id) const { return IslandOf(body_id) >= 0; }

  // Bodies of the islands whose horizon ends now, with their kept velocities.
  std::vector<BodyMove> Due() const;

  // Wakes the islands of the bodies, and returns all their bodies. Who is awake is passed over.
  std::vector<BodyMove> Wake(std::span<const uint32_t> body_ids, WakeReason reason);

  // Wakes all, as where gravity changes, and goes on with steps of another length > 0 [s].
  tl::expected<std::vector<BodyMove>, Error> SetTimeStep(double time_step);

  // Takes the answer to the long step of bodies that are due: whole islands, all or some of them.
  // An error changes nothing; it names the field at fault.
  tl::expected<LongSteps, Error> TakeLongSteps(const ContactProblemView& problem,
                                               const ContactSolution& solution);

  // Takes the answer to a step of all that are awake, which ends a time step. Returns the bodies
  // that rest from now on, with the velocities of the answer, by which the caller moves them with
  // all others. kFailedPrecondition while bodies are due. An error changes nothing.
  tl::expected<std::vector<BodyMove>, Error> TakeStep(const ContactProblemView& problem,
                                                      const ContactSolution& solution);

 private:
  // A set of bodies that rests.
  struct Island {
    std::vector<uint32_t> bodies{};
    std::vector<std::array<double, 6>> velocities{};
    int64_t since{0};          // steps done when its bodies were last moved
    int64_t due{0};            // steps done at the end of its horizon
    bool of_long_step{false};  // whether the velocities are
  };
  struct Answer;

  RestingIslands() = default;
  tl::expected<void, Error> SetRules(const RestRules& rules);
  tl::expected<Answer, Error> Read(const ContactProblemView& problem,
                                   const ContactSolution& solution, double time_step) const;
  tl::expected<void, Error> CheckDue(std::span<const uint32_t> body_ids) const;
  void Rest(Island island);
  Island Release(int number);
  int64_t ChooseDue() const;

  double time_step_{0};
  double tolerance_{0};
  int64_t horizon_steps_{0};
  int64_t steps_{0};
  std::vector<Island> islands_;
  std::vector<int> free_numbers_;
  std::unordered_map<uint32_t, int> island_of_;
  // Steps done from which a body of a refused long step may rest again.
  std::unordered_map<uint32_t, int64_t> awake_until_;
  // By the remainder of the step in which they are due: islands, and the number of their bodies.
  std::vector<std::set<int>> due_;
  std::vector<int64_t> due_bodies_;
  RestCounts counts_;
};

}  // namespace sap::client
