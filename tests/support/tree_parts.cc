#include "tests/support/tree_parts.h"

#include <algorithm>

namespace sap::test {

namespace {

struct Part {
  int tree;  // of the whole
  int begin, dofs;
};

std::vector<Part> PartsOf(const ProblemArrays& whole, const std::vector<int>& sizes) {
  std::vector<Part> parts;
  size_t turn = 0;
  for (int tree = 0; tree < static_cast<int>(whole.trees.dofs.size()); ++tree) {
    const int n = static_cast<int>(whole.trees.dofs[tree]);
    for (int begin = 0; begin < n; begin += parts.back().dofs) {
      parts.push_back({tree, begin, std::min(sizes[turn++ % sizes.size()], n - begin)});
    }
  }
  return parts;
}

// Appends rows [row, row + rows) and columns [column, column + columns) of a matrix with n columns.
void AppendBlock(const double* matrix, int n, int row, int rows, int column, int columns,
                 std::vector<double>* to) {
  for (int i = row; i < row + rows; ++i) {
    to->insert(to->end(), matrix + i * n + column, matrix + i * n + column + columns);
  }
}

}  // namespace

ProblemArrays InParts(const ProblemArrays& whole, const std::vector<int>& sizes) {
  const std::vector<Part> parts = PartsOf(whole, sizes);
  const int num_trees = static_cast<int>(whole.trees.dofs.size());
  const int num_parts = static_cast<int>(parts.size());
  ProblemArrays cut = whole;
  cut.trees.dofs.clear();
  cut.trees.dynamics_matrix.clear();
  cut.trees.tree_id.clear();
  std::vector<const double*> matrix;
  const double* next = whole.trees.dynamics_matrix.data();
  for (const uint32_t n : whole.trees.dofs) {
    matrix.push_back(next);
    next += n * n;
  }
  for (int a = 0; a < num_parts; ++a) {
    const int n = static_cast<int>(whole.trees.dofs[parts[a].tree]);
    const double* A = matrix[parts[a].tree];
    cut.trees.dofs.push_back(parts[a].dofs);
    AppendBlock(A, n, parts[a].begin, parts[a].dofs, parts[a].begin, parts[a].dofs,
                &cut.trees.dynamics_matrix);
    for (int b = 0; b < a; ++b) {
      if (parts[b].tree != parts[a].tree) continue;
      cut.trees.coupled_a.push_back(a);
      cut.trees.coupled_b.push_back(b);
      AppendBlock(A, n, parts[a].begin, parts[a].dofs, parts[b].begin, parts[b].dofs,
                  &cut.trees.coupling_block);
    }
  }
  // Contacts with a Jacobian block for each part, in the order of the trees that they named.
  cut.contacts.tree_a.clear();
  cut.contacts.tree_b.clear();
  cut.contacts.jacobian.clear();
  const double* J = whole.contacts.jacobian.data();
  for (size_t i = 0; i < whole.contacts.tree_a.size(); ++i) {
    uint32_t count = 0;
    for (const int tree : {whole.contacts.tree_a[i], whole.contacts.tree_b[i]}) {
      if (tree < 0) continue;
      const int n = tree < num_trees ? static_cast<int>(whole.trees.dofs[tree]) : 6;
      for (int part = 0; part < num_parts; ++part) {
        if (parts[part].tree != tree) continue;
        cut.contacts.part_tree.push_back(part);
        AppendBlock(J, n, 0, 3, parts[part].begin, parts[part].dofs, &cut.contacts.jacobian);
        ++count;
      }
      if (tree >= num_trees) {
        cut.contacts.part_tree.push_back(num_parts + tree - num_trees);
        AppendBlock(J, n, 0, 3, 0, n, &cut.contacts.jacobian);
        ++count;
      }
      J += 3 * n;
    }
    cut.contacts.parts.push_back(count);
  }
  return cut;
}

}  // namespace sap::test
