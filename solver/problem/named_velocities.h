// The warm start of a session: velocities of named trees and bodies of one step, used as the guess
// of the next.
//
// The state is a function of the last solved step alone, so that whoever keeps its velocities by
// name can give them as an explicit guess and gets the same bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "solver/parallel/storage_bytes.h"
#include "solver/problem/contact_problem.h"
#include "solver/problem/contact_solution.h"

namespace sap {

// The trees and bodies of a problem.
struct NamedTrees {
  std::span<const int64_t> name;        // -1: none
  std::span<const int> velocity_start;  // [trees + 1]
  std::span<const int> dofs;
};

class NamedVelocities {
 public:
  // Stores the velocities of all named trees, except those of islands that ended with a numerical
  // failure: their velocities must not enter later steps.
  void Remember(const NamedTrees& trees, const ContactSolution& solution);

  // Puts the velocities of each named tree or body that is stored with the same number of dofs into
  // `guess`, of all velocities, except in groups to which `view` gives a guess. The trees are those
  // of the view. Returns whether there was any.
  bool FillGuess(const ContactProblemView& view, const NamedTrees& trees,
                 std::span<double> guess) const;

  void Clear() { entries_.clear(); }

  size_t storage_bytes() const { return StorageBytes(entries_, velocities_); }

  // Bytes that the velocities of a problem with these counts take here, at most.
  static int64_t BytesFor(int64_t trees, int64_t velocities) {
    constexpr int64_t kGrowth = 2;  // of entries_
    return kGrowth * trees * int64_t{sizeof(Entry)} + 2 * velocities * int64_t{sizeof(double)};
  }

 private:
  struct Entry {
    int64_t name;
    int start;  // into velocities_
    int dofs;
  };

  std::vector<Entry> entries_;  // sorted by name
  std::vector<double> velocities_;
};

}  // namespace sap
