// The constraint rows of one kind, laid out for the solver: sorted by island, each row split into
// the parts that belong to one tree.
//
// A row may touch any number of trees. For loops over trees there is a list of parts per slot, for
// loops over blocks of the Hessian a list of couplings, two parts of a row each, per pair of trees.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "solver/parallel/storage_bytes.h"
#include "solver/problem/contact_problem.h"
#include "solver/problem/islands.h"
#include "solver/problem/part_coupling.h"

namespace sap {

// The entries of a row that belong to one tree.
struct RowPart {
  // Fewest entries with which a part of a tree of six degrees of freedom is a full one.
  static constexpr int kFewestOfFull = 4;

  int row;
  int slot;
  int64_t entry_begin, entry_end;
  int full{-1};  // number among the full parts; -1: it is none

  bool is_full() const { return full >= 0; }
};

// Storage only grows.
class RowLayout {
 public:
  // Lays out the rows of one kind. Couplings are sorted by pair of trees.
  void Build(const ContactProblem& problem, const Islands& islands, ConstraintKind kind);

  int num_rows() const { return static_cast<int>(order_.size()); }
  int64_t num_entries() const { return static_cast<int64_t>(dof_.size()); }
  // Parts that work as a block of one row and six columns.
  int num_full_parts() const { return num_full_parts_; }
  std::span<const int> order() const { return order_; }  // number in the problem
  std::span<const RowPart> parts() const { return parts_; }
  std::span<const RowPart> parts_of_row(int row) const {
    return {parts_.data() + part_start_[row], parts_.data() + part_start_[row + 1]};
  }
  // Degree of freedom of its tree, per entry. Entries of a row are in the order of the problem.
  std::span<const int> dof() const { return dof_; }
  // Indices of the parts of a tree, ascending.
  std::span<const int> parts_of_slot(int slot) const {
    if (order_.empty()) return {};
    return {slot_parts_.data() + slot_start_[slot], slot_parts_.data() + slot_start_[slot + 1]};
  }
  std::span<const PartCoupling> couplings() const { return couplings_; }
  IndexRange island(int island) const {
    return order_.empty() ? IndexRange() : island_ranges_[island];
  }
  size_t storage_bytes() const {
    return StorageBytes(order_, parts_, part_start_, dof_, slot_parts_, slot_start_, couplings_,
                        island_ranges_, count_, unsorted_);
  }

 private:
  void OrderRows(const ContactProblem& problem, const Islands& islands, ConstraintKind kind);
  void SplitRow(const ContactProblem& problem, const Islands& islands, int row);
  void ListPartsOfSlots(int num_slots);

  std::vector<int> order_;
  std::vector<RowPart> parts_;
  std::vector<int> part_start_;
  int num_full_parts_{0};
  std::vector<int> dof_;
  std::vector<int> slot_parts_;
  std::vector<int> slot_start_;
  std::vector<PartCoupling> couplings_;
  std::vector<IndexRange> island_ranges_;
  std::vector<int> count_;  // scratch of counting sorts
  std::vector<int> unsorted_;
};

}  // namespace sap
