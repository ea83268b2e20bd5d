// Positive definite block matrices to test the factorization with.
#pragma once

#include <Eigen/Dense>
#include <Eigen/SparseCore>
#include <cmath>
#include <random>
#include <vector>

#include "tests/solver/cholesky/block_patterns.h"

namespace sap::test {

// Block values in the order of the pattern.
struct BlockValues {
  std::vector<double> diagonal;
  std::vector<double> off_diagonal;
};

// Positive definite: random blocks, and a diagonal that outweighs its row.
inline BlockValues RandomValues(const PatternData& data, unsigned seed) {
  std::mt19937 random(seed);
  const auto uniform = [&] { return static_cast<double>(random()) / 2147483648.0 - 1.0; };
  BlockValues values;
  std::vector<std::vector<double>> row_sum;
  for (const int size : data.block_size) row_sum.emplace_back(size, 0.0);
  for (size_t e = 0; e < data.edge_a.size(); ++e) {
    const int a = data.edge_a[e];
    const int b = data.edge_b[e];
    for (int i = 0; i < data.block_size[a]; ++i) {
      for (int j = 0; j < data.block_size[b]; ++j) {
        const double value = uniform();
        values.off_diagonal.push_back(value);
        row_sum[a][i] += std::abs(value);
        row_sum[b][j] += std::abs(value);
      }
    }
  }
  for (int i = 0; i < data.num_blocks(); ++i) {
    const int n = data.block_size[i];
    Eigen::MatrixXd block(n, n);
    for (int r = 0; r < n; ++r) {
      for (int c = 0; c <= r; ++c) block(r, c) = block(c, r) = uniform();
    }
    for (int r = 0; r < n; ++r) {
      block(r, r) = 1e-2 + row_sum[i][r] + block.row(r).cwiseAbs().sum() - std::abs(block(r, r));
    }
    values.diagonal.insert(values.diagonal.end(), block.data(), block.data() + n * n);
  }
  return values;
}

inline Eigen::SparseMatrix<double> SparseMatrix(const PatternData& data,
                                                const BlockValues& values) {
  std::vector<int> start{0};
  for (const int size : data.block_size) start.push_back(start.back() + size);
  std::vector<Eigen::Triplet<double>> entries;
  entries.reserve(values.diagonal.size() + 2 * values.off_diagonal.size());
  size_t next = 0;
  for (int i = 0; i < data.num_blocks(); ++i) {
    for (int r = start[i]; r < start[i + 1]; ++r) {
      for (int c = start[i]; c < start[i + 1]; ++c) {
        entries.emplace_back(r, c, values.diagonal[next++]);
      }
    }
  }
  next = 0;
  for (size_t e = 0; e < data.edge_a.size(); ++e) {
    const int a = data.edge_a[e];
    const int b = data.edge_b[e];
    for (int r = start[a]; r < start[a + 1]; ++r) {
      for (int c = start[b]; c < start[b + 1]; ++c) {
        entries.emplace_back(r, c, values.off_diagonal[next]);
        entries.emplace_back(c, r, values.off_diagonal[next++]);
      }
    }
  }
  Eigen::SparseMatrix<double> H(start.back(), start.back());
  H.setFromTriplets(entries.begin(), entries.end());
  return H;
}

inline Eigen::VectorXd RandomVector(int size, unsigned seed) {
  std::mt19937 random(seed);
  Eigen::VectorXd vector(size);
  for (double& value : vector) value = static_cast<double>(random()) / 2147483648.0 - 1.0;
  return vector;
}

}  // namespace sap::test
