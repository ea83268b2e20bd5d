// The Hessian H = A + J' G J of one island, its factors and products with it.
//
// H is block sparse: one diagonal block per tree, one off-diagonal block per pair of trees with
// constraints in common, each a dense row-major block in arrays over all islands. Small islands are
// factored dense, large ones by the block Cholesky along the plan of their pattern. Diagonal blocks
// sum over the pairs of their tree in a fixed order, so trees can be assembled in parallel.
#pragma once

#include "solver/cholesky/block_cholesky.h"
#include "solver/cholesky/elimination_plan.h"
#include "solver/cholesky/small_cholesky.h"
#include "solver/newton/sap_data.h"
#include "solver/parallel/growing_buffer.h"
#include "solver/parallel/stop_token.h"
#include "solver/parallel/storage_bytes.h"

namespace sap {

// The values of H. Storage only grows; islands are filled independently.
class Hessian {
 public:
  void Resize(const ConstraintGraph& graph);
  size_t storage_bytes() const { return StorageBytes(diagonal_, off_diagonal_); }

  // Fills the blocks of one island from data.G.
  template <typename View>
  void Assemble(const View& view, const SapData& data, const StopToken& stop);

  // Adds `shift` times the diagonal of H to H.
  void RaiseDiagonal(const IslandView& view, double shift);

  // y := H x for velocities x of the island; part of it if it was stopped.
  void Multiply(const IslandView& view, const std::vector<double>& x, const StopToken& stop,
                std::vector<double>* y) const;

  std::span<const double> diagonal(const IslandRange& range) const {
    return {diagonal_.data() + range.matrix_begin,
            static_cast<size_t>(range.matrix_end - range.matrix_begin)};
  }
  std::span<const double> off_diagonal(const IslandRange& range) const {
    return {off_diagonal_.data() + range.block_begin,
            static_cast<size_t>(range.block_end - range.block_begin)};
  }
  const double* diagonal_block(const ConstraintGraph& graph, int slot) const {
    return diagonal_.data() + graph.matrix_start()[slot];
  }
  const double* off_diagonal_block(const TreePair& pair) const {
    return off_diagonal_.data() + pair.block_start;
  }

 private:
  GrowingBuffer<double> diagonal_;
  GrowingBuffer<double> off_diagonal_;
};

// G at v_c of the costs themselves, of which those of quadratic ones never change.
void EvaluateHessians(const IslandView& view, SapData* data);

// H := A_t + sum over the constraints of one slot of J' G J, for the Hessian and for Gauss-Seidel.
// Cut off in a large tree when stopped.
template <typename View>
void AssembleDiagonalBlock(const View& view, const SapData& data, int slot, const StopToken& stop,
                           double* H);

// H := sum over the constraints of a pair of trees of J_low' G J_high.
template <typename View>
void AssembleBlock(const View& view, const SapData& data, int tree_pair, double* H);

enum class StepStatus : uint8_t { kOk, kNotPositiveDefinite, kStopped };

// Whether H of an island is factored as one dense matrix. All others need a plan.
bool IsDense(const ConstraintGraph& graph, const IslandRange& range);

// H of such an island, trees of more than kScalarDofs in reverse.
void AssembleDense(const IslandView& view, const Hessian& hessian, SmallCholesky* H);

// x := H^-1 x, by the factor of what AssembleDense has made.
void SolveDense(const IslandView& view, const SmallCholesky& H, double* x);

// Factors H along the plan of its pattern.
template <typename Scalar>
StepStatus FactorSparse(const IslandView& view, const Hessian& hessian, const EliminationPlan& plan,
                        const StopToken& stop, BlockCholesky<Scalar>* cholesky) {
  using FactorStatus = typename BlockCholesky<Scalar>::FactorStatus;
  switch (cholesky->Factor(plan, hessian.diagonal(view.range()), hessian.off_diagonal(view.range()),
                           stop, view.arena)) {
    case FactorStatus::kOk:
      return StepStatus::kOk;
    case FactorStatus::kStopped:
      return StepStatus::kStopped;
    default:
      return StepStatus::kNotPositiveDefinite;
  }
}

}  // namespace sap
