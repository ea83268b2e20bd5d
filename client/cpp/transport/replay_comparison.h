// A recorded solution against the same problem solved again. Internal.
//
// An island that a deadline cut after k iterations is the iterate that a limit of k iterations
// gives; one that was swept, because time was short, is what the method of sweeps gives. Islands
// that were cut after different numbers take a run each; every island is compared with the run that
// gives it what it had.
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
  // The record must have a solution, and outlive the comparison.
  explicit ReplayComparison(const v1::RecordedSolve& record);

  // Whether the recorded solution has arrays that fit each other; nothing else may be asked if not.
  bool complete() const { return complete_; }

  // Options to solve the problem again with.
  struct Run {
    v1::NewtonMethod method;
    uint32_t iteration_limit;
  };
  const std::vector<Run>& runs() const { return runs_; }

  // The solution of the next of these runs.
  void AddRun(v1::ContactSolution solution) { solutions_.push_back(std::move(solution)); }

  // Once all runs are there. "velocity[3] is 1.5, recorded as 1.25"; empty if there is none.
  std::string FirstDifference() const;

 private:
  void PlanRuns(v1::NewtonMethod method, bool swept);
  bool IsSwept(int island) const;
  bool IsCut(int island) const;
  uint32_t IterationsNeeded(int island) const;
  const v1::ContactSolution& RunOf(int island) const;

  std::string CompareSizes() const;
  std::string CompareIslands() const;
  std::string CompareVelocities() const;
  std::string CompareContacts() const;

  const v1::RecordedSolve& record_;
  const v1::ContactSolution& solution_;
  bool complete_;
  // Of islands that were not swept, then of those that were; limits ascending.
  std::vector<Run> runs_;
  size_t first_swept_run_{0};
  std::vector<v1::ContactSolution> solutions_;
};

}  // namespace sap::client
