// One problem of a batch: islands that are bit for bit those of other problems, whose answers are
// copied, and the remainder as a problem of its own, which is to be solved.
//
// No thread waits for another: an island that two threads meet at once is solved by both.
#pragma once

#include <vector>

#include "solver/parallel/storage_bytes.h"
#include "solver/problem/contact_solution.h"
#include "solver/problem/islands.h"
#include "solver/problem/problem_fields.h"
#include "solver/problem/problem_layout.h"
#include "solver/problem/solver_options.h"
#include "solver/split/shards.h"
#include "solver/split/shared_islands.h"

namespace sap {

// Storage only grows.
class IslandSharing {
 public:
  // Looks up the islands of the problem and returns the remainder: the problem itself if nothing
  // was found, or if a look at its indices and lengths shows that it will be refused. Islands with
  // coupled trees are part of it. Arrays and table must live until Complete.
  ContactProblemView Remainder(const ContactProblemView& problem, SharedIslands* shared);

  // Whether the remainder is less than the problem.
  bool found_any() const { return num_found_ > 0; }
  // Layout of the problem, if any island was found.
  const ProblemLayout& layout() const { return layout_; }
  // Forgets what was found.
  void Clear();

  // Makes the answer to the remainder that of the problem, and adds the islands that were solved to
  // the table, except those that a deadline or a cancellation kept from being solved as the options
  // ask.
  void Complete(const SolverOptions& options, ContactSolution* solution);

  size_t storage_bytes() const;

 private:
  struct Missed {
    int island;
    SharedIslands::Key key;
  };

  bool FindCandidates(const ContactProblemView& problem);
  void LookUp(const ContactProblemView& problem);
  void PlaceFound(ContactSolution* solution);

  SharedIslands* shared_{nullptr};
  ProblemLayout layout_;
  Islands islands_;
  std::vector<int> constraints_;  // contacts and rows of each island; 0 if it is not looked up
  std::vector<int> shard_of_island_;
  Shards alone_;  // each island by itself, and the trees without an island
  Shards parts_;  // the remainder, and what was found
  OwnedContactProblem arrays_;
  SharedIslands::Key key_;
  int num_found_{0};
  std::vector<const ContactSolution*> found_;  // [islands], null: not found
  std::vector<Missed> missed_;
  ContactSolution remainder_;
};

}  // namespace sap
