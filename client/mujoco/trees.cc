#include "client/mujoco/trees.h"

#include <algorithm>

namespace sap::mujoco {

namespace {

// Dofs up to which a tree stays whole: its factor is dense in any case.
constexpr int64_t kMostWhole = 60;

}  // namespace

Trees::Trees(const Fields& fields) : fields_(fields), first_dof_(1), block_start_(1) {
  for (int64_t tree = 0; tree < fields.ntree; ++tree) {
    const int64_t first = fields.tree_dofadr[tree];
    const int64_t end = first + fields.tree_dofnum[tree];
    if (fields.nflex > 0 && end - first > kMostWhole) TakeApart(first, end);
    if (first_dof_.back() < end) first_dof_.push_back(end);
  }
  is_apart_ = count() > fields.ntree;
  for (int64_t tree = 0; tree < count(); ++tree) {
    block_start_.push_back(block_start_.back() + Size(tree) * Size(tree));
    if (is_apart_)
      of_dof_.resize(static_cast<size_t>(FirstDof(tree + 1)), static_cast<int32_t>(tree));
  }
}

// Begins a tree with every leaf of a kinematic tree, and after it, where leaves have at least half
// of the dofs. A row of M ends with the dof that a dof hangs on, and its own.
void Trees::TakeApart(int64_t first, int64_t end) {
  const auto parent = [&](int64_t dof) -> int64_t {
    const int64_t last = fields_.M_rowadr[dof] + fields_.M_rownnz[dof] - 1;
    return fields_.M_rownnz[dof] > 1 ? fields_.M_colind[last - 1] : -1;
  };
  std::vector<int32_t> children(static_cast<size_t>(end - first));
  for (int64_t dof = first; dof < end; ++dof) {
    if (parent(dof) >= first) ++children[static_cast<size_t>(parent(dof) - first)];
  }
  const auto branches = [&](int64_t dof) { return children[static_cast<size_t>(dof - first)]; };
  std::vector<int64_t> begins;
  int64_t dofs_of_leaves = 0;
  for (int64_t dof = first; dof < end; ++dof) {
    if (branches(dof) > 0) continue;
    int64_t begin = dof;
    while (begin > first && parent(begin) == begin - 1 && branches(begin - 1) == 1) --begin;
    begins.push_back(begin);
    begins.push_back(dof + 1);
    dofs_of_leaves += dof + 1 - begin;
  }
  if (2 * dofs_of_leaves < end - first) return;
  for (const int64_t begin : begins) {
    if (begin > first_dof_.back()) first_dof_.push_back(begin);
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
  return !is_apart_ && geom[0] >= 0 && geom[1] >= 0;
}

std::pair<int32_t, int32_t> Trees::OfContact(int64_t contact) const {
  const int32_t* geom = fields_.contact_geom(contact);
  const int32_t a = OfGeom(geom[0]);
  const int32_t b = OfGeom(geom[1]);
  if (a < 0) return {b, -1};
  return {a, a == b ? -1 : b};
}

}  // namespace sap::mujoco
