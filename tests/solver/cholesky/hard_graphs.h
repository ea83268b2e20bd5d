// Graphs that orderings have failed on.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/solver/cholesky/block_patterns.h"

namespace sap::test {

struct GraphCase {
  std::string name;
  PatternData data;
};

// Among them all the graphs that METIS is known to have crashed or hung on.
inline std::vector<GraphCase> HardGraphs() {
  std::vector<GraphCase> cases;
  const auto add = [&](std::string name, PatternData data) {
    cases.push_back({std::move(name), std::move(data)});
  };
  for (const int n : {0, 1, 2, 3, 5, 7, 8, 9, 34, 150}) {
    const std::string number = std::to_string(n);
    add("without edges " + number, Blocks(n));
    add("path " + number, Chain(n));
    add("clique " + number, Clique(n));
    add("tree " + number, RandomTree(n, 1));
    add("mixed tree " + number, WithMixedSizes(RandomTree(n, 1), 2, 1024));
    if (n > 1) {
      add("star " + number, Star(n - 1, 0));
      add("star at the end " + number, Star(n - 1, n - 1));
      add("sparse " + number, RandomGraph(n, n / 2, 3));
      add("random " + number, RandomGraph(n, 3 * n, 4));
      add("dense " + number, RandomGraph(n, n * n, 5));
    }
  }
  add("one edge among many", RandomGraph(200, 1, 1));
  add("grid", Grid(20, 20));
  add("pile", Pile(300, 5.5, 1));
  add("mixed pile", WithMixedSizes(Pile(300, 5.5, 1), 2, 126));
  add("large star", Star(2000, 1000));
  add("two cliques", TwoCliques(30, 10));
  return cases;
}

}  // namespace sap::test
