// Compares a recorded solution with new solutions of the same problem. Internal.
//
// An island that a deadline cut after k iterations has the iterate that a limit of k iterations
// gives. An island without a plan for lack of time was swept; the method of sweeps gives the same
// iterate. The problem is solved once per method and number of iterations, and each island is
// compared with the run of its own method and limit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sap/v1/recording.pb.h"
#include "sap/v1/solution.pb.h"
#include "sap/v1/solver_service.pb.h"

namespace sap::client {

class ReplayComparison {
 public:
  // The record must have a solution and outlive this object.
  explicit ReplayComparison(const v1::RecordedSolve& record);

  // Whether the arrays of the recorded solution have matching lengths. If not, no other function
  // may be called.
  bool complete() const { return complete_; }

  // Options to solve the problem again with.
  struct Run {
    v1::NewtonMethod method;
    uint32_t iteration_limit;
  };
  const std::vector<Run>& runs() const { return runs_; }

  // The solution of the next of these runs.
  void AddRun(v1::ContactSolution solution) { solutions_.push_back(std::move(solution)); }

  // After all runs are added: "velocity[3] is 1.5, recorded as 1.25"; empty: no difference.
  std::string FirstDifference() const;

 private:
  void PlanRuns(v1::NewtonMethod method, bool swept);
  bool IsSwept(int island) const;
  bool IsCut(int island) const;
  uint32_t IterationsNeeded(int island) const;
  const v1::ContactSolution& RunOf(int island) const;
  const v1::ContactSolution& RunOfContact(int i) const;

  std::string CompareSizes() const;
  std::string CompareIslands() const;
  std::string CompareVelocities() const;
  std::string CompareContacts() const;
  std::string CompareAngularImpulses() const;
  std::string CompareRows() const;

  const v1::RecordedSolve& record_;
  const v1::ContactSolution& solution_;
  bool complete_;
  std::vector<int> first_trees_;  // of each contact by Jacobian
  // Runs of islands that were not swept, then of those that were; limits ascending.
  std::vector<Run> runs_;
  size_t first_swept_run_{0};
  std::vector<v1::ContactSolution> solutions_;
};

}  // namespace sap::client
