// The contacts of one kind, laid out for the solver: grouped by the pair of trees they touch, pairs
// ordered by island and tree.
//
// A pair has a low and a high slot; the high one is -1 for contacts with one tree only. The
// contacts of a pair are contiguous, as they share a block of the Hessian, and so are an island's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "solver/problem/contact_problem.h"
#include "solver/problem/islands.h"

namespace sap {

struct ContactPair {
  int low;            // slot
  int high;           // slot, -1: none
  int contact_begin;  // range of contacts in the order of the layout
  int contact_end;
  int dofs_low;
  int dofs_high;  // 0: none
  // Of the first contact: per contact the rows times dofs_low, then the rows times dofs_high,
  // row-major.
  int64_t jacobian_start;
};

// A pair seen from one of its trees.
struct PairSide {
  int pair;
  bool is_high;
};

// Ranges of one island.
struct ContactRange {
  int pair_begin{0}, pair_end{0};
  int contact_begin{0}, contact_end{0};

  bool empty() const { return pair_begin == pair_end; }
  int num_contacts() const { return contact_end - contact_begin; }
};

// Storage only grows.
class ContactLayout {
 public:
  // Lays out the contacts of one kind, whose Jacobians have so many rows. `dofs` are by slot.
  void Build(const ContactProblem& problem, const Islands& islands, std::span<const int> dofs,
             ConstraintKind kind, int num_rows);

  int num_contacts() const { return static_cast<int>(order_.size()); }
  std::span<const int> order() const { return order_; }  // number in the problem
  // Whether the contact's tree_a is the high tree of its pair.
  bool swapped(int contact) const { return swapped_[contact] != 0; }
  int64_t jacobian_size() const { return jacobian_size_; }
  std::span<const ContactPair> pairs() const { return pairs_; }
  // The pairs of a tree, ascending.
  std::span<const PairSide> sides_of(int slot) const {
    if (order_.empty()) return {};
    return std::span(sides_).subspan(side_start_[slot], side_start_[slot + 1] - side_start_[slot]);
  }
  ContactRange island(int island) const {
    return order_.empty() ? ContactRange() : island_ranges_[island];
  }

 private:
  void FindContacts(const ContactProblem& problem, ConstraintKind kind);
  void OrderContacts(const ContactProblem& problem, const Islands& islands, ConstraintKind kind);
  void FindPairs(const ContactProblem& problem, const Islands& islands, std::span<const int> dofs,
                 int num_rows);
  void ListSides(int num_slots);
  void FindIslandRanges(const Islands& islands);

  std::vector<int> order_;
  std::vector<uint8_t> swapped_;
  std::vector<ContactPair> pairs_;
  std::vector<int> side_start_;
  std::vector<PairSide> sides_;
  std::vector<ContactRange> island_ranges_;
  std::vector<int> count_;  // scratch of counting sorts
  std::vector<int> half_sorted_;
  int64_t jacobian_size_{0};
};

}  // namespace sap
