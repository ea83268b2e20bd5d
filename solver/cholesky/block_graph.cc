#include "solver/cholesky/block_graph.h"

#include <cassert>
#include <numeric>

namespace sap {

BlockGraph BlockGraph::FromPattern(const BlockPattern& pattern) {
  const int num_blocks = pattern.num_blocks();
  const int num_edges = pattern.num_edges();
  BlockGraph graph;
  graph.weight.assign(pattern.block_size.begin(), pattern.block_size.end());
  graph.varies.assign(pattern.varies.begin(), pattern.varies.end());
  graph.start.assign(num_blocks + 1, 0);
  for (int e = 0; e < num_edges; ++e) {
    const int a = pattern.edge_a[e];
    const int b = pattern.edge_b[e];
    assert(0 <= a && a < num_blocks && 0 <= b && b < num_blocks && a != b);
    ++graph.start[a + 1];
    ++graph.start[b + 1];
  }
  std::partial_sum(graph.start.begin(), graph.start.end(), graph.start.begin());

  // Neighbors in the order of the edges first. The transpose of this graph, which is the same
  // graph, has them in ascending order.
  std::vector<int> next(graph.start.begin(), graph.start.end() - 1);
  std::vector<int> unsorted(2 * num_edges);
  std::vector<int> unsorted_edge(2 * num_edges);
  for (int e = 0; e < num_edges; ++e) {
    const int a = pattern.edge_a[e];
    const int b = pattern.edge_b[e];
    unsorted_edge[next[a]] = e;
    unsorted[next[a]++] = b;
    unsorted_edge[next[b]] = e;
    unsorted[next[b]++] = a;
  }
  graph.neighbor.resize(2 * num_edges);
  graph.edge.resize(2 * num_edges);
  next.assign(graph.start.begin(), graph.start.end() - 1);
  for (int i = 0; i < num_blocks; ++i) {
    for (int k = graph.start[i]; k < graph.start[i + 1]; ++k) {
      const int row = unsorted[k];
      graph.edge[next[row]] = unsorted_edge[k];
      graph.neighbor[next[row]++] = i;
    }
  }
  return graph;
}

}  // namespace sap
