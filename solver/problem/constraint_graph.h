// The graph of trees and constraints, laid out for the solver.
//
// Trees appear by their slots (see Islands). Each kind of constraint has a layout of its own: a
// list of groups for contacts, of parts for rows. Pairs of trees with any constraint in common, or
// with a block of A, are the off-diagonal blocks of the Hessian. All of it is ordered by island, so
// that an island is a contiguous range of each array; the data of a solve are gathered in this
// order once.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "solver/parallel/storage_bytes.h"
#include "solver/problem/contact_layout.h"
#include "solver/problem/contact_problem.h"
#include "solver/problem/islands.h"
#include "solver/problem/row_layout.h"

namespace sap {

// Two trees with constraints in common, or with a block of A: a block H(low, high) of the Hessian,
// dofs_low x dofs_high row-major.
struct TreePair {
  int low, high;  // slots
  int dofs_low, dofs_high;
  int64_t block_start;
};

// A pair seen from one of its trees.
struct PairSide {
  int pair;
  bool is_high;
};

// Ranges of one island.
struct IslandRange {
  int slot_begin, slot_end;
  int velocity_begin, velocity_end;
  int pair_begin, pair_end;          // of tree pairs
  int64_t matrix_begin, matrix_end;  // of diagonal blocks
  int64_t block_begin, block_end;    // of off-diagonal blocks
  int num_contacts;
  int num_rows;
  unsigned kinds;     // bit k: it has constraints of kind k
  bool coupled;       // A has blocks between its trees
  double cubed_dofs;  // sum over trees: work on their matrices

  int num_trees() const { return slot_end - slot_begin; }
  int num_velocities() const { return velocity_end - velocity_begin; }
  int num_constraints() const { return num_contacts + num_rows; }
  bool has(ConstraintKind kind) const { return (kinds >> static_cast<int>(kind) & 1) != 0; }
};

// Trees of one island that Gauss-Seidel steps together.
struct TreeGroup {
  int number;
  std::span<const int> slots;          // ascending
  std::span<const int> group_of_slot;  // of all slots

  bool Contains(int slot) const { return group_of_slot[slot] == number; }
};

// A pure function of which constraint touches which trees, and of their dofs. Storage only grows.
class ConstraintGraph {
 public:
  // Lays out trees, pairs and constraints by the islands of the problem, or all of it as one.
  void Build(const ContactProblem& problem, bool split_islands);

  const Islands& islands() const { return islands_; }
  std::span<const IslandRange> island_ranges() const { return island_ranges_; }

  // Trees by slot.
  int num_slots() const { return islands_.num_slots(); }
  std::span<const int> dofs() const { return dofs_; }                      // [slots]
  std::span<const int> velocity_start() const { return velocity_start_; }  // [slots + 1]
  std::span<const int64_t> matrix_start() const { return matrix_start_; }  // [slots + 1]

  // Pairs of trees, by low slot, then by high slot.
  std::span<const TreePair> pairs() const { return pairs_; }
  // The pairs of a slot, ascending.
  std::span<const PairSide> sides_of(int slot) const {
    return std::span(sides_).subspan(side_start_[slot], side_start_[slot + 1] - side_start_[slot]);
  }
  int64_t block_size() const { return block_size_; }

  const ContactLayout& contacts(ConstraintKind kind) const {
    return contacts_[static_cast<int>(kind)];
  }
  const RowLayout& rows(ConstraintKind kind) const {
    return rows_[static_cast<int>(kind) - kNumContactKinds];
  }
  // Range of the couplings of two trees, in the layout of the kind.
  IndexRange couplings(ConstraintKind kind, int pair) const {
    const std::vector<IndexRange>& ranges = coupling_range_[static_cast<int>(kind)];
    return ranges.empty() ? IndexRange() : ranges[pair];
  }
  // Index of the block of A of two trees among the coupled pairs of the problem; -1: none.
  int coupled_pair(int pair) const { return coupled_pair_.empty() ? -1 : coupled_pair_[pair]; }
  size_t storage_bytes() const {
    return StorageBytes(islands_, island_ranges_, dofs_, velocity_start_, matrix_start_, contacts_,
                        rows_, pairs_, side_start_, sides_, coupling_range_, coupled_pair_,
                        coupled_slots_, count_);
  }

 private:
  // Two trees with a block of A, by slot.
  struct CoupledSlots {
    int low, high;
    int index;  // among the coupled pairs of the problem
  };

  void LayOutTrees(const ContactProblem& problem);
  std::span<const PartCoupling> CouplingsOf(int kind) const;
  void ListCoupledSlots(const ContactProblem& problem);
  void FindPairs();
  void MatchCouplings(int kind);
  void MatchCoupledPairs();
  void ListSides();
  void FindIslandRanges();
  void CountConstraints(int island);

  Islands islands_;
  std::vector<IslandRange> island_ranges_;
  std::vector<int> dofs_;
  std::vector<int> velocity_start_;
  std::vector<int64_t> matrix_start_;
  std::array<ContactLayout, kNumContactKinds> contacts_;
  std::array<RowLayout, kNumConstraintKinds - kNumContactKinds> rows_;
  std::vector<TreePair> pairs_;
  std::vector<int> side_start_;
  std::vector<PairSide> sides_;
  // By kind, per pair; empty where the kind couples no trees.
  std::array<std::vector<IndexRange>, kNumConstraintKinds> coupling_range_;
  std::vector<int> coupled_pair_;            // per pair; empty where A has no blocks between trees
  std::vector<CoupledSlots> coupled_slots_;  // scratch
  std::vector<int> count_;                   // scratch
  int64_t block_size_{0};
};

}  // namespace sap
