// Trees whose dynamics matrices are coupled: the parts of one body, as the nodes of a mesh or the
// limbs of a robot, each given as a tree of its own with the blocks of A between them.
//
// A is then block sparse over trees instead of block diagonal. A component is an island of
// couplings alone: trees that they connect, directly or through others. Its A is factored as one
// matrix along a plan of its pattern,
//
//   A = L L',   J A^-1 J' = Y' Y,   Y = L^-1 J'
//
// which also tells whether it is positive definite.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "solver/cholesky/half_solve.h"
#include "solver/cholesky/plan_cache.h"
#include "solver/parallel/storage_bytes.h"
#include "solver/problem/islands.h"

namespace sap {

// Copies share the factors until one of them is read again. Storage only grows.
class CoupledTrees {
 public:
  bool empty() const { return pairs_.empty(); }
  std::span<const CoupledPair> pairs() const { return pairs_; }  // by a, then by b
  std::span<const double> blocks() const { return blocks_; }

  int num_components() const { return components_.count(); }
  // The component of a tree, or body; -1: no other tree is coupled with it.
  int component_of(int tree) const {
    const std::span<const int> component_of_tree = components_.island_of_tree();
    const bool may_be_coupled = tree < static_cast<int>(component_of_tree.size());
    return may_be_coupled ? component_of_tree[tree] : -1;
  }
  std::span<const int> trees_of(int component) const {  // ascending
    const std::span<const int> first = components_.first_slot();
    return components_.tree_of_slot().subspan(first[component],
                                              first[component + 1] - first[component]);
  }
  // The number of a tree in its component, which is that of its block in the factor.
  int place_of(int tree) const {
    return components_.slot_of_tree()[tree] - components_.first_slot()[component_of(tree)];
  }
  HalfSolveFactor factor(int component) const {
    const Factor& of = factors_[component];
    return {**of.plan, of.places, *of.cholesky};
  }

  void Clear();
  // Takes pairs that are in range and sorted, and finds components. `dofs` is by tree.
  void Assign(std::span<const int32_t> a, std::span<const int32_t> b,
              std::span<const double> blocks, std::span<const int> dofs);
  // Plans the factorizations. Returns the bytes that they take.
  size_t Plan(std::span<const int> dofs);
  // Factors A, of which `matrix` has the diagonal blocks. Returns the first component that is not
  // positive definite; -1: all are.
  int FactorAll(std::span<const double> matrix, std::span<const int64_t> matrix_start);

  // Copies count what they share.
  size_t storage_bytes() const {
    return StorageBytes(pairs_, blocks_, components_, first_pair_, pairs_by_component_, plans_,
                        factors_, sizes_, edge_a_, edge_b_, diagonal_, off_diagonal_);
  }
  // Drops the plans of earlier problems.
  void DropUnusedPlans() {
    if (plans_ != nullptr) plans_->DropUnused();
  }

 private:
  struct Factor {
    const PlanCache::Plan* plan{nullptr};
    BlockPlaces places;
    std::shared_ptr<BlockCholesky<double>> cholesky;

    size_t storage_bytes() const { return StorageBytes(places, cholesky); }
  };

  void FindPairsOfComponents();

  std::vector<CoupledPair> pairs_;
  std::vector<double> blocks_;
  Islands components_;
  std::vector<int> first_pair_;  // [components + 1]
  std::vector<int> pairs_by_component_;
  std::shared_ptr<PlanCache> plans_;             // made where there are couplings
  std::vector<Factor> factors_;                  // not fewer than components
  std::vector<int> sizes_, edge_a_, edge_b_;     // scratch: the pattern of a component
  std::vector<double> diagonal_, off_diagonal_;  // scratch: its values
};

}  // namespace sap
