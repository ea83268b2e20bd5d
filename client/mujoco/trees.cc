#include "client/mujoco/trees.h"

#include <algorithm>

namespace sap::mujoco {

Trees::Trees(const Fields& fields)
    : fields_(fields), block_start_(static_cast<size_t>(fields.ntree) + 1) {
  int64_t place = 0;
  for (size_t tree = 0; tree + 1 < block_start_.size(); ++tree) {
    const int64_t n = fields.tree_dofnum[tree];
    place += n * n;
    block_start_[tree + 1] = place;
  }
}

bool Trees::InOneTree(std::span<const int32_t> dofs) const {
  const int64_t tree = OfDof(dofs.front());
  return std::ranges::all_of(dofs, [&](int32_t dof) { return OfDof(dof) == tree; });
}

int64_t Trees::Place(int64_t row, int64_t column) const {
  const int64_t tree = OfDof(row);
  const int64_t first = FirstDof(tree);
  return BlockStart(tree) + (row - first) * Size(tree) + column - first;
}

bool Trees::IsOfGeoms(int64_t contact) const {
  const int32_t* geom = fields_.contact_geom(contact);
  return geom[0] >= 0 && geom[1] >= 0;
}

std::pair<int32_t, int32_t> Trees::OfContact(int64_t contact) const {
  const int32_t* geom = fields_.contact_geom(contact);
  const int32_t a = OfGeom(geom[0]);
  const int32_t b = OfGeom(geom[1]);
  if (a < 0) return {b, -1};
  return {a, a == b ? -1 : b};
}

}  // namespace sap::mujoco
