// Constants of a solve, gathered in the order of the constraint graph.
//
//   l(v) = 1/2 |v - v*|_A^2 + sum_i f_i(J_i v)                  the paper's primal cost, Sec. III-C
//   R_n  = max(beta^2 / (4 pi^2) w, 1 / (dt k (dt + tau_d)))    of a contact, Sec. V-B
//   R_t  = sigma w,   w = |J A^-1 J'|_F / 3, or less (load_paths.h)
//   R    = max(row_beta^2 / (4 pi^2) w, 1 / (dt k (dt + tau)))  of a row, w = J A^-1 J'
//
// Bilateral rows have a quadratic cost for ever; with them the quadratic part of l has the Hessian
// Q = A + J_b' R_b^-1 J_b, assembled here once per solve.
//
// Masses are in a unit of the island's own, the power of two next to its largest diagonal entry of
// A, so that the solve never meets numbers far from one and a problem whose masses and stiffnesses
// are scaled by a power of two is solved with the same bits. Velocities do not change with the
// unit; impulses, costs and 1/R are in it.
#pragma once

#include <span>
#include <vector>

#include "solver/cholesky/dense_cholesky.h"
#include "solver/model/load_paths.h"
#include "solver/model/single_bodies.h"
#include "solver/parallel/growing_buffer.h"
#include "solver/parallel/stop_token.h"
#include "solver/parallel/storage_bytes.h"
#include "solver/parallel/task_arena.h"
#include "solver/pools/constraint_pools.h"
#include "solver/problem/constraint_graph.h"
#include "solver/problem/contact_problem.h"

namespace sap {

struct IslandConstants {
  double mass_unit{1};       // in units of the problem
  double trace_A{0};         // of the scaled A
  bool representable{true};  // false: a constant of a tree or constraint left the range of doubles
};

// Inputs of the certificate of rest alone (GatherRest).
struct RestConstants {
  double time_step{0};
  int first_body{0};        // of the problem: trees from this one on are rigid bodies
  std::vector<double> v_0;  // velocity at the beginning of the step, or not numbers

  size_t storage_bytes() const { return StorageBytes(v_0); }
};

// Arrays over all islands. Storage only grows; islands are filled independently of each other, also
// concurrently.
class SapModel {
 public:
  // Makes room for every island of the graph, with `coulomb` for the laws of their rounds too.
  // Problem and graph must outlive the model's use.
  void Resize(const ContactProblem& problem, const ConstraintGraph& graph, bool coulomb = false);
  // Makes room for GatherRest.
  void ResizeRest(const ContactProblem& problem, const ConstraintGraph& graph);

  // Fills the ranges of one island, a large one with the threads of the arena (may be null). A
  // cancelled call leaves them half filled.
  void Gather(const ContactProblem& problem, const ConstraintGraph& graph, int island,
              const StopToken& stop, TaskArena* arena);

  // Fills `bodies` with the constants of 1 to 4 islands of one free body and as many friction
  // contacts with the world each. Of the model it fills what reports and answers are made with: the
  // constants of the islands and w. Where the islands are `gathered`, w is that of the model, which
  // the rule kLoadPath asks for.
  void GatherSingleBodies(const ContactProblem& problem, const ConstraintGraph& graph,
                          std::span<const int> islands, bool gathered, SingleBodies* bodies);

  // Fills what `rest` has of one island. Requires ResizeRest.
  void GatherRest(const ContactProblem& problem, const ConstraintGraph& graph, int island);

