#include "client/c/tree_factorization.h"

#include <cstddef>

namespace sap {

void SolveInPlace(std::span<double> matrix, std::span<double> b) {
  const size_t n = b.size();
  for (size_t k = n; k-- > 0;) {
    const double* row_k = &matrix[k * n];
    for (size_t i = k; i-- > 0;) {
      if (row_k[i] == 0.0) continue;
      const double factor = row_k[i] / row_k[k];
      double* row_i = &matrix[i * n];
      for (size_t j = 0; j <= i; ++j) row_i[j] -= factor * row_k[j];
      b[i] -= factor * b[k];
    }
  }
  for (size_t k = 0; k < n; ++k) {
    double rest = b[k];
    for (size_t j = 0; j < k; ++j) rest -= matrix[k * n + j] * b[j];
    b[k] = rest / matrix[k * n + k];
  }
}

}  // namespace sap
