// The symbolic part of the multifrontal factorization H = L L' of a symmetric positive definite
// block matrix: everything that depends on its pattern alone, not on its values.
//
// It has the order of elimination; the fronts (dense matrices in which groups of blocks are
// eliminated), their tree and their rows; where every block of H enters and where every update is
// added; offsets in storage; and the tasks that may run concurrently. BlockCholesky carries it out.
// See [Duff and Reid 1983, The multifrontal solution of indefinite sparse symmetric linear
// equations].
//
// Where some blocks do not vary from one factorization to the next, fronts below which none does
// are factored once. An order that eliminates these blocks first leaves less above them and has
// more fill; it is taken where kExpectedFactorizations cost less so.
//
// A function of the pattern, independent of threads and of earlier plans. Immutable, and
// safe to share between threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "solver/cholesky/block_graph.h"
#include "solver/parallel/stop_token.h"
#include "solver/parallel/task_arena.h"

namespace sap {

// kAuto: minimum degree where the graph is small or its factor has little fill, else the cheaper of
// the two.
enum class Ordering : unsigned char { kAuto, kMinimumDegree, kNestedDissection };

class EliminationPlan {
 public:
  // Two layouts of the update matrices: for fronts that are factored one after another, in little
  // memory that stays in cache, and for tasks that run at the same time.
  enum Schedule : unsigned char { kSerial, kConcurrent };

  // A dense matrix of p + r rows: p pivots are eliminated, the r x r update that remains is added
  // to the parent. Local rows and columns are numbered pivots first, then update rows.
  struct Front {
    int pivots;       // p, rows
    int updates;      // r, rows
    int pivot_begin;  // its first pivot among all rows in order of elimination
    int parent;       // -1 for a root
    int child_begin;  // its children: children()[child_begin .. child_end)
    int child_end;
    int entry_begin;  // blocks of H that enter here: matrix_blocks()[entry_begin .. entry_end)
    int entry_end;
    int run_begin;  // its update rows in the parent: runs()[run_begin .. run_end)
    int run_end;
    // Offsets in entries: its part of the factor, which is padded to whole vectors of doubles or of
    // floats; its update matrix, by Schedule; its update of the right-hand side.
    int64_t factor_start_double;
    int64_t factor_start_float;
    int64_t update_start[2];
    int64_t vector_start;
    bool varies;  // as of BlockPattern, itself or one below it

    int64_t entries() const {  // of L
      return static_cast<int64_t>(pivots) * (pivots + 1) / 2 +
             static_cast<int64_t>(pivots) * updates;
    }
  };

  // A block of H and where it enters the lower triangle of a front.
  struct MatrixBlock {
    int64_t value_start;  // in the diagonal or off-diagonal values
    int rows;             // of the block as stored, row-major
    int columns;
    int row;     // local row of its entry (0, 0) in the front
    int column;  // local column of that entry
    enum class Kind : unsigned char { kDiagonal, kAsStored, kTransposed } kind;
  };

  // Consecutive update rows of a child that are consecutive local rows of its parent: either all
  // pivots of the parent or all update rows.
  struct RowRun {
    int child_row;   // among the child's update rows
    int parent_row;  // local row
    int length;
  };

  // Fronts [front_begin, front_end), for one thread in this order: whole subtrees, or one front.
  struct Task {
    int front_begin;
    int front_end;
    double cost;           // cycles, by the model of supernodes.h
    double path{0};        // the same with the fronts above it, up to the root
    int largest_front{0};  // p + r
    int64_t entries{0};    // of L
    int wave{0};
  };

  // A task or a front with less work than this (20 us or so) does not pay for another thread.
  static constexpr double kMinSharedCycles = 80e3;

  // Requires a valid BlockPattern.
  static EliminationPlan Make(const BlockPattern& pattern, Ordering ordering = Ordering::kAuto);
  // Makes it on the threads of the arena, which may be null. Empty if it was stopped.
  static std::optional<EliminationPlan> Make(const BlockPattern& pattern, Ordering ordering,
                                             const StopToken& stop, TaskArena* arena);

