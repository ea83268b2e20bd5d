#include "solver/cholesky/varying_last.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "solver/cholesky/minimum_degree.h"
#include "solver/cholesky/nested_dissection.h"

namespace sap {
namespace {

// The graph with block[k] as its k-th. BlockGraph::edge is empty.
BlockGraph Renumbered(const BlockGraph& graph, const std::vector<int>& block) {
  std::vector<int> number(block.size());
  for (size_t k = 0; k < block.size(); ++k) number[block[k]] = static_cast<int>(k);
  BlockGraph renumbered;
  renumbered.start.push_back(0);
  renumbered.neighbor.reserve(graph.neighbor.size());
  for (const int i : block) {
    renumbered.weight.push_back(graph.weight[i]);
    for (const int j : graph.neighbors(i)) renumbered.neighbor.push_back(number[j]);
    std::sort(renumbered.neighbor.begin() + renumbered.start.back(), renumbered.neighbor.end());
    renumbered.start.push_back(static_cast<int>(renumbered.neighbor.size()));
  }
  return renumbered;
}

}  // namespace

VaryingLast::VaryingLast(const BlockGraph& graph, const StopToken& stop)
    : block_(graph.num_blocks()) {
  std::iota(block_.begin(), block_.end(), 0);
  const auto varying = std::stable_partition(block_.begin(), block_.end(),
                                             [&](int i) { return graph.varies[i] == 0; });
  num_varying_ = static_cast<int>(block_.end() - varying);
  renumbered_ = Renumbered(graph, block_);
  minimum_degree_ = MinimumDegreeOrderInTwoParts(renumbered_, stop, num_varying_);
}

std::optional<std::vector<int>> VaryingLast::MinimumDegree() const {
  std::optional<std::vector<int>> order = minimum_degree_;
  if (order) {
    for (int& i : *order) i = block_[i];
  }
  return order;
}

std::optional<std::vector<int>> VaryingLast::NestedDissection(const StopToken& stop,
                                                              TaskArena* arena) const {
  if (!minimum_degree_) return std::nullopt;
  std::optional<std::vector<int>> order =
      NestedDissectionOrder(renumbered_, stop, arena, num_varying_);
  if (!order) return std::nullopt;
  const int num_constant = static_cast<int>(block_.size()) - num_varying_;
  std::ranges::copy_if(*minimum_degree_, std::back_inserter(*order),
                       [&](int i) { return i >= num_constant; });
  for (int& i : *order) i = block_[i];
  return order;
}

}  // namespace sap
