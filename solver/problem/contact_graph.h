// The graph of trees and contacts, laid out for the solver: contacts grouped by the pair of trees
// they touch, pairs ordered by island and tree.
//
// Trees appear by their slots (see Islands). A pair has a low and a high slot; the high one is -1
// for contacts with one tree only. The contacts of a pair are contiguous, as they share a block of
// the Hessian, and so are an island's trees, pairs and contacts. The data of a solve are gathered
// in this order once.
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
  int contact_begin;  // range of contacts in graph order
  int contact_end;
  int dofs_low;
  int dofs_high;  // 0: none
  // Of the first contact: per contact 3 x dofs_low, then 3 x dofs_high, row-major.
  int64_t jacobian_start;
  // Of H(low, high), dofs_low x dofs_high row-major; meaningless without a high tree.
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
  int pair_begin, pair_end;
  int contact_begin, contact_end;
  int64_t matrix_begin, matrix_end;  // of diagonal blocks
  int64_t block_begin, block_end;    // of off-diagonal blocks
  double cubed_dofs;                 // sum over trees: work on their matrices

  int num_trees() const { return slot_end - slot_begin; }
  int num_velocities() const { return velocity_end - velocity_begin; }
  int num_contacts() const { return contact_end - contact_begin; }
};

// A pure function of which contact touches which trees, and of their dofs. Storage only grows.
class ContactGraph {
 public:
  // Finds islands and lays out trees, pairs and contacts.
  void Build(const ContactProblem& problem, bool split_islands);

  const Islands& islands() const { return islands_; }
  std::span<const IslandRange> island_ranges() const { return island_ranges_; }

  // Trees by slot.
  int num_slots() const { return islands_.num_slots(); }
  std::span<const int> dofs() const { return dofs_; }                      // [slots]
  std::span<const int> velocity_start() const { return velocity_start_; }  // [slots + 1]
  std::span<const int64_t> matrix_start() const { return matrix_start_; }  // [slots + 1]
  // The pairs of a slot, ascending.
  std::span<const PairSide> sides_of(int slot) const {
    return std::span(sides_).subspan(side_start_[slot], side_start_[slot + 1] - side_start_[slot]);
  }

  std::span<const ContactPair> pairs() const { return pairs_; }

  // Contacts in graph order.
  int num_contacts() const { return static_cast<int>(contact_order_.size()); }
  std::span<const int> contact_order() const { return contact_order_; }  // number in the problem
  // Whether the contact's tree_a is the high tree of its pair.
  bool swapped(int contact) const { return swapped_[contact] != 0; }
  int64_t jacobian_size() const { return jacobian_size_; }
  int64_t block_size() const { return block_size_; }

 private:
  void OrderContacts(const ContactProblem& problem);
  void FindPairs(const ContactProblem& problem);
  void ListSides();
  void FindIslandRanges();

  Islands islands_;
  std::vector<IslandRange> island_ranges_;
  std::vector<int> dofs_;
  std::vector<int> velocity_start_;
  std::vector<int64_t> matrix_start_;
  std::vector<int> side_start_;
  std::vector<PairSide> sides_;
  std::vector<ContactPair> pairs_;
  std::vector<int> contact_order_;
  std::vector<uint8_t> swapped_;
  std::vector<int> count_;  // scratch of the counting sort
  std::vector<int> half_sorted_;
  int64_t jacobian_size_{0};
  int64_t block_size_{0};
};

}  // namespace sap
