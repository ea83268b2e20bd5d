// Quantities that a solve computes from the velocity v, and their evaluation for one island at a
// time.
//
//   v_c = J v,   gamma = -d f / d v_c,   grad l = A (v - v*) - J' gamma
//
// Arrays are over all islands, trees and constraints in the order of the constraint graph, masses
// in the unit of the island (see SapModel). Four types never share memory:
//
//   SapModel    constant during a solve
//   SapData     functions of v, and v itself
//   SapStep     a direction in which v is moved
//   SapScratch  temporaries of single functions, which no other function reads
#pragma once

#include <span>
#include <vector>

#include "solver/model/sap_model.h"
#include "solver/parallel/storage_bytes.h"
#include "solver/pools/constraint_pools.h"
#include "solver/pools/jacobian_kernels.h"
#include "solver/pools/loop_costs.h"
#include "solver/problem/constraint_graph.h"

namespace sap {

// Norms of one island at the current v, scaled by D = diag(A)^-1/2 as in the paper's stopping test
// (Section IV-E).
struct IslandNorms {
  double gradient{0};   // |D grad l|
  double momentum{0};   // |D A v|
  double impulse{0};    // |D J' gamma|
  double cost{0};       // l(v)
  double cost_size{0};  // the sum of the sizes of its terms, which can have either sign
  bool finite{true};
  // False where the stopping test asks for more than these norms, of coupled trees, and misses it.
  bool meets_in_norm_of_A{true};
};

// Functions of v of one pool.
template <typename Pool>
struct PoolData {
  typename Pool::Laws::Vectors v_c;    // velocity less that of the surface, or the offset of a row
  typename Pool::Laws::Vectors gamma;  // impulse
  typename Pool::Laws::Matrices G;     // -d gamma / d v_c
  typename Pool::Laws::Directions s;   // dual directions of the accelerated method

  size_t storage_bytes() const { return StorageBytes(v_c, gamma, G, s); }
};

// Norms of the trees of one component at v, by a factor of A (accuracy_certificate.h).
struct ComponentNorms {
  double gradient2{-1};  // |A^-1/2 grad l|^2; negative: not asked for at this v
  double trace{0};       // of (D A D)^-1, estimated
};

struct SapData {
  std::vector<double> v;                        // velocity
  std::vector<double> momentum;                 // A v
  std::vector<double> momentum_change;          // A (v - v*)
  std::vector<double> gradient;                 // grad l
  std::vector<ComponentNorms> component_norms;  // at the slot of the first tree of each
  PerPool<PoolData> pools;

  void Resize(const ConstraintGraph& graph);
  size_t storage_bytes() const {
    return StorageBytes(v, momentum, momentum_change, gradient, component_norms, pools);
  }
};

template <typename Pool>
struct PoolStep {
  typename Pool::Laws::Vectors v_c;  // J dv

  size_t storage_bytes() const { return StorageBytes(v_c); }
};

struct SapStep {
  std::vector<double> v;         // dv
  std::vector<double> momentum;  // A dv
  PerPool<PoolStep> pools;

  void Resize(const ConstraintGraph& graph);
  size_t storage_bytes() const { return StorageBytes(v, momentum, pools); }
};

// Sums over one chunk of an island, added up in the order of chunks.
struct PartialSums {
  double gradient2{0}, momentum2{0}, impulse2{0}, cost{0};
  double cost_size{0};  // of chunks of slots, whose terms are not negative: their cost

  PartialSums& operator+=(const PartialSums& part) {
    gradient2 += part.gradient2;
    momentum2 += part.momentum2;
    impulse2 += part.impulse2;
    cost += part.cost;
    cost_size += part.cost_size;
    return *this;
  }
};

// Sums of the certificate over one chunk: of A^-1/2 grad l and its rounding error, and of what
// rounding may have taken from the cost, infinite where a cost can be negative.
template <typename Scalar>
struct CertificateSums {
  Scalar gradient2{}, error2{}, cost_error{};

  CertificateSums& operator+=(const CertificateSums& part) {
    gradient2 += part.gradient2;
    error2 += part.error2;
    cost_error += part.cost_error;
    return *this;
  }
};

// Sums of the certificate of rest over one chunk (rest_certificate.h).
template <typename Scalar>
struct RestSums {
  Scalar change2{};      // |v - v_0|_A^2
  Scalar unbalanced2{};  // |A (v - v_0) - grad l|_{A^-1}^2
  Scalar error2{};       // what rounding may have added to A (v - v_0), in that norm

  RestSums& operator+=(const RestSums& part) {
    change2 += part.change2;
    unbalanced2 += part.unbalanced2;
    error2 += part.error2;
    return *this;
  }
};

// Chunk c of an island's constraints is at its first constraint + c.
template <typename Pool>
struct PoolScratch {
  std::vector<CostSum> costs;
  std::vector<double> cost_errors;
  std::vector<LineSlope> slopes;
  typename Pool::Laws::Vectors impulse_errors;  // of the certificate

  size_t storage_bytes() const { return StorageBytes(costs, cost_errors, slopes, impulse_errors); }
};

struct SapScratch {
  std::vector<double> difference;        // v - v*; A (v - v_0) - grad l of coupled trees
  std::vector<double> errors;            // of the gradient, by the certificate; of that
  std::vector<double> inverse_diagonal;  // (A^-1)_jj, from one certificate to the other
  // Chunk c of the slots of an island is at slot_begin + c.
  std::vector<PartialSums> slot_sums;
  std::vector<CertificateSums<double>> slot_norms;
  std::vector<RestSums<double>> slot_rest;
  std::vector<LineSlope> slot_slopes;
  PerPool<PoolScratch> pools;

