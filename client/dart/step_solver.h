// One step of DART as one problem: assembled, solved by one call of the C library, and handed back.
// A class of its own, on references to what DART has found, so that the solver for users and the
// preloaded one share it.
#pragma once

#include <string>

#include "client/dart/c_library.h"
#include "client/dart/constraints.h"
#include "client/dart/contacts.h"
#include "client/dart/rows.h"
#include "client/dart/sap_islands/dart.h"
#include "client/dart/trees.h"

namespace sap_islands::dart {

// Outcome of a step: solved and applied, or left to DART's own solver for a reason.
enum class Outcome { kSolved, kSoftBodies, kCoupledBounds, kRefused, kUnsolved };

class StepSolver {
 public:
  // Throws std::runtime_error if the library cannot be loaded or no server answers.
  explicit StepSolver(const Options& options);

  // Solves the constraints of all groups and applies their impulses. False if nothing was applied:
  // report().message says why, and DART's own solver can take the step. The best iterate of an
  // island that was not solved to the tolerance is applied only if `take_unsolved`.
  bool Solve(const Constraints& constraints, bool take_unsolved);
  Outcome outcome() const { return outcome_; }
  const Report& report() const { return report_; }

 private:
  bool Assemble(const Constraints& constraints);
  bool SolveProblem(double time_step);
  // Solves the problem that is assembled: in the session, or to no more than the estimates w.
  bool Call(double time_step, bool estimates_alone);
  void Count(const sap_island_reports& islands);
  void Apply();
  bool Fail(Outcome outcome, const std::string& message);

  Options options_;
  const CLibrary& library_;
  Answer answer_;
  Client client_;
  Session session_;
  Trees trees_;
  Contacts contacts_;
  Rows rows_;
  Report report_;
  Outcome outcome_ = Outcome::kSolved;
};

}  // namespace sap_islands::dart
