// Multifrontal Cholesky factorization of a block-sparse symmetric positive definite matrix along an
// EliminationPlan, and solution with the factor:
//
//   H = L L',   H x = b
//
// A double-precision factor solves the system; a single-precision factor takes half the time and
// serves as a preconditioner.
//
// H is multiplied by a power of two before it is factored, such that its largest diagonal entry is
// in [1/2, 1): H and 2^k H then have the same factor, bit for bit, and entries beyond the range of
// single precision can be factored in it.
//
// Fronts of different subtrees, and pieces of large fronts, are worked on by the threads of an
// arena. What is computed and in which order is fixed by the plan: same bits for any number of
// threads. Fronts that do not vary (BlockPattern) are factored by the first Factor and kept for
// those that follow. All storage is one buffer that only grows, of a size that the plan tells
// beforehand; with a plan no larger than those before, nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "solver/cholesky/elimination_plan.h"
#include "solver/parallel/growing_buffer.h"
#include "solver/parallel/stop_token.h"
#include "solver/parallel/task_arena.h"

namespace sap {

template <typename Scalar>
class DenseFront;

template <typename Scalar>
class BlockCholesky {
 public:
  enum class FactorStatus : unsigned char { kOk, kNotPositiveDefinite, kStopped };

  // diagonal: block i is row-major n_i x n_i at plan.diagonal_start()[i]; only its lower triangle
  // is read. off_diagonal: edge e is H(a, b), row-major n_a x n_b, at plan.off_diagonal_start()[e].
  // A matrix with entries that are not finite is kNotPositiveDefinite. The stop token is polled at
  // every front and within large ones. arena may be null: this thread does everything.
  // After a Factor that returned kOk plan, arena and what does not vary must be as they were;
  // Forget() where they are not.
  FactorStatus Factor(const EliminationPlan& plan, std::span<const double> diagonal,
                      std::span<const double> off_diagonal, const StopToken& stop,
                      TaskArena* arena);

  // The next Factor factors every front.
  void Forget() { kept_scale_ = 0; }

  // x = H^-1 rhs, both by blocks in the order they were given in; they may be the same. Requires
  // that Factor has returned kOk for the same plan. The stop token is polled at every front; false
  // if a stop was requested: x means nothing then. arena may be null.
  bool Solve(const EliminationPlan& plan, std::span<const double> rhs, std::span<double> x,
             const StopToken& stop, TaskArena* arena);

  // The part of the factor in one front (front_layout.h), after Factor, and the power of two that H
  // was multiplied by: H^-1 = scale (L L')^-1.
  const Scalar* front_factor(const EliminationPlan::Front& front) const {
    if constexpr (std::is_same_v<Scalar, double>) return factor_ + front.factor_start_double;
    return factor_ + front.factor_start_float;
  }
  double scale() const { return scale_; }

  // Bytes that Factor and Solve with such a plan and arena work in.
  static size_t StorageBytes(const EliminationPlan& plan, const TaskArena* arena);
  // Reserves `bytes`, as computed by StorageBytes. Forgets the factor if the memory has to grow.
  void Reserve(size_t bytes) { storage_.Reserve(bytes / sizeof(Scalar)); }
  // Bytes held, now and after Reserve(bytes).
  size_t storage_bytes() const { return storage_.size() * sizeof(Scalar); }
  size_t StorageBytesAfter(size_t bytes) const {
    return storage_.SizeAfter(bytes / sizeof(Scalar)) * sizeof(Scalar);
  }

 private:
  using Front = EliminationPlan::Front;
  struct Job;     // one call of Factor
  struct Layout;  // of the storage
  void FactorTasks(const Job& job, TaskArena* arena);
  void FactorFronts(const Job& job, int begin, int end);
  bool FactorFront(const Job& job, int f, TaskArena* arena);
  void FactorPanels(const Job& job, const Front& front);
  void ShareAssembly(const Job& job, const Front& front, TaskArena* arena);
  void SharePanels(const Job& job, const Front& front, TaskArena* arena);
  void FactorAhead(const Job& job, DenseFront<Scalar>* dense, int panel, TaskArena* arena);
  void PrepareAhead(const Job& job, DenseFront<Scalar>* dense, int panel, int sliver);
  void FactorBelow(const Job& job, DenseFront<Scalar>* dense, int panel, int begin, int end);
  void FormUpdate(const Job& job, const Front& front, TaskArena* arena);
  void FormUpdateTile(const Job& job, const Front& front, int column, int row_begin, int row_end);
  void Assemble(const Job& job, const Front& front, int column_begin, int column_end,
                int sliver_begin, int sliver_end);
  template <typename Body>
  void ForEachChild(const Job& job, const Front& front, Body&& body);
  void SolveInWaves(const EliminationPlan& plan, const StopToken& stop, TaskArena* arena);
  void SolveForward(const EliminationPlan& plan, int begin, int end, Scalar* scratch,
                    const StopToken& stop);
  void SolveForward(const EliminationPlan& plan, const Front& front, Scalar* x1, TaskArena* arena);
  void SolveBackward(const EliminationPlan& plan, int begin, int end, Scalar* scratch,
                     const StopToken& stop);
  void SolveBackward(const EliminationPlan& plan, const Front& front, Scalar* x1, TaskArena* arena);

  GrowingBuffer<Scalar> storage_;
  // Parts of it, by the plan of the last Factor.
  Scalar* factor_{nullptr};
  Scalar* updates_{nullptr};
  Scalar* solution_{nullptr};  // in order of elimination
  Scalar* vectors_{nullptr};   // of each front's update rows
  Scalar* scratch_{nullptr};   // of the fronts that are being solved with
  int* task_state_{nullptr};
  bool concurrent_{false};
  double scale_{1.0};       // H times this was factored
  double kept_scale_{0.0};  // and the fronts that do not vary; 0: they were not
};

}  // namespace sap
