// The state of a session: the velocities of the last solved step, by tree_id and body_id. A server
// has the same state while the stream lasts. On a new stream the first step contains it as an
// explicit guess, and its answer has the bits that the old stream would have given. Internal.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include "sap/v1/problem.pb.h"
#include "solver/problem/contact_solution.h"

namespace sap::client {

class LastVelocities {
 public:
  // Replaces the state by that after a solved step, a SolveSessionRequest. The solution needs its
  // fields `velocity`, `island_of_tree` and `islands`.
  void Remember(const grpc::ByteBuffer& step, const ContactSolution& solution);

  // Sets the guess that a server would use for the next step of the stream: for each named tree or
  // body its last velocity, for the others v*; not where the problem contains a guess. Returns
  // whether any velocity was found. Without a solved step all are v*.
  bool SetGuess(v1::ContactProblem* problem) const;

  // Whether a step was solved.
  bool known() const { return known_; }

 private:
  grpc::ByteBuffer step_;     // the names are in it; parsed only where a guess is needed
  ContactSolution solution_;  // nothing but these fields
  bool known_{false};
};

}  // namespace sap::client
