// The trees of a problem and their blocks of A: the kinematic trees of a model.
//
// In a model with flexes, the vertices of a flex on a body that moves are of the tree of that body.
// Such a tree of many dofs is taken apart: its leaves, chains of dofs that nothing hangs on, are
// trees of the problem, and so are the ranges of dofs between them. A then has blocks between them.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "client/mujoco/fields.h"

namespace sap::mujoco {

class Trees {
 public:
  explicit Trees(const Fields& fields);

  int64_t count() const { return static_cast<int64_t>(first_dof_.size()) - 1; }
  int64_t Size(int64_t tree) const { return FirstDof(tree + 1) - FirstDof(tree); }  // n_t
  int64_t FirstDof(int64_t tree) const { return first_dof_[static_cast<size_t>(tree)]; }
  int64_t OfDof(int64_t dof) const {
    return is_apart_ ? of_dof_[static_cast<size_t>(dof)] : fields_.dof_treeid[dof];
  }
  bool InOneTree(std::span<const int32_t> dofs) const;  // of at least one dof

  bool is_apart() const { return is_apart_; }  // whether a kinematic tree is several trees here

  // Where A_t begins in the array of all blocks, and the length of this array.
  int64_t BlockStart(int64_t tree) const { return block_start_[static_cast<size_t>(tree)]; }
  int64_t block_values() const { return block_start_.back(); }

  // Place of an entry, of two dofs of one tree, in the array of all blocks.
  int64_t Place(int64_t row, int64_t column) const;

  // Trees of the two Jacobian blocks of a contact of geoms, where no tree is taken apart. The first
  // is a tree that moves, or -1 if both bodies are fixed. The second is a different tree that
  // moves, or -1 if there is none.
  std::pair<int32_t, int32_t> OfContact(int64_t contact) const;

  // Whether the trees of a contact are those of its geoms.
  bool IsOfGeoms(int64_t contact) const;

 private:
  int32_t OfGeom(int32_t geom) const { return fields_.body_treeid[fields_.geom_bodyid[geom]]; }
  void TakeApart(int64_t first, int64_t end);

  const Fields& fields_;
  bool is_apart_ = false;
  std::vector<int64_t> first_dof_;    // [count + 1]
  std::vector<int64_t> block_start_;  // [count + 1]
  std::vector<int32_t> of_dof_;       // [nv], where a tree is taken apart
};

}  // namespace sap::mujoco
