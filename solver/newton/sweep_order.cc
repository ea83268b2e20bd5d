#include "solver/newton/sweep_order.h"

#include <algorithm>

#include "solver/cholesky/dense_sizes.h"

namespace sap {

void SweepOrder::Build(const ConstraintGraph& graph) {
  JoinTrees(graph);
  ListGroups(graph);
  const int num_groups = first_group_.back();
  groups_.resize(num_groups);
  color_start_.assign(1, 0);
  first_color_.assign(1, 0);
  color_of_group_.assign(num_groups, -1);
  for (int island = 0; island < graph.islands().count(); ++island) {
    next_.assign(ColorIsland(graph, island), 0);
    for (int g = first_group_[island]; g < first_group_[island + 1]; ++g) {
      ++next_[color_of_group_[g]];
    }
    for (int& next : next_) {
      const int begin = color_start_.back();
      color_start_.push_back(begin + next);
      next = begin;
    }
    for (int g = first_group_[island]; g < first_group_[island + 1]; ++g) {
      groups_[next_[color_of_group_[g]]++] = g;
    }
    first_color_.push_back(static_cast<int>(color_start_.size()) - 1);
  }
}

int SweepOrder::Root(int slot) {
  while (parent_[slot] != slot) slot = parent_[slot] = parent_[parent_[slot]];
  return slot;
}

// Trees that bilateral rows couple, in the order of the rows, while their sum stays small.
void SweepOrder::JoinTrees(const ConstraintGraph& graph) {
  parent_.resize(graph.num_slots());
  for (int slot = 0; slot < graph.num_slots(); ++slot) parent_[slot] = slot;
  group_dofs_.assign(graph.dofs().begin(), graph.dofs().end());
  const RowLayout& rows = graph.rows(ConstraintKind::kBilateralRow);
  for (int row = 0; row < rows.num_rows(); ++row) {
    const std::span<const RowPart> parts = rows.parts_of_row(row);
    for (size_t p = 1; p < parts.size(); ++p) {
      const int a = Root(parts[0].slot);
      const int b = Root(parts[p].slot);
      if (a == b || group_dofs_[a] + group_dofs_[b] > kMaxGroupDofs) continue;
      parent_[std::max(a, b)] = std::min(a, b);
      group_dofs_[std::min(a, b)] += group_dofs_[std::max(a, b)];
    }
  }
}

void SweepOrder::ListGroups(const ConstraintGraph& graph) {
  group_of_slot_.resize(graph.num_slots());
  group_start_.assign(1, 0);
  first_group_.assign(1, 0);
  for (const IslandRange& range : graph.island_ranges()) {
    for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
      const int root = Root(slot);
      if (root == slot) {
        group_of_slot_[slot] = static_cast<int>(group_start_.size()) - 1;
        group_start_.push_back(0);
      } else {
        group_of_slot_[slot] = group_of_slot_[root];
      }
      ++group_start_[group_of_slot_[slot] + 1];
    }
    first_group_.push_back(static_cast<int>(group_start_.size()) - 1);
  }
  for (size_t g = 1; g < group_start_.size(); ++g) group_start_[g] += group_start_[g - 1];
  slots_.resize(graph.num_slots());
  next_.assign(group_start_.begin(), group_start_.end());
  for (int slot = 0; slot < graph.num_slots(); ++slot) slots_[next_[group_of_slot_[slot]]++] = slot;
}

int SweepOrder::ColorIsland(const ConstraintGraph& graph, int island) {
  int colors = 0;
  taken_by_.assign(num_groups(island) + 1, -1);
  for (int g = first_group_[island]; g < first_group_[island + 1]; ++g) {
    for (const int slot : group(g).slots) {
      for (const PairSide& side : graph.sides_of(slot)) {
        const TreePair& pair = graph.pairs()[side.pair];
        const int color = color_of_group_[group_of_slot_[side.is_high ? pair.low : pair.high]];
        if (color >= 0) taken_by_[color] = g;
      }
    }
    int color = 0;
    while (taken_by_[color] == g) ++color;
    color_of_group_[g] = color;
    colors = std::max(colors, color + 1);
  }
  return colors;
}

}  // namespace sap
