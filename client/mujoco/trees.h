// The kinematic trees of a model and their blocks of A.
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

  int64_t count() const { return fields_.ntree; }
  int64_t Size(int64_t tree) const { return fields_.tree_dofnum[tree]; }  // n_t
  int64_t FirstDof(int64_t tree) const { return fields_.tree_dofadr[tree]; }
  int64_t OfDof(int64_t dof) const { return fields_.dof_treeid[dof]; }
  bool InOneTree(std::span<const int32_t> dofs) const;  // of at least one dof

  // Where A_t begins in the array of all blocks, and the length of this array.
  int64_t BlockStart(int64_t tree) const { return block_start_[static_cast<size_t>(tree)]; }
  int64_t block_values() const { return block_start_.back(); }

  // Place of an entry, of two dofs of one tree, in the array of all blocks.
  int64_t Place(int64_t row, int64_t column) const;

  // Trees of the two Jacobian blocks of a contact of geoms. The first is a tree that moves, or -1
  // if both bodies are fixed. The second is a different tree that moves, or -1 if there is none.
  std::pair<int32_t, int32_t> OfContact(int64_t contact) const;

  // Whether a contact is one of geoms, not of a flex.
  bool IsOfGeoms(int64_t contact) const;

 private:
  int32_t OfGeom(int32_t geom) const { return fields_.body_treeid[fields_.geom_bodyid[geom]]; }

  const Fields& fields_;
  std::vector<int64_t> block_start_;  // [ntree + 1]
};

}  // namespace sap::mujoco
