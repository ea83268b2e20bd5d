// Compares a recorded solution with new solutions of the same problem. Internal.
//
// An island that a deadline cut after k iterations has the iterate that a limit of k iterations
// gives. For islands cut after different numbers of iterations, the problem is solved once per
// number, and each island is compared with the run of its own limit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sap/v1/recording.pb.h"
#include "sap/v1/solution.pb.h"

namespace sap::client {

class ReplayComparison {
 public:
  // The record must have a solution and outlive this object.
  explicit ReplayComparison(const v1::RecordedSolve& record);

  // Whether the arrays of the recorded solution have matching lengths. If not, no other function
  // may be called.
  bool complete() const { return complete_; }

  // Iteration limits to solve the problem with, ascending.
  const std::vector<uint32_t>& iteration_limits() const { return limits_; }

  // The solution with the next of these limits.
  void AddRun(v1::ContactSolution solution) { runs_.push_back(std::move(solution)); }

  // After all runs are added: "velocity[3] is 1.5, recorded as 1.25"; empty: no difference.
  std::string FirstDifference() const;

 private:
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
  std::vector<uint32_t> limits_;
  std::vector<v1::ContactSolution> runs_;
};

}  // namespace sap::client
