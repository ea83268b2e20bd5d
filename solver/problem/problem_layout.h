// Where the trees, contacts and rows of a problem are in its arrays, without a look at any value:
// what is needed to find its islands, and to take it apart by them. Reading it takes a tenth of the
// time of reading the problem.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "solver/parallel/storage_bytes.h"
#include "solver/problem/contact_problem.h"
#include "solver/problem/islands.h"

namespace sap {

// Trees and bodies, and contacts and body contacts, are numbered through.
struct ProblemLayout {
  // False if an array that is given has another length than its messages ask for, an index is out
  // of range or two names are equal: such a problem is refused, or has arrays that are not read.
  // Storage only grows.
  bool Read(const ContactProblemView& view);

  int num_trees() const { return static_cast<int>(dofs.size()); }
  int num_contacts() const { return static_cast<int>(contact_start.size()) - 1; }
  int num_rows() const { return static_cast<int>(row_start.size()) - 1; }
  JoinedTrees joined() const {
    return {num_trees(), contact_start, contact_trees, row_start, row_entries, coupled};
  }
  size_t storage_bytes() const {
    return StorageBytes(dofs, velocity_start, name, matrix_start, coupled, contact_start,
                        contact_trees, jacobian_start, angular_number, angular_start, row_start,
                        row_entries, sorted_names_);
  }

  int articulated_trees{0};           // those that are no bodies
  int jacobian_contacts{0};           // those that are no body contacts
  int num_angular{0};                 // contacts with a torsional or rolling coefficient > 0
  int jacobian_angular{0};            // those of them that are no body contacts
  std::vector<int> dofs;              // [T]
  std::vector<int> velocity_start;    // [T + 1]
  std::vector<int64_t> name;          // [T], -1: none
  std::vector<int64_t> matrix_start;  // of dynamics matrices [articulated trees + 1]
  std::vector<CoupledPair> coupled;
  int64_t coupling_block_size{0};
  std::vector<int64_t> contact_start;   // [C + 1]
  std::vector<int> contact_trees;       // of each contact, in the order of its Jacobian
  std::vector<int64_t> jacobian_start;  // [jacobian contacts + 1]
  std::vector<int> angular_number;      // of each contact; -1: it has no such coefficient
  std::vector<int64_t> angular_start;   // of angular Jacobians [jacobian angular + 1]
  std::vector<int64_t> row_start;       // [R + 1]
  std::vector<RowEntry> row_entries;

 private:
  bool ReadTrees(const ContactProblemView& view);
  bool ReadCouplings(const ContactProblemView::Trees& trees);
  bool ReadContacts(const ContactProblemView& view);
  bool ReadTreesOfContacts(const ContactProblemView::Contacts& contacts);
  void AppendContacts(std::span<const int32_t> a, std::span<const int32_t> b, int first);
  bool ReadBodyContacts(const ContactProblemView& view);
  void NumberAngular(const ContactProblemView::Law& law, int64_t first);
  bool ReadRows(const ContactProblemView::Rows& rows);
  bool ReadNames(const ContactProblemView& view);

  std::vector<int64_t> sorted_names_;  // scratch
};

}  // namespace sap
