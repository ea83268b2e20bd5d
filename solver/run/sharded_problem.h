// A scene of many small islands by its indices alone, in shards for the threads of one solver. Its
// values are checked and converted shard by shard, where they are solved.
#pragma once

#include "solver/problem/islands.h"
#include "solver/problem/problem_layout.h"
#include "solver/split/neighbours.h"
#include "solver/split/shards.h"

namespace sap {

// False if the counts of the problem may be above a limit. Trees, and their couplings, have limits
// that each part of a problem is compared with.
bool IsWithin(const ProblemLimits& limits, const ContactProblemView& view);

// Storage only grows.
class ShardedProblem {
 public:
  // False if the problem is to be read as a whole: it has fewer trees in small islands than
  // `least_trees`, is above a limit, or is refused for what its indices and lengths tell. The
  // arrays must live as long as this is used.
  bool Read(const ContactProblemView& view, const ProblemLimits& limits,
            int least_trees = Neighbours::kLeastTrees);
  // Whether Read has found islands with work for several threads, in a problem that it leaves to be
  // read as a whole. Layout and islands are then those of the problem.
  bool is_large_whole() const { return is_large_whole_; }

  const ContactProblemView& view() const { return view_; }
  const ProblemLimits& limits() const { return limits_; }
  const ProblemLayout& layout() const { return layout_; }
  const Islands& islands() const { return islands_; }
  const Neighbours& neighbours() const { return neighbours_; }
  const Shards& shards() const { return shards_; }

  size_t storage_bytes() const { return StorageBytes(layout_, islands_, neighbours_, shards_); }

 private:
  ContactProblemView view_;
  ProblemLimits limits_;
  ProblemLayout layout_;
  Islands islands_;
  Neighbours neighbours_;
  Shards shards_;
  bool is_large_whole_{false};
};

}  // namespace sap
