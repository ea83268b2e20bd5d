// The contacts of one kind, laid out for the solver: grouped by the trees they touch, groups
// ordered by island and tree.
//
// Most contacts touch one tree or two; those of deformable bodies touch one for each node. The
// contacts of a group are contiguous, as they share blocks of the Hessian, and so are an island's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "solver/parallel/storage_bytes.h"
#include "solver/problem/contact_problem.h"
#include "solver/problem/islands.h"
#include "solver/problem/part_coupling.h"

namespace sap {

// A tree of the contacts of a group.
struct ContactPart {
  int slot;
  int dofs;
  int column;  // of its first dof among those of all trees of the group
};

struct ContactGroup {
  int part_begin, part_end;  // its trees, slots ascending
  int contact_begin;         // range of contacts in the order of the layout
  int contact_end;
  int dofs;  // of all its trees
  // Where the Jacobian of the first contact starts: per contact and part the rows times the dofs of
  // the part, row-major.
  int64_t jacobian_start;
  int64_t source_start;  // for source_column()

  int num_parts() const { return part_end - part_begin; }
  int num_contacts() const { return contact_end - contact_begin; }
};

// A group seen from one of its trees.
struct ContactSide {
  int group;
  int part;
};

// Ranges of one island.
struct ContactRange {
  int group_begin{0}, group_end{0};
  int contact_begin{0}, contact_end{0};

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
  int64_t jacobian_size() const { return jacobian_size_; }
  // By the slots of their trees, compared one by one.
  std::span<const ContactGroup> groups() const { return groups_; }
  std::span<const ContactPart> parts() const { return parts_; }
  std::span<const ContactPart> parts_of(const ContactGroup& group) const {
    return parts().subspan(group.part_begin, group.num_parts());
  }
  // The column of the contact's Jacobian, as the problem has it, at which the block of a part of
  // its group begins.
  int source_column(const ContactGroup& group, int contact, int part) const {
    return source_columns_[group.source_start +
                           static_cast<int64_t>(contact - group.contact_begin) * group.num_parts() +
                           part - group.part_begin];
  }
  // The groups of a tree, ascending.
  std::span<const ContactSide> sides_of(int slot) const {
    if (order_.empty()) return {};
    return std::span(sides_).subspan(side_start_[slot], side_start_[slot + 1] - side_start_[slot]);
  }
  // Couplings of the trees of each group, sorted by pair of trees.
  std::span<const PartCoupling> couplings() const { return couplings_; }
  ContactRange island(int island) const {
    return order_.empty() ? ContactRange() : island_ranges_[island];
  }
  size_t storage_bytes() const {
    return StorageBytes(order_, groups_, parts_, source_columns_, side_start_, sides_, couplings_,
                        island_ranges_, count_, half_sorted_, lowest_slots_, sources_);
  }

 private:
  // The two lowest slots of a contact.
  struct SlotPair {
    int lowest;
    int second;  // -1: none

    bool operator==(const SlotPair&) const = default;
  };

  // A tree of one contact.
  struct Source {
    int slot;
    int column;  // of its block in the Jacobian of the problem
  };

  void FindContacts(const ContactProblem& problem, ConstraintKind kind);
  void OrderContacts(const ContactProblem& problem, const Islands& islands, ConstraintKind kind);
  void FindLowestSlots(const ContactProblem& problem, std::span<const int> slot_of_tree);
  void OrderByFurtherTrees(const ContactProblem& problem, std::span<const int> slot_of_tree);
  void ListSources(const ContactProblem& problem, std::span<const int> slot_of_tree, int contact);
  bool HasTreesOfSources(const ContactGroup& group) const;
  void FindGroups(const ContactProblem& problem, const Islands& islands, std::span<const int> dofs,
                  int num_rows);
  void StartGroup(std::span<const int> dofs, int contact, int64_t source);
  void ListSides(int num_slots);
  void FindIslandRanges(const Islands& islands);

  std::vector<int> order_;
  std::vector<ContactGroup> groups_;
  std::vector<ContactPart> parts_;
  std::vector<int> source_columns_;
  std::vector<int> side_start_;
  std::vector<ContactSide> sides_;
  std::vector<PartCoupling> couplings_;
  std::vector<ContactRange> island_ranges_;
  std::vector<int> count_;  // scratch of counting sorts
  std::vector<int> half_sorted_;
  std::vector<SlotPair> lowest_slots_;  // scratch: by number in the problem
  std::vector<Source> sources_;         // scratch: of one contact, slots ascending
  int64_t jacobian_size_{0};
};

}  // namespace sap
