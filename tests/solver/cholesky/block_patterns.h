// Patterns of symmetric block matrices to test orderings and the factorization with.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "solver/cholesky/block_graph.h"

namespace sap::test {

struct PatternData {
  std::vector<int> block_size;
  std::vector<int> edge_a;
  std::vector<int> edge_b;
  std::vector<uint8_t> varies{};  // or empty

  BlockPattern pattern() const { return {block_size, edge_a, edge_b, varies}; }
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

// A solid of nodes, each next to the 26 around it, of which those below vary: a cube on a floor.
inline PatternData SolidOnFloor(int columns, int rows, int layers, int size = 3) {
  PatternData data = Blocks(columns * rows * layers, size);
  for (int i = 0; i < data.num_blocks(); ++i) {
    const int x = i % columns, y = i / columns % rows, z = i / columns / rows;
    data.varies.push_back(z == 0 ? 1 : 0);
    for (int j = 0; j < i; ++j) {
      const int dx = std::abs(j % columns - x), dy = std::abs(j / columns % rows - y);
      if (dx <= 1 && dy <= 1 && j / columns / rows >= z - 1) data.Connect(i, j);
    }
  }
  return data;
}

// Every so-manyth block varies.
inline PatternData WithVarying(PatternData data, int every, int first = 0) {
  for (int i = 0; i < data.num_blocks(); ++i) data.varies.push_back(i % every == first ? 1 : 0);
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
  std::vector<std::array<double, 3>> points;
  const auto square = [](double x) { return x * x; };
  const auto squared_distance = [&](const std::array<double, 3>& a,
                                    const std::array<double, 3>& b) {
    return square(a[0] - b[0]) + square(a[1] - b[1]) + square(a[2] - b[2]);
  };
  // Dart throwing keeps the points apart like spheres.
  const double apart = 0.8 * std::cbrt(1.0 / count);
  while (static_cast<int>(points.size()) < count) {
    const std::array<double, 3> point{uniform(), uniform(), uniform()};
    const bool free = std::none_of(points.begin(), points.end(), [&](const auto& other) {
      return squared_distance(point, other) < apart * apart;
    });
    if (free) points.push_back(point);
  }
  std::vector<std::pair<double, std::pair<int, int>>> pairs;
  for (int i = 0; i < count; ++i) {
    for (int j = i + 1; j < count; ++j) {
      const double distance = squared_distance(points[i], points[j]);
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

// Two cliques of `count` blocks each that share `shared` more: large fronts with large updates.
inline PatternData TwoCliques(int count, int shared, int size = 6) {
  PatternData data = Blocks(2 * count + shared, size);
  const auto side = [&](int i) { return i < count ? 0 : i < 2 * count ? 1 : 2; };
  for (int i = 0; i < data.num_blocks(); ++i) {
    for (int j = i + 1; j < data.num_blocks(); ++j) {
      if (side(i) == side(j) || side(j) == 2) data.Connect(i, j);
    }
  }
  return data;
}

}  // namespace sap::test