  const IslandConstants& constants(int island) const { return constants_[island]; }
  const double* A(const ConstraintGraph& graph, int slot) const {
    return A_.data() + graph.matrix_start()[slot];
  }
  // The factor of A of a tree that is not coupled.
  TreeFactor A_factor(const ConstraintGraph& graph, int slot) const {
    return {A_factor_.data() + graph.matrix_start()[slot], RowEnds(graph, slot)};
  }
  // y := A x of one tree.
  template <typename Size>
  void MultiplyA(const ConstraintGraph& graph, int slot, Size n, const double* x, double* y) const {
    if (n > kScalarDofs) {
      MultiplyLargeTree(A(graph, slot), n, RowEnds(graph, slot), x, y);
    } else {
      MultiplySymmetric(A(graph, slot), n, x, y);
    }
  }
  std::span<const double> D() const { return D_; }  // diag(A)^-1/2, per velocity
  std::span<const double> v_star() const { return v_star_; }
  // The problem of this solve, in its own unit of mass.
  const ContactProblem& problem() const { return *problem_; }
  // The factors of A of coupled trees, in the unit of mass of the problem.
  const CoupledTrees& coupled_trees() const { return problem_->coupled_trees(); }
  const RestConstants& rest() const { return rest_; }
  // Whether a tree is a rigid body. Of the certificate of rest alone.
  bool IsBody(const ConstraintGraph& graph, int slot) const {
    return graph.islands().tree_of_slot()[slot] >= rest_.first_body;
  }
  // Whether A has blocks between this tree and others.
  bool IsCoupled(const ConstraintGraph& graph, int slot) const {
    return coupled_trees().component_of(graph.islands().tree_of_slot()[slot]) >= 0;
  }
  // The diagonal block of Q.
  const double* Q(const ConstraintGraph& graph, int slot) const {
    if (graph.rows(ConstraintKind::kBilateralRow).parts_of_slot(slot).empty()) {
      return A(graph, slot);
    }
    return Q_.data() + graph.matrix_start()[slot];
  }
  // The block A(low, high) of two trees; null where it is 0.
  const double* A_block(const ConstraintGraph& graph, int tree_pair) const {
    if (graph.coupled_pair(tree_pair) < 0) return nullptr;
    return A_blocks_.data() + graph.pairs()[tree_pair].block_start;
  }
  // The block of Q of two trees; null where it is 0.
  const double* Q_block(const ConstraintGraph& graph, int tree_pair) const {
    if (graph.couplings(ConstraintKind::kBilateralRow, tree_pair).empty()) {
      return A_block(graph, tree_pair);
    }
    return Q_blocks_.data() + graph.pairs()[tree_pair].block_start;
  }
  size_t storage_bytes() const {
    return StorageBytes(pools, load_paths, w, constants_, A_, A_blocks_, A_factor_, row_ends_, D_,
                        v_star_, rest_, Q_, Q_blocks_);
  }

  PerPool<std::type_identity_t> pools;  // laws and Jacobians
  LoadPaths load_paths;                 // of the rule kLoadPath alone
  // Delassus estimate of each contact by its number in the problem; 0 where no parameter of its law
  // depends on it.
  std::vector<double> w;

 private:
  // Where the rows of A end in a tree of more than kScalarDofs.
  const int* RowEnds(const ConstraintGraph& graph, int slot) const {
    return row_ends_.data() + graph.velocity_start()[slot];
  }
  void GatherTrees(const ContactProblem& problem, const ConstraintGraph& graph, int island);
  void GatherCouplings(const ContactProblem& problem, const ConstraintGraph& graph, int island);
  // Jacobians and laws (gather_constraints.cc). False if a constant left the range of doubles.
  bool GatherConstraints(const ContactProblem& problem, const ConstraintGraph& graph, int island,
                         const StopToken& stop, TaskArena* arena);
  void AssembleQuadratic(const ConstraintGraph& graph, int island, const StopToken& stop,
                         TaskArena* arena);

  std::vector<IslandConstants> constants_;
  const ContactProblem* problem_{nullptr};  // of this solve
  GrowingBuffer<double> A_;
  GrowingBuffer<double> A_blocks_;
  GrowingBuffer<double> A_factor_;
  std::vector<int> row_ends_;  // per velocity
  std::vector<double> D_;
  std::vector<double> v_star_;
  RestConstants rest_;
  GrowingBuffer<double> Q_;
  GrowingBuffer<double> Q_blocks_;
};

}  // namespace sap
