// Gauss-Seidel sweeps between Newton steps: every tree with a sliding contact takes in turn an
// exact local Newton step, all other trees held.
//
//   H_tt = A_t + J_t' G J_t,   dv_t = -H_tt^-1 (grad l)_t
//   v_t += alpha dv_t          with a search along dv_t
//
// The cost never rises. What keeps a Newton step short is a handful of contacts near a kink; a
// sweep settles those locally, so that the next step is long. Trees whose contacts all stick are
// where the Newton step wanted them, and stepping them too saves no iteration. The only tree of an
// island is always stepped.
//
// Trees are taken color by color: no two trees of a color touch, so a color can be swept in
// parallel, and the order, a function of the graph alone, is the same for any number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "solver/sap/hessian.h"

namespace sap {

// The trees of every island by color: greedy, in the order of slots. Storage only grows.
class SweepOrder {
 public:
  // Takes time in proportion to trees and pairs.
  void Build(const ContactGraph& graph);

  int num_colors(int island) const { return first_color_[island + 1] - first_color_[island]; }
  // Slots of one color of an island, ascending.
  std::span<const int> color(int island, int c) const {
    const int at = first_color_[island] + c;
    return std::span<const int>(slots_).subspan(color_start_[at],
                                                color_start_[at + 1] - color_start_[at]);
  }

 private:
  int ColorIsland(const ContactGraph& graph, const IslandRange& range);

  std::vector<int> slots_;        // by island, color, number
  std::vector<int> color_start_;  // into slots_, all colors of all islands
  std::vector<int> first_color_;  // [islands + 1] into color_start_
  std::vector<int> color_of_slot_;
  std::vector<int> taken_by_;   // scratch: the last slot that has seen a color beside it
  std::vector<int> next_slot_;  // scratch: where the next slot of a color goes
};

// Which trees a sweep steps.
enum class SweptTrees : uint8_t {
  kSliding,  // those with a sliding contact, and the only tree of an island
  kAll,      // for sweeps that no Newton step precedes
};

// One sweep over the island, colors ascending, or descending if `backward`. Moves data->v and keeps
// v_c; everything else that depends on v is stale until the next evaluation, and so is *step, which
// takes the local steps. Stops between trees and within large ones on request: false if it did, and
// then how far it got depends on the moment.
bool Sweep(const IslandView& view, const SweepOrder& order, bool backward, const StopToken& stop,
           SapData* data, SapStep* step, SweptTrees trees = SweptTrees::kSliding);

}  // namespace sap
