// Limits of a problem, and why one was refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sap {

// Limits on the size of what is accepted.
struct ProblemLimits {
  int max_trees{1 << 20};     // trees and bodies
  int max_tree_dofs{1024};    // dofs of one tree
  int max_contacts{1 << 22};  // contacts and body contacts
  int max_rows{1 << 22};
  int max_row_entries{1 << 24};
  // Pairs of trees: the sum over rows of k (k - 1) / 2, k the trees of the row; the same over
  // contacts by parts; and the coupled pairs.
  int max_row_pairs{1 << 20};
  size_t max_coupled_bytes{size_t{1} << 30};  // of the factors of coupled trees
};

// Why a problem was refused: a field by its wire name, the index of the offending value (-1: the
// whole array or message), and what is wrong with it.
struct ProblemError {
  std::string field;   // "contacts.friction"
  int64_t index{-1};   // 17
  std::string reason;  // "is -0.3; it must be finite and >= 0"

  // "contacts.friction[17] is -0.3; it must be finite and >= 0"
  std::string Message() const;
};

// As messages have sizes, rounded up: "12 MiB".
std::string Mebibytes(int64_t bytes);

}  // namespace sap
