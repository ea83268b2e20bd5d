#include "solver/problem/row_layout.h"

#include <numeric>

#include "solver/cholesky/dense_sizes.h"
#include "solver/problem/counting_sort.h"

namespace sap {

void RowLayout::Build(const ContactProblem& problem, const Islands& islands, ConstraintKind kind) {
  parts_.clear();
  num_full_parts_ = 0;
  dof_.clear();
  part_start_.assign(1, 0);
  couplings_.clear();
  OrderRows(problem, islands, kind);
  if (order_.empty()) return;
  island_ranges_.assign(islands.count(), IndexRange());
  for (int row = 0; row < num_rows(); ++row) {
    SplitRow(problem, islands, row);
    const int island = islands.island_of_tree()[islands.tree_of_slot()[parts_.back().slot]];
    IndexRange& range = island_ranges_[island];
    if (range.empty()) range.begin = row;
    range.end = row + 1;
  }
  ListPartsOfSlots(islands.num_slots());
  ListCouplings(
      num_rows(),
      [this](int row) {
        return IndexRange{part_start_[row], part_start_[row + 1]};
      },
      [this](int part) { return parts_[part].slot; }, &couplings_);
}

// By the first tree, then by number. Slots run island by island, so rows do.
void RowLayout::OrderRows(const ContactProblem& problem, const Islands& islands,
                          ConstraintKind kind) {
  unsorted_.clear();
  for (int row = 0; row < problem.num_rows(); ++row) {
    if (problem.row_kind()[row] == kind) unsorted_.push_back(row);
  }
  order_.clear();
  if (unsorted_.empty()) return;
  const auto first_slot = [&](int row) {
    const RowEntry& entry = problem.row_entries()[problem.row_start()[row]];
    return islands.slot_of_tree()[entry.tree];
  };
  SortByKey(unsorted_, islands.num_slots(), first_slot, &count_, &order_);
}

void RowLayout::SplitRow(const ContactProblem& problem, const Islands& islands, int row) {
  const int64_t begin = problem.row_start()[order_[row]];
  const int64_t end = problem.row_start()[order_[row] + 1];
  int tree = -1;
  for (int64_t e = begin; e < end; ++e) {
    const RowEntry& entry = problem.row_entries()[e];
    if (entry.tree != tree) {
      tree = entry.tree;
      parts_.push_back({row, islands.slot_of_tree()[tree], num_entries(), num_entries()});
    }
    dof_.push_back(entry.dof);
    parts_.back().entry_end = num_entries();
  }
  for (auto part = parts_.begin() + part_start_.back(); part != parts_.end(); ++part) {
    const int dofs = problem.dofs()[islands.tree_of_slot()[part->slot]];
    if (dofs == SixDofs() && part->entry_end - part->entry_begin >= RowPart::kFewestOfFull) {
      part->full = num_full_parts_++;
    }
  }
  part_start_.push_back(static_cast<int>(parts_.size()));
}

void RowLayout::ListPartsOfSlots(int num_slots) {
  unsorted_.resize(parts_.size());
  std::iota(unsorted_.begin(), unsorted_.end(), 0);
  const auto slot_of = [&](int part) { return parts_[part].slot; };
  SortByKey(unsorted_, num_slots, slot_of, &count_, &slot_parts_);
  slot_start_.assign(1, 0);
  slot_start_.insert(slot_start_.end(), count_.begin(), count_.end() - 1);
}

}  // namespace sap