  int num_blocks() const { return static_cast<int>(block_row_start_.size()) - 1; }
  int num_rows() const { return num_rows_; }
  int num_fronts() const { return static_cast<int>(fronts_.size()); }
  double factor_flops() const { return factor_flops_; }    // multiplications and additions
  double varying_flops() const { return varying_flops_; }  // of these, in fronts that vary
  // Mean flops per factorization, if fronts that do not vary are factored once in
  // kExpectedFactorizations.
  static constexpr double kExpectedFactorizations = 6;
  double mean_flops() const {
    return varying_flops_ + (factor_flops_ - varying_flops_) / kExpectedFactorizations;
  }
  int64_t factor_entries() const { return factor_entries_; }  // of L, zeros of the fronts included
  int height() const { return height_; }                      // fronts on the longest path
  int largest_front() const { return largest_front_; }        // p + r
  Ordering ordering() const { return ordering_; }             // that was chosen; not kAuto

  // [N + 1] and [E + 1]: where the values of each block start in the arguments of
  // BlockCholesky::Factor. The last element is the length.
  std::span<const int64_t> diagonal_start() const { return diagonal_start_; }
  std::span<const int64_t> off_diagonal_start() const { return off_diagonal_start_; }

  // For BlockCholesky. Storage is in entries.
  std::span<const Front> fronts() const { return fronts_; }  // in postorder
  std::span<const int> children() const { return children_; }
  std::span<const MatrixBlock> matrix_blocks() const { return matrix_blocks_; }
  std::span<const RowRun> runs() const { return runs_; }
  // All tasks, and which wait for which. Of those that wait for none the one with the longest path
  // to the root comes first. Tasks of a wave can run concurrently once all earlier waves are done.
  // Subtrees are the first wave, in that order too: threads find the factor of their subtrees in
  // their caches when they solve with it. The fronts above them are one wave per level, the largest
  // first.
  std::span<const Task> tasks() const { return tasks_; }
  const TaskOrder& task_order() const { return task_order_; }
  int num_waves() const { return static_cast<int>(wave_start_.size()) - 1; }
  std::span<const Task> wave(int w) const {
    return std::span(tasks_).subspan(wave_start_[w], wave_start_[w + 1] - wave_start_[w]);
  }
  std::span<const int> order() const { return order_; }  // block eliminated k-th
  // [N + 1] of these blocks, the first row in order of elimination
  std::span<const int> order_row_start() const { return order_row_start_; }
  std::span<const int> block_row_start() const { return block_row_start_; }  // [N + 1] as given
  int64_t factor_storage_double() const { return factor_storage_double_; }
  int64_t factor_storage_float() const { return factor_storage_float_; }
  int64_t update_storage_serial() const { return update_storage_[kSerial]; }
  int64_t update_storage_concurrent() const { return update_storage_[kConcurrent]; }
  int64_t vector_storage() const { return vector_storage_; }

  // Bytes that the plan itself holds.
  size_t size_bytes() const;

 private:
  friend class EliminationPlanBuilder;
  EliminationPlan() = default;

  std::vector<Front> fronts_;
  std::vector<int> children_;
  std::vector<MatrixBlock> matrix_blocks_;
  std::vector<RowRun> runs_;
  std::vector<Task> tasks_;
  TaskOrder task_order_;
  std::vector<int> wave_start_{0};
  std::vector<int> order_;
  std::vector<int> order_row_start_;
  std::vector<int> block_row_start_;
  std::vector<int64_t> diagonal_start_;
  std::vector<int64_t> off_diagonal_start_;
  int64_t factor_storage_double_{0};
  int64_t factor_storage_float_{0};
  int64_t update_storage_[2]{0, 0};
  int64_t vector_storage_{0};
  int64_t factor_entries_{0};
  double factor_flops_{0.0};
  double varying_flops_{0.0};
  int num_rows_{0};
  int height_{0};
  int largest_front_{0};
  Ordering ordering_{Ordering::kMinimumDegree};
};

}  // namespace sap
