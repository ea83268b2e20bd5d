// Work of a Newton iteration on the constraints of a state, by MuJoCo's solver and by this one: by
// its ratio `sap-islands run` chooses between them. Both take about as many iterations.
//
// MuJoCo factors H = M + J' D J in the order of the dofs from the last to the first, so its work
// depends on the fill of that order: it is counted by a symbolic elimination of the trees. This
// solver orders them again; the fill is estimated from the number of dofs.
#pragma once

#include <cstdint>
#include <vector>

#include "client/mujoco/python_calls.h"
#include "client/mujoco/trees.h"

namespace sap::mujoco {

class NewtonWork {
 public:
  // With more trees than this the elimination is not counted, but taken to be dense.
  static constexpr int64_t kMostTrees = 8192;
  sap_mujoco_work Count(const Fields& fields, const Trees& trees, bool is_sparse);

 private:
  void Connect(const Fields& fields, const Trees& trees, bool is_sparse, sap_mujoco_work* work);
  void ConnectTrees(double dofs, int64_t entries, sap_mujoco_work* work);
  void Eliminate(const Trees& trees, sap_mujoco_work* work);
  uint64_t* Lower(int64_t tree) { return lower_.data() + tree * words_; }

  int64_t words_ = 0;
  std::vector<uint64_t> lower_;     // [T, words] bits of the trees below that a tree is joined to
  std::vector<int32_t> row_trees_;  // of one row, ascending, each once
};

// Whether this solver is predicted to take clearly less time: what it saves in a step that it wins
// is more than it loses in one that was predicted wrongly.
bool IsSapFaster(const Fields& fields, const Trees& trees, const sap_mujoco_work& work);

}  // namespace sap::mujoco
