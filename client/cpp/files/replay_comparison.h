// Compares a recorded solution with new solutions of the same problem. Internal.
//
// An island that a deadline cut after k iterations has the iterate that a limit of k iterations
// gives. An island without a plan for lack of time was swept; the method of sweeps gives the same
// iterate. The problem is solved once per method and number of iterations, and each island is
// compared with the run of its own method and limit.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "client/cpp/solution.h"
#include "sap/v1/recording.pb.h"

namespace sap::client {

class ReplayComparison {
 public:
  // The record must have a solution and outlive this object.
  explicit ReplayComparison(const v1::RecordedSolve& record);

  // Whether the reports of the recorded islands are complete. If not, no other function may be
  // called.
  bool complete() const { return complete_; }

  // Options to solve the problem again with.
  struct Run {
    v1::NewtonMethod method;
    uint32_t iteration_limit;
  };
  const std::vector<Run>& runs() const { return runs_; }

  // The solution of the next of these runs.
  void AddRun(Solution solution) { solutions_.push_back(std::move(solution)); }

  // After all runs are added: "velocity[3] is 1.5, recorded as 1.25"; empty: no difference.
  std::string FirstDifference() const;

 private:
  void PlanRuns(v1::NewtonMethod method, bool swept);
  bool IsCut(int island) const;
  uint32_t IterationsNeeded(int island) const;
  const Solution& RunOf(int island) const;

  std::string CompareSizes() const;
  std::string CompareIslands() const;
  std::string CompareOutputs() const;

  const v1::RecordedSolve& record_;
  Solution recorded_;
  bool complete_{false};
  // Runs of islands that were not swept, then of those that were; limits ascending.
  std::vector<Run> runs_;
  size_t first_swept_run_{0};
  std::vector<Solution> solutions_;
};

}  // namespace sap::client
