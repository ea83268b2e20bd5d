// Patterns and matrices to test the factorization with.
#pragma once

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "solver/block_graph.h"
#include "solver/elimination_plan.h"

namespace sap::testing {

struct PatternData {
  std::vector<int> block_size;
  std::vector<int> edge_a;
  std::vector<int> edge_b;

  BlockPattern pattern() const { return {block_size, edge_a, edge_b}; }
  int num_blocks() const { return static_cast<int>(block_size.size()); }
  void Connect(int a, int b) {
    edge_a.push_back(a);
    edge_b.push_back(b);
  }
};

inline PatternData Blocks(int count, int size = 6) {
  return {std::vector<int>(count, size), {}, {}};
}

inline PatternData Chain(int count, int size = 6) {
  PatternData data = Blocks(count, size);
  for (int i = 1; i < count; ++i) data.Connect(i, i - 1);
  return data;
}

inline PatternData Star(int leaves, int hub, int size = 6) {
  PatternData data = Blocks(leaves + 1, size);
  for (int i = 0; i <= leaves; ++i) {
    if (i != hub) data.Connect(i, hub);
  }
  return data;
}

inline PatternData Clique(int count, int size = 6) {
  PatternData data = Blocks(count, size);
  for (int i = 0; i < count; ++i) {
    for (int j = i + 1; j < count; ++j) data.Connect(i, j);
  }
  return data;
}

inline PatternData Grid(int columns, int rows, int size = 6) {
  PatternData data = Blocks(columns * rows, size);
  for (int y = 0; y < rows; ++y) {
    for (int x = 0; x < columns; ++x) {
      const int i = y * columns + x;
      if (x > 0) data.Connect(i - 1, i);
      if (y > 0) data.Connect(i, i - columns);
    }
  }
  return data;
}

inline PatternData RandomTree(int count, unsigned seed, int size = 6) {
  std::mt19937 random(seed);
  PatternData data = Blocks(count, size);
  for (int i = 1; i < count; ++i) data.Connect(i, static_cast<int>(random() % i));
  return data;
}

inline PatternData RandomGraph(int count, int edges, unsigned seed, int size = 6) {
  std::mt19937 random(seed);
  PatternData data = Blocks(count, size);
  std::set<std::pair<int, int>> present;
  for (int e = 0; e < edges; ++e) {
    const int a = static_cast<int>(random() % count);
    const int b = static_cast<int>(random() % count);
    if (a != b && present.insert(std::minmax(a, b)).second) data.Connect(a, b);
  }
  return data;
}

// As a pile of spheres: points in a cube, joined to those nearer than a distance that leaves about
// `neighbors` per point.
inline PatternData Pile(int count, double neighbors, unsigned seed, int size = 6) {
  std::mt19937 random(seed);
  const auto uniform = [&] { return static_cast<double>(random()) / 4294967296.0; };
  std::vector<Eigen::Vector3d> points;
  // Dart throwing keeps the points apart like spheres.
  const double apart = 0.8 * std::cbrt(1.0 / count);
  while (static_cast<int>(points.size()) < count) {
    const Eigen::Vector3d point(uniform(), uniform(), uniform());
    const bool free = std::none_of(points.begin(), points.end(), [&](const Eigen::Vector3d& other) {
      return (point - other).squaredNorm() < apart * apart;
    });
    if (free) points.push_back(point);
  }
  std::vector<std::pair<double, std::pair<int, int>>> pairs;
  for (int i = 0; i < count; ++i) {
    for (int j = i + 1; j < count; ++j) {
      const double distance = (points[i] - points[j]).squaredNorm();
      if (distance < 16 * apart * apart) pairs.push_back({distance, {i, j}});
    }
  }
  std::sort(pairs.begin(), pairs.end());
  PatternData data = Blocks(count, size);
  const size_t edges = std::min(pairs.size(), static_cast<size_t>(count * neighbors / 2));
  for (size_t e = 0; e < edges; ++e) data.Connect(pairs[e].second.first, pairs[e].second.second);
  return data;
}

// Articulated trees of many sizes instead of free bodies.
inline PatternData WithMixedSizes(PatternData data, unsigned seed, int max_size = 40) {
  std::mt19937 random(seed);
  for (int& size : data.block_size) size = 1 + static_cast<int>(random() % max_size);
  return data;
}

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

inline Eigen::MatrixXd DenseMatrix(const PatternData& data, const BlockValues& values) {
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  std::vector<int> start{0};
  for (const int size : data.block_size) start.push_back(start.back() + size);
  Eigen::MatrixXd H = Eigen::MatrixXd::Zero(start.back(), start.back());
  const double* next = values.diagonal.data();
  for (int i = 0; i < data.num_blocks(); ++i) {
    const int n = data.block_size[i];
    H.block(start[i], start[i], n, n) = Eigen::Map<const RowMajor>(next, n, n);
    next += n * n;
  }
  next = values.off_diagonal.data();
  for (size_t e = 0; e < data.edge_a.size(); ++e) {
    const int a = data.edge_a[e];
    const int b = data.edge_b[e];
    const Eigen::Map<const RowMajor> block(next, data.block_size[a], data.block_size[b]);
    H.block(start[a], start[b], block.rows(), block.cols()) = block;
    H.block(start[b], start[a], block.cols(), block.rows()) = block.transpose();
    next += block.size();
  }
  return H;
}

inline Eigen::VectorXd RandomVector(int size, unsigned seed) {
  std::mt19937 random(seed);
  Eigen::VectorXd vector(size);
  for (double& value : vector) value = static_cast<double>(random()) / 2147483648.0 - 1.0;
  return vector;
}

}  // namespace sap::testing
