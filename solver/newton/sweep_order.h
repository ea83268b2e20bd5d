// Which trees Gauss-Seidel steps together, and in which order.
//
// A group is a tree, or a few small trees that bilateral rows join: such a joint is stiff, so that
// one of its trees alone can hardly move. Groups are taken color by color: no two groups of a color
// share a constraint, so a color can be swept in parallel, and the order, a function of the graph
// alone, is the same for any number of threads.
#pragma once

#include <span>
#include <vector>

#include "solver/parallel/storage_bytes.h"
#include "solver/problem/constraint_graph.h"

namespace sap {

// The groups of every island by color: greedy, in the order of slots. Storage only grows.
class SweepOrder {
 public:
  // Takes time in proportion to trees, pairs and couplings.
  void Build(const ConstraintGraph& graph);

  int num_colors(int island) const { return first_color_[island + 1] - first_color_[island]; }
  // Groups of one color of an island, ascending.
  std::span<const int> color(int island, int c) const {
    const int at = first_color_[island] + c;
    return std::span<const int>(groups_).subspan(color_start_[at],
                                                 color_start_[at + 1] - color_start_[at]);
  }
  int num_groups(int island) const { return first_group_[island + 1] - first_group_[island]; }
  TreeGroup group(int number) const {
    return {number,
            std::span<const int>(slots_).subspan(group_start_[number],
                                                 group_start_[number + 1] - group_start_[number]),
            group_of_slot_};
  }
  size_t storage_bytes() const {
    return StorageBytes(group_of_slot_, slots_, group_start_, first_group_, groups_, color_start_,
                        first_color_, color_of_group_, parent_, group_dofs_, taken_by_, next_);
  }

 private:
  void JoinTrees(const ConstraintGraph& graph);
  void ListGroups(const ConstraintGraph& graph);
  int Root(int slot);
  int ColorIsland(const ConstraintGraph& graph, int island);

  std::vector<int> group_of_slot_;
  std::vector<int> slots_;        // by group
  std::vector<int> group_start_;  // into slots_
  std::vector<int> first_group_;  // [islands + 1]
  std::vector<int> groups_;       // by island, color, number
  std::vector<int> color_start_;  // into groups_, all colors of all islands
  std::vector<int> first_color_;  // [islands + 1] into color_start_
  std::vector<int> color_of_group_;
  std::vector<int> parent_;      // scratch: the forest of joined trees
  std::vector<int> group_dofs_;  // scratch: of the tree at the root
  std::vector<int> taken_by_;    // scratch: the last group that has seen a color next to it
  std::vector<int> next_;        // scratch: where the next group of a color goes
};

}  // namespace sap