  void Resize(const ConstraintGraph& graph);
  size_t storage_bytes() const {
    return StorageBytes(difference, errors, inverse_diagonal, slot_sums, slot_norms, slot_rest,
                        slot_slopes, pools);
  }
};

// Argument of the functions of this folder: the constants, the part of the arrays that belongs to
// one island, and the arena in which a large island is shared out (null: the calling thread does it
// all).
struct IslandView {
  const ConstraintGraph& graph;
  const SapModel& model;
  int island;
  TaskArena* arena;

  const IslandRange& range() const { return graph.island_ranges()[island]; }
  bool coupled() const { return range().coupled; }
  const IslandConstants& constants() const { return model.constants(island); }
  template <int index>
  const auto& layout(PoolIndex<index> pool) const {
    return LayoutOf(graph, pool);
  }
  // The range of the island in a pool.
  template <int index>
  PoolRange range(PoolIndex<index> pool) const {
    return RangeOf(layout(pool).island(island));
  }
};

// Calls body(PoolIndex) for each pool but that of friction contacts whose bit is set. Out of line:
// loops over friction contacts, which most islands have alone, stay small.
template <typename Body>
[[gnu::noinline]] void ForOtherPools(unsigned kinds, Body& body) {
  ForEachPool([&](auto pool) {
    if constexpr (pool != kFrictionPool) {
      if ((kinds >> pool & 1) != 0) body(pool);
    }
  });
}

// Calls body(PoolIndex) for each pool of which the island has constraints, friction contacts first.
template <typename Body>
inline void ForPoolsOf(const IslandView& view, Body&& body) {
  const unsigned kinds = view.range().kinds;
  if ((kinds & 1U << kFrictionPool) != 0) body(kFrictionPool);
  if ((kinds & ~(1U << kFrictionPool)) != 0) ForOtherPools(kinds, body);
}

// Calls body(component) for the components of coupled trees in the island.
template <typename View, typename Body>
inline void ForComponents(const View& view, Body&& body) {
  if (!view.coupled()) return;
  const CoupledTrees& trees = view.model.coupled_trees();
  for (int slot = view.range().slot_begin; slot < view.range().slot_end; ++slot) {
    const int tree = view.graph.islands().tree_of_slot()[slot];
    const int component = trees.component_of(tree);
    if (component >= 0 && trees.trees_of(component).front() == tree) body(component);
  }
}

// Calls body(pool, begin, end) for ranges of the constraints of the island, each constraint once,
// in the arena of a large island.
template <typename View, typename Body>
inline void ForConstraints(const View& view, Body&& body) {
  ForPoolsOf(view, [&](auto pool) {
    const PoolRange range = view.range(pool);
    ForChunks(view.arena, range.begin, range.end, kConstraints,
              [&](int begin, int end, int) { body(pool, begin, end); });
  });
}

// v_c := J u for velocities u of the island, in the pools of data or step; part of it if it was
// stopped.
template <typename View, typename Pools>
void ConstraintVelocities(const View& view, const std::vector<double>& u, const StopToken& stop,
                          Pools* pools) {
  ForPoolsOf(view, [&](auto pool) {
    const PoolRange range = view.range(pool);
    ForChunks(view.arena, range.unit_begin, range.unit_end, EvaluationChunks(pool),
              [&](int begin, int end, int) {
                if (stop.Requested()) return;
                view.model.pools[pool].jacobians.Velocities(view.graph, view.layout(pool), begin,
                                                            end, u, &(*pools)[pool].v_c);
              });
  });
}

// y += sum of H(slot, other) x(other) over the trees that have a block with this one, n rows.
// block_of(pair, its number) is H(low, high) of a pair of trees, null where it is 0; x_of(other) is
// the part of x of a tree.
template <typename Size, typename BlockOf, typename VelocitiesOf>
inline void AddOffDiagonalProduct(const ConstraintGraph& graph, int slot, Size n,
                                  BlockOf&& block_of, VelocitiesOf&& x_of, double* y) {
  for (const PairSide& side : graph.sides_of(slot)) {
    const TreePair& pair = graph.pairs()[side.pair];
    const double* block = block_of(pair, side.pair);
    if (block == nullptr) continue;
    const int other = side.is_high ? pair.low : pair.high;
    const auto x = x_of(other);
    ForSize(graph.dofs()[other], [&](auto m) {
      if (side.is_high) {
        for (int j = 0; j < m; ++j) {
          for (int i = 0; i < n; ++i) y[i] += block[j * n + i] * x[j];
        }
      } else {
        for (int i = 0; i < n; ++i) {
          double sum = 0;
          for (int j = 0; j < m; ++j) sum += block[i * m + j] * x[j];
          y[i] += sum;
        }
      }
    });
  }
}

// y += the product of A between this tree and those coupled with it: with x, and with v - from, v*
// or v_0.
void AddCoupledProduct(const IslandView& view, int slot, const std::vector<double>& x, double* y);
void AddCoupledChange(const IslandView& view, int slot, const std::vector<double>& v,
                      std::span<const double> from, double* y);

// Everything that follows from data->v but G and s: velocities of constraints, impulses, gradient
// and norms. They mean nothing after a cancellation.
template <typename View>
IslandNorms Evaluate(const View& view, SapData* data, SapScratch* scratch,
                     const StopToken& stop = StopToken());

}  // namespace sap
