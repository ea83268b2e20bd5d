// Steps of a session, and all that a client sees of their outcomes.
#pragma once

#include <string>

#include "client/cpp/session.h"
#include "client/cpp/transport/message_conversion.h"
#include "tests/support/scenes.h"
#include "tests/support/solution_bits.h"

namespace sap::test {

// The mixed scene without a guess, a little different at each step, so that a session has one.
inline client::Problem SceneAt(int step) {
  client::Problem problem = *client::FromMessage(MixedProblem());
  problem.trees.guess_velocity.clear();
  problem.bodies.guess_velocity.clear();
  problem.bodies.body_id = {10, 11};
  problem.bodies.free_motion_velocity[2] -= 0.01 * step;
  return problem;
}

inline std::string Seen(const tl::expected<client::Solution, client::Error>& outcome) {
  return outcome ? Bits(*outcome).bytes : outcome.error().message;
}

inline std::string Seen(const tl::expected<client::StepOutcome, client::Error>& outcome) {
  if (!outcome) return outcome.error().message;
  return std::to_string(outcome->step_id) + (outcome->warm_started ? " warm " : " cold ") +
         Seen(outcome->solution);
}

}  // namespace sap::test
