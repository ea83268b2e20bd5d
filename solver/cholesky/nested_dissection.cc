#include "solver/cholesky/nested_dissection.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "solver/cholesky/minimum_degree.h"
#include "solver/cholesky/vertex_separator.h"

namespace sap {
namespace {

// Pieces up to this are not split further: minimum degree orders them as well, in a fifth of the
// time.
constexpr int kLeafBlocks = 150;

// A part of the graph, and where its blocks go.
struct Piece {
  BlockGraph graph;        // without numbers of edges
  std::vector<int> block;  // its blocks in the whole graph
  int begin{0};            // they are eliminated from here on

  int num_blocks() const { return graph.num_blocks(); }
};

Piece WholeGraph(const BlockGraph& graph) {
  Piece piece{graph, std::vector<int>(graph.num_blocks()), 0};
  std::iota(piece.block.begin(), piece.block.end(), 0);
  return piece;
}

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

// The blocks given, and after them those next to them.
BlockGraph WithSurroundings(const BlockGraph& whole, const std::vector<int>& block) {
  std::vector<int> number(whole.num_blocks(), -1);
  BlockGraph graph;
  for (const int i : block) {
    number[i] = graph.num_blocks();
    graph.weight.push_back(whole.weight[i]);
  }
  std::vector<int> next_to;
  graph.start.push_back(0);
  for (const int i : block) {
    for (const int j : whole.neighbors(i)) {
      if (number[j] < 0) {
        number[j] = graph.num_blocks();
        graph.weight.push_back(whole.weight[j]);
        next_to.push_back(j);
      }
      graph.neighbor.push_back(number[j]);
    }
    graph.start.push_back(static_cast<int>(graph.neighbor.size()));
  }
  for (const int i : next_to) {
    for (const int j : whole.neighbors(i)) {
      if (number[j] >= 0) graph.neighbor.push_back(number[j]);
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

// Orders the piece, or its separator, and returns what is left of it: two pieces or none.
std::vector<Piece> Divide(const BlockGraph& whole, const Piece& piece, const StopToken& stop,
                          std::vector<int>* order) {
  std::optional<std::vector<Side>> side;
  if (piece.num_blocks() > kLeafBlocks) side = VertexSeparator(piece.graph, stop);
  if (stop.Requested()) return {};
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
                                                      const StopToken& stop, TaskArena* arena) {
  std::vector<int> order(graph.num_blocks());
  std::vector<Piece> pieces;
  pieces.push_back(WholeGraph(graph));
  // The pieces of a level do not know of each other.
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
