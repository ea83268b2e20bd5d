#include "solver/cholesky/minimum_degree.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

namespace sap {
namespace {

// Blocks by degree: one doubly linked list per degree; the block inserted last comes first.
class DegreeLists {
 public:
  DegreeLists(int num_blocks, int max_degree, int unit)
      : unit_(unit),
        head_(max_degree / unit + 1, -1),
        next_(num_blocks, -1),
        previous_(num_blocks, -1),
        list_(num_blocks, -1) {}

  void Insert(int i, int degree) {
    const int list = degree / unit_;
    list_[i] = list;
    previous_[i] = -1;
    next_[i] = head_[list];
    if (next_[i] >= 0) previous_[next_[i]] = i;
    head_[list] = i;
    lowest_ = std::min(lowest_, list);
  }

  void Remove(int i) {
    if (list_[i] < 0) return;
    if (next_[i] >= 0) previous_[next_[i]] = previous_[i];
    if (previous_[i] >= 0) {
      next_[previous_[i]] = next_[i];
    } else {
      head_[list_[i]] = next_[i];
    }
    list_[i] = -1;
  }

  // A block of least degree; -1 when there is none.
  int Lowest() {
    while (lowest_ < static_cast<int>(head_.size()) && head_[lowest_] < 0) ++lowest_;
    return lowest_ < static_cast<int>(head_.size()) ? head_[lowest_] : -1;
  }

 private:
  int unit_;  // common divisor of all degrees
  int lowest_{0};
  std::vector<int> head_;      // by degree
  std::vector<int> next_;      // by block
  std::vector<int> previous_;  // by block
  std::vector<int> list_;      // by block: the list it is in, -1 if in none
};

// The quotient graph of the elimination. A node is first a variable (a block not yet eliminated,
// with those found indistinguishable from it), then an element (the clique its elimination made).
// A variable's list holds first the elements, then the variables it is adjacent to; an element's
// list the variables of its clique.
class QuotientGraph {
 public:
  QuotientGraph(const BlockGraph& graph, int num_kept);
  // Eliminates the blocks that are not kept. False if it was stopped.
  bool Eliminate(const StopToken& stop, std::vector<int>* order);
  // No block is kept from here on.
  void ReleaseKept();
  // Nodes that had very many neighbors.
  void AppendDense(std::vector<int>* order) const {
    order->insert(order->end(), dense_.begin(), dense_.end());
  }

 private:
  enum class Kind : uint8_t { kVariable, kElement, kGone };
  struct Node {
    int begin;         // of its list in lists_
    int num_elements;  // length of the list's first part
    int length;
    int weight;  // rows, with those of merged blocks; negative while it is in the current clique
    int degree;  // upper bound of the rows of its front below its own; of an element: of its
                 // clique
    Kind kind;
  };

  void InsertByDegree(int begin, int end);
  void MakeElement(int pivot);
  void MoveToClique(int i);
  void CountOutside(int pivot);
  void UpdateNeighbor(int pivot, int i);
  void MergeIndistinguishable();
  bool AllNeighborsMarked(int j) const;
  void FinishElement(int pivot);
  void Absorb(int i, int into);

  bool IsKept(int i) const { return i >= num_eliminated_; }

  int num_blocks_;
  int num_eliminated_;  // the blocks after these are kept: never pivots, never merged
  int remaining_weight_{0};
  std::vector<Node> nodes_;
  std::vector<int> lists_;
  std::vector<int> dense_;        // blocks with very many neighbors, kept out and eliminated last
  std::vector<int> kept_dense_;   // the same of those that are kept
  std::vector<int> member_next_;  // chain of the blocks merged in a variable
  std::vector<int> member_last_;
  DegreeLists by_degree_;

