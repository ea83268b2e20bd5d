#include "solver/cholesky/nested_dissection.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "solver/cholesky/metis_separator.h"
#include "solver/cholesky/minimum_degree.h"

namespace sap {
namespace {

// Pieces up to this size are not split further: minimum degree orders them equally well in a fifth
// of the time.
constexpr int kLeafBlocks = 150;

// A part of the graph, and its range in the order.
struct Piece {
  BlockGraph graph;        // BlockGraph::edge is empty
  std::vector<int> block;  // its blocks in the whole graph
  int begin{0};            // position in the order of its first block

  int num_blocks() const { return graph.num_blocks(); }
};

Piece PieceOf(const Piece& whole, const std::vector<Side>& side, Side which, int begin) {
  Piece piece;
  piece.begin = begin;
  std::vector<int> number(whole.num_blocks(), -1);
  for (int i = 0; i < whole.num_blocks(); ++i) {
    if (side[i] != which) continue;
    number[i] = static_cast<int>(piece.block.size());
    piece.block.push_back(whole.block[i]);
    piece.graph.weight.push_back(whole.graph.weight[i]);
  }
  piece.graph.start.reserve(piece.block.size() + 1);
  piece.graph.start.push_back(0);
  piece.graph.neighbor.reserve(whole.graph.neighbor.size() / 2);
  for (int i = 0; i < whole.num_blocks(); ++i) {
    if (side[i] != which) continue;
    for (const int j : whole.graph.neighbors(i)) {
      if (side[j] == which) piece.graph.neighbor.push_back(number[j]);
    }
    piece.graph.start.push_back(static_cast<int>(piece.graph.neighbor.size()));
  }
  return piece;
}

// All but the last num_kept blocks.
Piece WholeGraph(const BlockGraph& graph, int num_kept) {
  Piece piece{graph, std::vector<int>(graph.num_blocks()), 0};
  std::iota(piece.block.begin(), piece.block.end(), 0);
  if (num_kept == 0) return piece;
  std::vector<Side> side(graph.num_blocks(), Side::kFirst);
  std::fill(side.end() - num_kept, side.end(), Side::kSecond);
  return PieceOf(piece, side, Side::kFirst, 0);
}

// Numbers some blocks of a large graph by the order in which they are added.
//
// One array of N per thread serves all its leaves, each of which clears what it has set: an array
// for each leaf would take time quadratic in N.
class LocalNumbers {
 public:
  explicit LocalNumbers(int num_blocks) : number_(ArrayOfThread()) {
    if (static_cast<int>(number_.size()) < num_blocks) number_.resize(num_blocks, -1);
  }
  ~LocalNumbers() {
    for (const int block : blocks_) number_[block] = -1;
  }
  LocalNumbers(const LocalNumbers&) = delete;
  LocalNumbers& operator=(const LocalNumbers&) = delete;

  int size() const { return static_cast<int>(blocks_.size()); }
  int block(int number) const { return blocks_[number]; }
  // -1 if it has not been added.
  int number(int block) const { return number_[block]; }

  void Add(int block) {
    if (number_[block] >= 0) return;
    blocks_.push_back(block);
    number_[block] = size() - 1;
  }

 private:
  static std::vector<int>& ArrayOfThread() {
    thread_local std::vector<int> array;
    return array;
  }

  std::vector<int>& number_;  // -1 except for blocks_
  std::vector<int> blocks_;
};

// The blocks of a leaf, and after them their neighbors outside it.
BlockGraph WithSurroundings(const BlockGraph& whole, const std::vector<int>& leaf) {
  LocalNumbers local(whole.num_blocks());
  for (const int i : leaf) local.Add(i);
  for (const int i : leaf) {
    for (const int j : whole.neighbors(i)) local.Add(j);
  }
  BlockGraph graph;
  graph.start.push_back(0);
  for (int k = 0; k < local.size(); ++k) {
    const int i = local.block(k);
    graph.weight.push_back(whole.weight[i]);
    for (const int j : whole.neighbors(i)) {
      if (local.number(j) >= 0) graph.neighbor.push_back(local.number(j));
    }
    graph.start.push_back(static_cast<int>(graph.neighbor.size()));
  }
  return graph;
}

void OrderLeaf(const BlockGraph& whole, const Piece& piece, const StopToken& stop,
               std::vector<int>* order) {
  const BlockGraph graph = WithSurroundings(whole, piece.block);
  const std::optional<std::vector<int>> leaf =
      MinimumDegreeOrder(graph, stop, graph.num_blocks() - piece.num_blocks());
  if (!leaf) return;
  for (int k = 0; k < piece.num_blocks(); ++k) {
    (*order)[piece.begin + k] = piece.block[(*leaf)[k]];
  }
}

// Orders the whole piece, or its separator alone and returns the two sides as new pieces.
std::vector<Piece> Divide(const BlockGraph& whole, const Piece& piece, const StopToken& stop,
                          std::vector<int>* order) {
  if (stop.Requested()) return {};
  std::optional<std::vector<Side>> side;
  if (piece.num_blocks() > kLeafBlocks) side = VertexSeparator(piece.graph);
  if (!side) {
    OrderLeaf(whole, piece, stop, order);
    return {};
  }
  std::vector<Piece> halves;
  int next = piece.begin;
  for (const Side which : {Side::kFirst, Side::kSecond}) {
    halves.push_back(PieceOf(piece, *side, which, next));
    next += halves.back().num_blocks();
  }
  for (int i = 0; i < piece.num_blocks(); ++i) {
    if ((*side)[i] == Side::kSeparator) (*order)[next++] = piece.block[i];
  }
  return halves;
}

}  // namespace

std::optional<std::vector<int>> NestedDissectionOrder(const BlockGraph& graph,
                                                      const StopToken& stop, TaskArena* arena,
                                                      int num_kept) {
  std::vector<int> order(graph.num_blocks() - num_kept);
  std::vector<Piece> pieces;
  pieces.push_back(WholeGraph(graph, num_kept));
  // Pieces of a level share no blocks and write different ranges of the order.
  while (!pieces.empty() && !stop.Requested()) {
    std::vector<std::vector<Piece>> halves(pieces.size());
    const auto divide = [&](int i) { halves[i] = Divide(graph, pieces[i], stop, &order); };
    const int count = static_cast<int>(pieces.size());
    if (arena != nullptr) {
      arena->ParallelFor(count, divide);
    } else {
      for (int i = 0; i < count; ++i) divide(i);
    }
    pieces.clear();
    for (std::vector<Piece>& pair : halves) std::ranges::move(pair, std::back_inserter(pieces));
  }
  if (stop.Requested()) return std::nullopt;
  return order;
}

}  // namespace sap
