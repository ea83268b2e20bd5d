// How to factor a symmetric positive definite block matrix H = L L' of a given pattern.
//
// Everything that does not depend on values: the order of elimination, the fronts (dense pieces in
// which groups of blocks are eliminated), their tree, the rows of each, where every block of H and
// every update of a child goes, where everything is stored, and which fronts may be worked on at
// the same time. BlockCholesky carries it out. See [Duff and Reid 1983, The multifrontal solution
// of indefinite sparse symmetric linear equations].
//
// A pure function of the pattern: not of threads, nor of what was planned before. Immutable, and
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

// kAuto: minimum degree where the graph is small or fills in little, else nested dissection.
enum class Ordering : unsigned char { kAuto, kMinimumDegree, kNestedDissection };

class EliminationPlan {
 public:
  // One dense piece of the elimination: p pivots are eliminated, an r x r update goes to the
  // parent. Local rows and columns count its pivots first, then its update rows.
  struct Front {
    int pivots;       // p, rows
    int updates;      // r, rows
    int pivot_begin;  // first pivot among all rows in order of elimination
    int parent;       // -1 for a root
    int child_begin;  // its children are children()[child_begin .. child_end)
    int child_end;
    int entry_begin;  // blocks of H that enter here: matrix_blocks()[entry_begin .. entry_end)
    int entry_end;
    int run_begin;  // its update rows in the parent: runs()[run_begin .. run_end)
    int run_end;
    int64_t factor_start_double;  // its part of the factor, in entries
    int64_t factor_start_float;
    // Its update matrix, in entries of the update storage: where fronts are worked on one after
    // another, in little memory that stays in cache, and where the tasks of a wave run at the same
    // time.
    int64_t update_start_serial;
    int64_t update_start_concurrent;
    int64_t vector_start;  // its update in a solve, in entries of the vector storage
  };

  // A block of H and the lower left corner of the front it enters.
  struct MatrixBlock {
    int64_t value_start;  // in the diagonal or off-diagonal values
    int rows;             // of the block as stored, row-major
    int columns;
    int row;     // local row and column of its entry (0, 0) in the front
    int column;  //
    enum class Kind : unsigned char { kDiagonal, kAsStored, kTransposed } kind;
  };

  // Consecutive update rows of a child that are consecutive local rows of its parent, all of them
  // pivots or all update rows.
  struct RowRun {
    int child_row;   // among the child's update rows
    int parent_row;  // local row
    int length;
  };

  // Fronts [front_begin, front_end), one after another on one thread: whole subtrees, or one front.
  struct Task {
    int front_begin;
    int front_end;
    double cost;           // cycles, by the model of supernodes.h
    int largest_front{0};  // p + r
  };

  // Requires what BlockPattern says of the pattern.
  static EliminationPlan Make(const BlockPattern& pattern, Ordering ordering = Ordering::kAuto);
  // The same, with the threads of the arena if there is one. Empty if it was stopped.
  static std::optional<EliminationPlan> Make(const BlockPattern& pattern, Ordering ordering,
                                             const StopToken& stop, TaskArena* arena);

  int num_blocks() const { return static_cast<int>(block_row_start_.size()) - 1; }
  int num_rows() const { return num_rows_; }
  int num_fronts() const { return static_cast<int>(fronts_.size()); }
  double factor_flops() const { return factor_flops_; }       // multiplications and additions
  int64_t factor_entries() const { return factor_entries_; }  // of L, zeros of the fronts included
  int height() const { return height_; }                      // fronts on the longest path
  int largest_front() const { return largest_front_; }        // p + r
  Ordering ordering() const { return ordering_; }             // what kAuto came to

  // Where the values of each block start in what BlockCholesky::Factor gets; the last element is
  // the length. [N + 1] and [E + 1].
  std::span<const int64_t> diagonal_start() const { return diagonal_start_; }
  std::span<const int64_t> off_diagonal_start() const { return off_diagonal_start_; }

  // For BlockCholesky.
  std::span<const Front> fronts() const { return fronts_; }  // in postorder
  std::span<const int> children() const { return children_; }
  std::span<const MatrixBlock> matrix_blocks() const { return matrix_blocks_; }
  std::span<const RowRun> runs() const { return runs_; }
  // Tasks of a wave can run at the same time once the waves before are done; the largest first.
  // Subtrees are the first wave, the fronts above them one wave per level.
  int num_waves() const { return static_cast<int>(wave_start_.size()) - 1; }
  std::span<const Task> wave(int w) const {
    return std::span(tasks_).subspan(wave_start_[w], wave_start_[w + 1] - wave_start_[w]);
  }
  std::span<const int> order() const { return order_; }  // block eliminated k-th
  std::span<const int> block_row_start() const { return block_row_start_; }  // [N + 1] as given
  int64_t factor_storage_double() const { return factor_storage_double_; }
  int64_t factor_storage_float() const { return factor_storage_float_; }
  int64_t update_storage_serial() const { return update_storage_serial_; }
  int64_t update_storage_concurrent() const { return update_storage_concurrent_; }
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
  std::vector<int> wave_start_{0};
  std::vector<int> order_;
  std::vector<int> block_row_start_;
  std::vector<int64_t> diagonal_start_;
  std::vector<int64_t> off_diagonal_start_;
  int64_t factor_storage_double_{0};
  int64_t factor_storage_float_{0};
  int64_t update_storage_serial_{0};
  int64_t update_storage_concurrent_{0};
  int64_t vector_storage_{0};
  int64_t factor_entries_{0};
  double factor_flops_{0.0};
  int num_rows_{0};
  int height_{0};
  int largest_front_{0};
  Ordering ordering_{Ordering::kMinimumDegree};
};

}  // namespace sap