  std::vector<int64_t> outside_;  // [N] of an element: stamp + rows outside the current clique
  int64_t stamp_{1};
  std::vector<int64_t> mark_;  // [N] scratch of MergeIndistinguishable
  int64_t mark_stamp_{0};
  std::vector<std::pair<uint64_t, int>> hashed_;  // variables of the current clique
};

int CommonDivisor(const std::vector<int>& weights) {
  int divisor = 0;
  for (const int weight : weights) divisor = std::gcd(divisor, weight);
  return std::max(divisor, 1);
}

QuotientGraph::QuotientGraph(const BlockGraph& graph, int num_kept)
    : num_blocks_(graph.num_blocks()),
      num_eliminated_(num_blocks_ - num_kept),
      nodes_(num_blocks_),
      member_next_(num_blocks_, -1),
      member_last_(num_blocks_),
      by_degree_(num_blocks_, std::accumulate(graph.weight.begin(), graph.weight.end(), 0),
                 CommonDivisor(graph.weight)),
      outside_(num_blocks_, 0),
      mark_(num_blocks_, 0) {
  // A block with very many neighbors (a tray under a thousand parts) would be visited at every
  // elimination, and ends up last anyway.
  const int dense_degree = 16 + static_cast<int>(10.0 * std::sqrt(num_blocks_));
  const auto is_dense = [&](int i) { return graph.degree(i) > dense_degree; };
  lists_.reserve(graph.neighbor.size() * 2);
  std::iota(member_last_.begin(), member_last_.end(), 0);
  for (int i = 0; i < num_blocks_; ++i) {
    const int begin = static_cast<int>(lists_.size());
    nodes_[i] = {begin, 0, 0, graph.weight[i], 0, Kind::kVariable};
    if (is_dense(i)) {
      nodes_[i].kind = Kind::kGone;
      nodes_[i].weight = 0;
      (IsKept(i) ? kept_dense_ : dense_).push_back(i);
      continue;
    }
    for (const int j : graph.neighbors(i)) {
      if (is_dense(j)) continue;
      lists_.push_back(j);
      nodes_[i].degree += graph.weight[j];
    }
    nodes_[i].length = static_cast<int>(lists_.size()) - begin;
    remaining_weight_ += graph.weight[i];
  }
  InsertByDegree(0, num_eliminated_);
  for (std::vector<int>* dense : {&dense_, &kept_dense_}) {
    std::stable_sort(dense->begin(), dense->end(),
                     [&](int i, int j) { return graph.degree(i) < graph.degree(j); });
  }
}

// From the last to the first, so that among equal degrees the lowest index comes first.
void QuotientGraph::InsertByDegree(int begin, int end) {
  for (int i = end - 1; i >= begin; --i) {
    if (nodes_[i].kind == Kind::kVariable) by_degree_.Insert(i, nodes_[i].degree);
  }
}

void QuotientGraph::ReleaseKept() {
  InsertByDegree(num_eliminated_, num_blocks_);
  num_eliminated_ = num_blocks_;
  dense_.insert(dense_.end(), kept_dense_.begin(), kept_dense_.end());
}

bool QuotientGraph::Eliminate(const StopToken& stop, std::vector<int>* order) {
  constexpr int kPivotsPerPoll = 32;
  int pivots = 0;
  for (int pivot = by_degree_.Lowest(); pivot >= 0; pivot = by_degree_.Lowest()) {
    if (++pivots % kPivotsPerPoll == 0 && stop.Requested()) return false;
    by_degree_.Remove(pivot);
    MakeElement(pivot);
    CountOutside(pivot);
    hashed_.clear();
    const Node element = nodes_[pivot];
    for (int k = 0; k < element.length; ++k) UpdateNeighbor(pivot, lists_[element.begin + k]);
    MergeIndistinguishable();
    FinishElement(pivot);
    for (int i = pivot; i >= 0; i = member_next_[i]) order->push_back(i);
  }
  return true;
}

// Adds variable i to the clique being gathered at the end of lists_, once.
void QuotientGraph::MoveToClique(int i) {
  Node& node = nodes_[i];
  if (node.kind != Kind::kVariable || node.weight <= 0) return;
  lists_.push_back(i);
  by_degree_.Remove(i);
  node.weight = -node.weight;
}

// Eliminates the pivot: its clique is its variables and those of its elements, which it replaces.
void QuotientGraph::MakeElement(int pivot) {
  Node& node = nodes_[pivot];
  const int begin = static_cast<int>(lists_.size());
  node.weight = -node.weight;
  for (int k = 0; k < node.length; ++k) {
    const int j = lists_[node.begin + k];
    if (k >= node.num_elements) {
      MoveToClique(j);
    } else if (nodes_[j].kind == Kind::kElement) {
      for (int m = 0; m < nodes_[j].length; ++m) MoveToClique(lists_[nodes_[j].begin + m]);
      nodes_[j].kind = Kind::kGone;
    }
  }
  remaining_weight_ += node.weight;
  node.kind = Kind::kElement;
  node.begin = begin;
  node.length = static_cast<int>(lists_.size()) - begin;
  node.degree = 0;
  for (int k = 0; k < node.length; ++k) node.degree -= nodes_[lists_[begin + k]].weight;
}

// For every element next to the clique: how many of its rows are outside.
void QuotientGraph::CountOutside(int pivot) {
  const Node& clique = nodes_[pivot];
  stamp_ += 2 * static_cast<int64_t>(remaining_weight_) + 2;
  for (int k = 0; k < clique.length; ++k) {
    const Node& variable = nodes_[lists_[clique.begin + k]];
    for (int m = 0; m < variable.num_elements; ++m) {
      const int e = lists_[variable.begin + m];
      if (nodes_[e].kind != Kind::kElement) continue;
      if (outside_[e] < stamp_) outside_[e] = stamp_ + nodes_[e].degree;
      outside_[e] += variable.weight;
    }
  }
}

// Compresses the list of variable i of the clique and bounds its degree.
void QuotientGraph::UpdateNeighbor(int pivot, int i) {
  Node& node = nodes_[i];
  int write = node.begin;
  int degree = 0;
  uint64_t hash = 0;
  for (int k = 0; k < node.num_elements; ++k) {
    const int e = lists_[node.begin + k];
    if (nodes_[e].kind != Kind::kElement) continue;
    const int outside = static_cast<int>(outside_[e] - stamp_);
    if (outside <= 0) {
      nodes_[e].kind = Kind::kGone;  // a subset of the new clique
      continue;
    }
    degree += outside;
    hash += e;
    lists_[write++] = e;
  }
  const int num_elements = write - node.begin;
  // The pivot takes a place after the other elements. There is room: it, or an element it absorbed,
  // was in this list.
  const int first_variable = node.begin + node.num_elements;
  const int end = node.begin + node.length;
  int kept = write;
  int displaced = -1;
  for (int k = first_variable; k < end; ++k) {
    const int j = lists_[k];
    if (nodes_[j].kind != Kind::kVariable || nodes_[j].weight <= 0) continue;
    degree += nodes_[j].weight;
    hash += j;
    if (kept == write) displaced = j;
    lists_[kept++] = j;
  }
  if (degree == 0 && !IsKept(i)) {
    // Nothing outside the clique: it can be eliminated together with the pivot.
    const int weight = -node.weight;
    nodes_[pivot].degree -= weight;
    remaining_weight_ -= weight;
    Absorb(i, pivot);
    return;
  }
  if (displaced >= 0) lists_[kept] = displaced;
  lists_[write] = pivot;
  hash += pivot;
  node.num_elements = num_elements + 1;
  node.length = kept + 1 - node.begin;
  node.degree = std::min(node.degree, degree);
  if (!IsKept(i)) hashed_.emplace_back(hash, i);
}

// Variables of the clique with the same lists keep the same neighbors from here on: one represents
// all.
void QuotientGraph::MergeIndistinguishable() {
  if (hashed_.size() < 2) return;
  std::sort(hashed_.begin(), hashed_.end());
  for (size_t a = 0; a < hashed_.size(); ++a) {
    const int i = hashed_[a].second;
    if (nodes_[i].kind != Kind::kVariable) continue;
    bool marked = false;
    for (size_t b = a + 1; b < hashed_.size() && hashed_[b].first == hashed_[a].first; ++b) {
      const int j = hashed_[b].second;
      if (nodes_[j].kind != Kind::kVariable || nodes_[j].length != nodes_[i].length ||
          nodes_[j].num_elements != nodes_[i].num_elements) {
        continue;
      }
      if (!marked) {
        ++mark_stamp_;
        for (int k = 0; k < nodes_[i].length; ++k) {
          mark_[lists_[nodes_[i].begin + k]] = mark_stamp_;
        }
        marked = true;
      }
      if (AllNeighborsMarked(j)) {
        nodes_[i].weight += nodes_[j].weight;
        Absorb(j, i);
      }
    }
  }
}

bool QuotientGraph::AllNeighborsMarked(int j) const {
  for (int k = 0; k < nodes_[j].length; ++k) {
    if (mark_[lists_[nodes_[j].begin + k]] != mark_stamp_) return false;
  }
  return true;
}

// Returns the variables of the clique to the degree lists and drops those merged or eliminated.
void QuotientGraph::FinishElement(int pivot) {
  Node& clique = nodes_[pivot];
  int write = clique.begin;
  for (int k = 0; k < clique.length; ++k) {
    const int i = lists_[clique.begin + k];
    Node& node = nodes_[i];
    if (node.kind != Kind::kVariable) continue;
    node.weight = -node.weight;
    node.degree =
        std::min(node.degree + clique.degree - node.weight, remaining_weight_ - node.weight);
    if (!IsKept(i)) by_degree_.Insert(i, node.degree);
    lists_[write++] = i;
  }
  clique.length = write - clique.begin;
  lists_.resize(write);
  if (clique.length == 0) clique.kind = Kind::kGone;
}

void QuotientGraph::Absorb(int i, int into) {
  nodes_[i].kind = Kind::kGone;
  nodes_[i].weight = 0;
  member_next_[member_last_[into]] = i;
  member_last_[into] = member_last_[i];
}

}  // namespace

std::optional<std::vector<int>> MinimumDegreeOrder(const BlockGraph& graph, const StopToken& stop,
                                                   int num_kept) {
  QuotientGraph quotient(graph, num_kept);
  std::vector<int> order;
  order.reserve(graph.num_blocks() - num_kept);
  if (!quotient.Eliminate(stop, &order)) return std::nullopt;
  quotient.AppendDense(&order);
  return order;
}

std::optional<std::vector<int>> MinimumDegreeOrderInTwoParts(const BlockGraph& graph,
                                                             const StopToken& stop, int num_last) {
  QuotientGraph quotient(graph, num_last);
  std::vector<int> order;
  order.reserve(graph.num_blocks());
  if (!quotient.Eliminate(stop, &order)) return std::nullopt;
  quotient.ReleaseKept();
  if (!quotient.Eliminate(stop, &order)) return std::nullopt;
  quotient.AppendDense(&order);
  return order;
}

}  // namespace sap
