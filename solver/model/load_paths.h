// Bounds on the Delassus estimates of contacts by the load that they pass on, for the rule
// kLoadPath.
//
// |J A^-1 J'|_F / 3 knows the two trees of a contact and not what rests on them, so a tower sinks
// into its lowest contact by the load there over the mass of one body. Here masses are passed on
// along the contacts, in the direction of what forces alone would do in the step, d = v* - v_0:
//
//   U_P,t = max |J_i,t d_t| over the contacts i of the pair P     speed that t would gain at P
//   u_t   = max U_P,t over its pairs,   m_t = (d_t' A_t d_t) / u_t^2
//   c_P,t = mean of max(0, -(J_i,t d_t)_n) / U_P,t                how squarely t presses on P
//   f_P,t = a_P,t / sum over Q of a_Q,t,   a = (max(0, (c - 0.2) / 0.8) U_P,t)^2
//   own_P,t = (m_t u_t^2 / U_P,t^2) (U_P,t / max U_P of both sides)
//   received_t = sum over its pairs P, s on the other side, of f_P,s (own_P,s + received_s)
//   M_P = sum over both sides of f_P,t (own_P,t + received_t)
//   w_i = min(|J A^-1 J'|_F / 3, n_P / M_P)                       n_P contacts in the pair
//
// with the signed mean in c, cut at 0. A pair is all contacts, of any kind, of the same two trees,
// or of a tree with the world. Trees that contacts join, directly or through others, are a
// component; neither M_P nor received_t exceeds the sum of m_t over it. Rows pass nothing on.
//
// With a reference speed u_ref, where both sides are trees and h is the one with the lesser w
// alone, w_i = min(w_i, max(n_P u_ref / (M_P max U_P), w_h,i)): a squeeze counts by its force.
//
// Masses are in the unit of the island. The bits of a component depend on nothing outside of it.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "solver/parallel/stop_token.h"
#include "solver/parallel/storage_bytes.h"
#include "solver/parallel/task_arena.h"
#include "solver/problem/constraint_graph.h"
#include "solver/problem/contact_problem.h"

namespace sap {

// Bounds on w by the load of a pair [1/unit of mass]; infinite: no bound.
struct DelassusBounds {
  double by_load;
  double by_squeeze;  // or w of the heavier side alone, if that is more
};

// Arrays over all islands. Storage only grows.
class LoadPaths {
 public:
  // Makes room for every island of the graph.
  void Resize(const ContactProblem& problem, const ConstraintGraph& graph);

  // Finds the bounds of one island. A is in the order of the graph. Islands may be found
  // concurrently. A cancelled call leaves them half done.
  void Find(const ContactProblem& problem, const ConstraintGraph& graph, int island,
            const double* A, const StopToken& stop, TaskArena* arena);

  // Bounds of a contact by its number in the problem.
  const DelassusBounds& bounds(int contact) const { return bounds_[contact]; }
  size_t storage_bytes() const { return StorageBytes(d_, pairs_, world_pairs_, trees_, bounds_); }

 private:
  // One tree at one pair.
  struct Side {
    double speed{0};     // U [m/s]
    double approach{0};  // sum of -(J d)_n over the contacts [m/s]
    double share{0};     // f
    double own{0};       // f own
  };
  struct Pair {
    int low, high;  // slots; high is -1 for the world
    int contacts{0};
    std::array<Side, 2> sides{};

    double speed() const { return std::max(sides[0].speed, sides[1].speed); }
  };
  struct Tree {
    double speed{0};  // u [m/s]
    double mass{0};   // m
    double received{0}, next{0};
    int parent;  // a slot of the same component, itself at the root
    // Properties of the component, at its root:
    double component_mass{0};
    bool active{true};    // goes on with the next round
    bool changed{false};  // by this one
  };
  // Arguments that the functions of one island share.
  struct Island {
    const ContactProblem& problem;
    const ConstraintGraph& graph;
    const double* A;
    const IslandRange& range;
    TaskArena* arena;
  };

  // Calls body(pair) for the pairs of an island that have contacts, those of two trees first.
  template <typename Body>
  void ForPairs(const Island& island, Body&& body);
  template <typename Body>
  void ForPairsOf(const Island& island, int slot, Body&& body);
  void MeasurePairs(const Island& island);
  void AddContacts(const Island& island, const ContactLayout& layout, const ContactGroup& contacts,
                   Pair* pair);
  void ShareLoads(const Island& island);
  void ShareLoadOf(const Island& island, int slot);
  void JoinComponents(const Island& island);
  int Root(int slot);
  void PassLoads(const Island& island, const StopToken& stop);
  bool EndRound(const Island& island);
  void BoundContacts(const Island& island);

  std::vector<double> d_;          // in the order of the graph
  std::vector<Pair> pairs_;        // of two trees, as the graph numbers them
  std::vector<Pair> world_pairs_;  // by slot
  std::vector<Tree> trees_;        // by slot
  std::vector<DelassusBounds> bounds_;
};

}  // namespace sap
