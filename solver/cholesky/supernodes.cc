#include "solver/cholesky/supernodes.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sap {
namespace {

struct Candidate {
  int pivots{0};
  int updates{0};
  int num_blocks{0};
  int parent{-1};
  int first_block{0};  // its own blocks are consecutive positions of the tree
  int last_block{0};
  int first_child{-1};  // list of its children
  int next_sibling{-1};
  int first_merged{-1};  // list of fronts merged into it, eliminated before its own blocks
  int next_merged{-1};
  bool varies{true};
};

// Cycles to assemble and factor a front.
double FrontCost(double pivots, double updates, double num_blocks) {
  constexpr double kFlopsPerCycle = 12.0;
  constexpr double kCyclesPerFront = 1500.0;
  constexpr double kCyclesPerBlock = 250.0;       // latency of its square roots and divisions
  constexpr double kCyclesPerUpdateEntry = 0.6;   // added to the parent
  constexpr double kCyclesPerFactorEntry = 0.25;  // cleared and filled
  return FrontFlops(pivots, updates) / kFlopsPerCycle + kCyclesPerFront +
         kCyclesPerBlock * num_blocks + kCyclesPerUpdateEntry * updates * updates +
         kCyclesPerFactorEntry * pivots * (pivots + updates);
}

double FrontCost(const Candidate& front) {
  return FrontCost(front.pivots, front.updates, front.num_blocks);
}

// Whether a factorization changes each column: its block varies, or one below it does.
std::vector<uint8_t> VaryingColumns(const BlockGraph& graph, const EliminationTree& tree) {
  std::vector<uint8_t> varies(tree.order.size(), 1);
  if (graph.varies.empty()) return varies;
  for (size_t k = 0; k < varies.size(); ++k) varies[k] = graph.varies[tree.order[k]];
  for (size_t k = 0; k < varies.size(); ++k) {
    if (tree.parent[k] >= 0) varies[tree.parent[k]] |= varies[k];
  }
  return varies;
}

// Columns that follow each other in the tree and have the same rows.
std::vector<Candidate> EqualStructure(const BlockGraph& graph, const EliminationTree& tree) {
  std::vector<Candidate> fronts;
  fronts.reserve(tree.order.size());
  std::vector<int> front_of(tree.order.size());
  const std::vector<uint8_t> varies = VaryingColumns(graph, tree);
  const int num_blocks = static_cast<int>(tree.order.size());
  for (int k = 0; k < num_blocks; ++k) {
    const int weight = graph.weight[tree.order[k]];
    const bool continues =
        k > 0 && tree.parent[k - 1] == k && varies[k - 1] == varies[k] &&
        tree.column_rows[k - 1] - graph.weight[tree.order[k - 1]] == tree.column_rows[k];
    if (!continues) {
      fronts.emplace_back();
      fronts.back().first_block = k;
      fronts.back().varies = varies[k] != 0;
    }
    Candidate& front = fronts.back();
    front.last_block = k;
    front.pivots += weight;
    front.updates = tree.column_rows[k] - weight;
    front.num_blocks += 1;
    front_of[k] = static_cast<int>(fronts.size()) - 1;
  }
  for (Candidate& front : fronts) {
    const int parent = tree.parent[front.last_block];
    front.parent = parent < 0 ? -1 : front_of[parent];
  }
  return fronts;
}

// Merges children into their parents from the leaves up, the largest gain first. Returns for each
// front the one it was merged into, -1 if none.
std::vector<int> Amalgamate(std::vector<Candidate>* fronts) {
  const int count = static_cast<int>(fronts->size());
  std::vector<int> merged_into(count, -1);
  std::vector<std::pair<double, int>> ranked;
  for (int f = 0; f < count; ++f) {
    Candidate& front = (*fronts)[f];
    const auto gain = [&](const Candidate& child) {
      return FrontCost(child) + FrontCost(front) -
             FrontCost(child.pivots + front.pivots, front.updates,
                       child.num_blocks + front.num_blocks);
    };
    ranked.clear();
    for (int c = front.first_child; c >= 0; c = (*fronts)[c].next_sibling) {
      ranked.emplace_back(-gain((*fronts)[c]), c);
    }
    std::sort(ranked.begin(), ranked.end());
    for (const auto& [rank, c] : ranked) {
      Candidate& child = (*fronts)[c];
      if (gain(child) <= 0.0 || child.varies != front.varies) continue;
      front.pivots += child.pivots;
      front.num_blocks += child.num_blocks;
      child.next_merged = front.first_merged;
      front.first_merged = c;
      merged_into[c] = f;
    }
    if (front.parent < 0) continue;
    Candidate& parent = (*fronts)[front.parent];
    front.next_sibling = parent.first_child;
    parent.first_child = f;
  }
  return merged_into;
}

// Appends the blocks of a front in the order of elimination: first those of fronts merged into it.
void AppendBlocks(const std::vector<Candidate>& fronts, int f, const EliminationTree& tree,
                  std::vector<int>* order, std::vector<int>* stack) {
  // Chains of merged fronts can be as long as the tree is high, so there is no recursion: blocks
  // are collected last to first.
  const size_t begin = order->size();
  stack->assign(1, f);
  while (!stack->empty()) {
    const Candidate& front = fronts[stack->back()];
    stack->pop_back();
    for (int k = front.last_block; k >= front.first_block; --k) order->push_back(tree.order[k]);
    for (int m = front.first_merged; m >= 0; m = fronts[m].next_merged) stack->push_back(m);
  }
  std::reverse(order->begin() + begin, order->end());
}

}  // namespace

double FrontFlops(double pivots, double updates) {
  return pivots * (updates * updates + pivots * (updates + pivots / 3.0));
}

Supernodes Supernodes::Make(const BlockGraph& graph, const EliminationTree& tree) {
  std::vector<Candidate> fronts = EqualStructure(graph, tree);
  const int count = static_cast<int>(fronts.size());
  const std::vector<int> merged_into = Amalgamate(&fronts);

  // In descending order a front's representative is known before those of its children.
  std::vector<int> survivors;
  std::vector<int> index(count, -1);
  for (int f = 0; f < count; ++f) {
    if (merged_into[f] >= 0) continue;
    index[f] = static_cast<int>(survivors.size());
    survivors.push_back(f);
  }
  for (int f = count - 1; f >= 0; --f) {
    if (merged_into[f] >= 0) index[f] = index[merged_into[f]];
  }
  std::vector<int> parent;
  parent.reserve(survivors.size());
  for (const int f : survivors) {
    parent.push_back(fronts[f].parent < 0 ? -1 : index[fronts[f].parent]);
  }

  const std::vector<int> postorder = Postorder(parent);
  std::vector<int> rank(survivors.size());
  for (int s = 0; s < static_cast<int>(postorder.size()); ++s) rank[postorder[s]] = s;
  Supernodes nodes;
  nodes.order.reserve(tree.order.size());
  nodes.block_start.push_back(0);
  std::vector<int> stack;
  for (const int s : postorder) {
    const Candidate& front = fronts[survivors[s]];
    AppendBlocks(fronts, survivors[s], tree, &nodes.order, &stack);
    nodes.block_start.push_back(static_cast<int>(nodes.order.size()));
    nodes.parent.push_back(parent[s] < 0 ? -1 : rank[parent[s]]);
    nodes.pivots.push_back(front.pivots);
    nodes.updates.push_back(front.updates);
    nodes.cost.push_back(FrontCost(front));
    nodes.varies.push_back(front.varies ? 1 : 0);
  }
  return nodes;
}

}  // namespace sap
