#include "solver/cholesky/block_cholesky.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <limits>
#include <type_traits>

#include "solver/cholesky/dense_front.h"
#include "solver/cholesky/front_assembly.h"
#include "solver/cholesky/front_layout.h"
#include "solver/cholesky/front_solve.h"
#include "solver/cholesky/largest_entry.h"

namespace sap {
namespace {

using Front = EliminationPlan::Front;

// Sizes of the pieces of a large front that threads take one by one.
constexpr int kUpdateColumns = 24;  // of U and of the children's updates
constexpr int kUpdateRows = 4 * kUpdateColumns;
constexpr int kAssembledSlivers = 3;  // of the pivots' columns
constexpr int kSliversBelow = 3;      // of the rows below
// Blocks whose part of a vector is brought into the order of elimination at a time.
constexpr Chunks kMovedBlocks{64, 600};
// Entries of a front below the pivots that a piece of a solve reads at least (2 us or so). A front
// with fewer than two such pieces is not worth sharing, nor are the fronts of a wave.
constexpr int kSolvedEntries = 8'000;

template <typename Scalar>
FrontLayout<Scalar> LayoutOf(const Front& front) {
  return FrontLayout<Scalar>(front.pivots, front.updates);
}

template <typename Scalar>
int64_t FactorStart(const Front& front) {
  return std::is_same_v<Scalar, double> ? front.factor_start_double : front.factor_start_float;
}

// The power of two that brings a number into [1/2, 1); 0 if there is none.
double PowerOfTwoScale(double number) {
  if (!(number >= std::numeric_limits<double>::min()) ||
      !(number <= std::numeric_limits<double>::max())) {
    return 0.0;
  }
  // Kept in the range of normal numbers, so that multiplying by it or its inverse is exact.
  return std::ldexp(1.0, std::clamp(-std::ilogb(number) - 1, -1022, 1022));
}

// Whether a matrix for which one power of two would be chosen can be multiplied by another that
// parts of it were multiplied by before: entries stay far within the range of floats.
bool Keeps(double scale, double kept_scale) {
  constexpr double kMostRatio = 0x1p40;
  return kept_scale != 0 && scale * kMostRatio >= kept_scale && scale <= kept_scale * kMostRatio;
}

// Calls body(row, position) for every row as it was given and its position in the order of
// elimination.
template <typename Body>
void ForEachRow(const EliminationPlan& plan, TaskArena* arena, Body&& body) {
  ForChunks(arena, 0, plan.num_blocks(), kMovedBlocks, [&](int begin, int end, int) {
    int position = plan.order_row_start()[begin];
    for (int k = begin; k < end; ++k) {
      const int block = plan.order()[k];
      for (int row = plan.block_row_start()[block]; row < plan.block_row_start()[block + 1];
           ++row) {
        body(row, position++);
      }
    }
  });
}

void ForEachPiece(TaskArena* arena, int count, auto&& body) {
  if (arena == nullptr) {
    for (int i = 0; i < count; ++i) body(i);
  } else {
    arena->ParallelFor(count, body);
  }
}

int NumPieces(int count, int piece) { return (count + piece - 1) / piece; }

// Cuts the part of a front below its pivots, slivers of `entries` entries, into pieces of whole
// slivers with about kSolvedEntries entries. A kernel takes four slivers at a time.
void ForEachSolvedPiece(TaskArena* arena, int slivers, int entries, auto&& body) {
  if (arena == nullptr) return body(0, slivers);
  const int size = 4 * NumPieces(kSolvedEntries, 4 * entries);
  ForEachPiece(arena, NumPieces(slivers, size),
               [&](int piece) { body(piece * size, std::min((piece + 1) * size, slivers)); });
}

bool IsConcurrent(const EliminationPlan& plan, const TaskArena* arena) {
  return arena != nullptr && arena->num_threads() > 1 && plan.num_waves() > 1;
}

// How many tasks of a wave, the first of it, are fronts that are shared by pieces. A front that
// costs more than a thread's share of what is left of the wave would keep the other threads
// waiting, so those without a task of their own help with it.
int NumShared(const EliminationPlan& plan, int w, const TaskArena* arena, double min_cost,
              auto&& cost_of) {
  const std::span<const EliminationPlan::Task> tasks = plan.wave(w);
  if (w == 0) return 0;  // subtrees
  double remaining_cost = 0.0;
  for (const EliminationPlan::Task& task : tasks) remaining_cost += cost_of(task);
  int num_shared = 0;
  for (const EliminationPlan::Task& task : tasks) {
    const double cost = cost_of(task);
    if (cost < min_cost || cost * arena->num_threads() <= remaining_cost) break;
    remaining_cost -= cost;
    ++num_shared;
  }
  return num_shared;
}

// Entries that a solve with one front works in: pivots, updates, sums.
template <typename Scalar>
int64_t FrontScratch(int front_rows) {
  constexpr int64_t kLanes = FrontLayout<Scalar>::kLanes;
  return (front_rows + 2 * kLanes) * (kLanes + 1);
}

// The same for each task of a wave.
template <typename Scalar>
int64_t TaskScratch(std::span<const EliminationPlan::Task> wave) {
  int rows = 0;
  for (const EliminationPlan::Task& task : wave) rows = std::max(rows, task.largest_front);
  return FrontScratch<Scalar>(rows);
}

}  // namespace

// Where the parts of the storage begin, in entries; each at a cache line.
template <typename Scalar>
struct BlockCholesky<Scalar>::Layout {
  int64_t updates, solution, vectors, scratch, task_state, end;

  static Layout Of(const EliminationPlan& plan, bool concurrent) {
    Layout layout;
    layout.updates = Aligned(std::is_same_v<Scalar, double> ? plan.factor_storage_double()
                                                            : plan.factor_storage_float());
    layout.solution = layout.updates + Aligned(concurrent ? plan.update_storage_concurrent()
                                                          : plan.update_storage_serial());
    layout.vectors = layout.solution + Aligned(plan.num_rows());
    layout.scratch = layout.vectors + Aligned(plan.vector_storage());
    int64_t scratch = FrontScratch<Scalar>(plan.largest_front());
    for (int w = 0; concurrent && w < plan.num_waves(); ++w) {
      const int64_t tasks = static_cast<int64_t>(plan.wave(w).size());
      scratch = std::max(scratch, tasks * TaskScratch<Scalar>(plan.wave(w)));
    }
    layout.task_state = layout.scratch + Aligned(scratch);
    const int64_t tasks = concurrent ? plan.task_order().size() : 0;
    layout.end = layout.task_state + (tasks * sizeof(int) + sizeof(Scalar) - 1) / sizeof(Scalar);
    return layout;
  }

 private:
  static int64_t Aligned(int64_t entries) {
    constexpr int64_t kLine = 64 / sizeof(Scalar);
    return (entries + kLine - 1) / kLine * kLine;
  }
};

template <typename Scalar>
size_t BlockCholesky<Scalar>::StorageBytes(const EliminationPlan& plan, const TaskArena* arena) {
  return sizeof(Scalar) * Layout::Of(plan, IsConcurrent(plan, arena)).end;
}

template <typename Scalar>
struct BlockCholesky<Scalar>::Job {
  const EliminationPlan& plan;
  const double* diagonal;
  const double* off_diagonal;
  double scale;
  const StopToken& stop;
  bool concurrent;
  bool varying_only;  // the other fronts are kept
  // Anything but kOk ends the work on all threads.
  mutable std::atomic<FactorStatus> status{FactorStatus::kOk};

  bool Failed() const { return status.load(std::memory_order_relaxed) != FactorStatus::kOk; }
  int64_t UpdateStart(const Front& front) const {
    return front.update_start[concurrent ? EliminationPlan::kConcurrent : EliminationPlan::kSerial];
  }
  void Fail(FactorStatus outcome) const { status.store(outcome, std::memory_order_relaxed); }
  // Polls the stop token. False once the work has to end.
  bool GoesOn() const {
    if (Failed()) return false;
    if (!stop.Requested()) return true;
    Fail(FactorStatus::kStopped);
    return false;
  }
};

template <typename Scalar>
typename BlockCholesky<Scalar>::FactorStatus BlockCholesky<Scalar>::Factor(
    const EliminationPlan& plan, std::span<const double> diagonal,
    std::span<const double> off_diagonal, const StopToken& stop, TaskArena* arena) {
  assert(static_cast<int64_t>(diagonal.size()) == plan.diagonal_start().back());
  assert(static_cast<int64_t>(off_diagonal.size()) == plan.off_diagonal_start().back());
  if (plan.num_blocks() == 0) return FactorStatus::kOk;
  scale_ = PowerOfTwoScale(LargestDiagonalEntry(plan, diagonal, arena));
  const bool keeps = Keeps(scale_, kept_scale_);
  if (keeps) scale_ = kept_scale_;
  kept_scale_ = 0;
  if (scale_ == 0.0) return FactorStatus::kNotPositiveDefinite;
  concurrent_ = IsConcurrent(plan, arena);
  const Layout layout = Layout::Of(plan, concurrent_);
  factor_ = storage_.Reserve(layout.end);
  updates_ = factor_ + layout.updates;
  solution_ = factor_ + layout.solution;
  vectors_ = factor_ + layout.vectors;
  scratch_ = factor_ + layout.scratch;
  task_state_ = reinterpret_cast<int*>(factor_ + layout.task_state);

  const Job job{plan, diagonal.data(), off_diagonal.data(), scale_, stop, concurrent_, keeps};
  if (concurrent_) {
    FactorTasks(job, arena);
  } else {
    FactorFronts(job, 0, plan.num_fronts());
  }
  const FactorStatus status = job.status.load();
  if (status == FactorStatus::kOk && plan.varying_flops() < plan.factor_flops()) {
    kept_scale_ = scale_;
  }
  return status;
}

// A front begins when its children are done, whatever the others of its level are at.
template <typename Scalar>
void BlockCholesky<Scalar>::FactorTasks(const Job& job, TaskArena* arena) {
  const std::span<const EliminationPlan::Task> tasks = job.plan.tasks();
  arena->ParallelForTasks(job.plan.task_order(), task_state_, [&](int t) {
    const EliminationPlan::Task& task = tasks[t];
    const int num_shared = NumShared(job.plan, task.wave, arena, EliminationPlan::kMinSharedCycles,
                                     [](const EliminationPlan::Task& of) { return of.cost; });
    if (&task - job.plan.wave(task.wave).data() < num_shared) {
      FactorFront(job, task.front_begin, arena);
    } else {
      FactorFronts(job, task.front_begin, task.front_end);
    }
  });
}

template <typename Scalar>
void BlockCholesky<Scalar>::FactorFronts(const Job& job, int begin, int end) {
  for (int f = begin; f < end; ++f) {
    if (!FactorFront(job, f, nullptr)) return;
  }
}

// False if the factorization failed or was stopped, on this thread or another.
template <typename Scalar>
bool BlockCholesky<Scalar>::FactorFront(const Job& job, int f, TaskArena* arena) {
  const Front& front = job.plan.fronts()[f];
  if (job.varying_only && !front.varies) return true;
  if (arena == nullptr) {
    FactorPanels(job, front);
  } else {
    ShareAssembly(job, front, arena);
    SharePanels(job, front, arena);
  }
  if (!job.GoesOn()) return false;
  FormUpdate(job, front, arena);
  return !job.Failed();
}

// A single thread assembles each panel just before factoring it, so that it is in cache.
template <typename Scalar>
void BlockCholesky<Scalar>::FactorPanels(const Job& job, const Front& front) {
  constexpr int kColumns = DenseFront<Scalar>::kPanelColumns;
  const FrontLayout<Scalar> layout = LayoutOf<Scalar>(front);
  DenseFront<Scalar> dense(layout, factor_ + FactorStart<Scalar>(front));
  for (int panel = 0; panel < dense.NumPanels(front.pivots); ++panel) {
    if (!job.GoesOn()) return;
    Assemble(job, front, panel * kColumns, std::min((panel + 1) * kColumns, front.pivots), 0,
             layout.slivers());
    dense.UpdatePanel(panel, dense.PanelBegin(panel), dense.PanelEnd(panel), 0, panel);
    if (!job.GoesOn()) return;
    if (!dense.FactorPanel(panel)) return job.Fail(FactorStatus::kNotPositiveDefinite);
    FactorBelow(job, &dense, panel, dense.PanelEnd(panel), layout.slivers());
  }
}

template <typename Scalar>
void BlockCholesky<Scalar>::ShareAssembly(const Job& job, const Front& front, TaskArena* arena) {
  const int slivers = LayoutOf<Scalar>(front).slivers();
  arena->ParallelForPieces(NumPieces(slivers, kAssembledSlivers), [&](int piece) {
    const int begin = piece * kAssembledSlivers;
    Assemble(job, front, 0, front.pivots, begin, std::min(begin + kAssembledSlivers, slivers));
  });
}

// The pivot rows of a panel need only the same rows of earlier panels. They are factored while
// other threads work on the rows below, which take the most time. By then only the products of the
// last two panels are missing: the pivot rows of the panel after the next are updated by panels [0,
// panel), whose columns are finished, in the loop of a panel.
template <typename Scalar>
void BlockCholesky<Scalar>::SharePanels(const Job& job, const Front& front, TaskArena* arena) {
  const FrontLayout<Scalar> layout = LayoutOf<Scalar>(front);
  DenseFront<Scalar> dense(layout, factor_ + FactorStart<Scalar>(front));
  const int num_panels = dense.NumPanels(front.pivots);
  if (!job.GoesOn()) return;
  if (!dense.FactorPanel(0)) return job.Fail(FactorStatus::kNotPositiveDefinite);
  for (int panel = 0; panel < num_panels && job.GoesOn(); ++panel) {
    const auto panel_end = [&](int ahead) {
      return dense.PanelEnd(std::min(panel + ahead, num_panels - 1));
    };
    const int next = panel + 1 < num_panels ? 1 : 0;   // tasks
    const int prepared = panel_end(2) - panel_end(1);  // slivers
    const int pieces = NumPieces(layout.slivers() - panel_end(2), kSliversBelow);
    arena->ParallelFor(next + prepared + pieces, [&](int i) {
      if (i < next) return FactorAhead(job, &dense, panel, arena);
      if (i < next + prepared) return PrepareAhead(job, &dense, panel, panel_end(1) + i - next);
      const int begin = panel_end(2) + (i - next - prepared) * kSliversBelow;
      FactorBelow(job, &dense, panel, begin, std::min(begin + kSliversBelow, layout.slivers()));
    });
  }
}

// The rows below a panel that are the pivot rows of the next one, which are factored as well. There
// are few slivers of them, so that threads take one each.
template <typename Scalar>
void BlockCholesky<Scalar>::FactorAhead(const Job& job, DenseFront<Scalar>* dense, int panel,
                                        TaskArena* arena) {
  const int begin = dense->PanelBegin(panel + 1);
  const int slivers = dense->PanelEnd(panel + 1) - begin;
  const int from = std::max(panel - 1, 0);  // after PrepareAhead
  arena->ParallelFor(slivers, [&](int i) {
    if (job.GoesOn()) dense->FactorBelowPanel(panel, begin + i, begin + i + 1, from);
  });
  arena->ParallelFor(slivers, [&](int i) {
    if (job.GoesOn()) dense->UpdatePanel(panel + 1, begin + i, begin + i + 1, from, panel + 1);
  });
  if (!job.GoesOn()) return;
  if (!dense->FactorPanel(panel + 1)) job.Fail(FactorStatus::kNotPositiveDefinite);
}

// A sliver below a panel that is of the pivot rows of the panel after the next one: part of what
// FactorAhead will do with it is brought forward.
template <typename Scalar>
void BlockCholesky<Scalar>::PrepareAhead(const Job& job, DenseFront<Scalar>* dense, int panel,
                                         int sliver) {
  FactorBelow(job, dense, panel, sliver, sliver + 1);
  if (!job.GoesOn()) return;
  dense->UpdatePanel(panel + 1, sliver, sliver + 1, 0, panel);
  dense->UpdatePanel(panel + 2, sliver, sliver + 1, 0, panel);
}

template <typename Scalar>
void BlockCholesky<Scalar>::FactorBelow(const Job& job, DenseFront<Scalar>* dense, int panel,
                                        int begin, int end) {
  if (job.GoesOn()) dense->FactorBelowPanel(panel, begin, end);
}

template <typename Scalar>
void BlockCholesky<Scalar>::FormUpdate(const Job& job, const Front& front, TaskArena* arena) {
  const int r = front.updates;
  if (arena == nullptr) {
    for (int column = 0; column < r; column += kUpdateColumns) {
      if (!job.GoesOn()) return;
      FormUpdateTile(job, front, column, 0, r);
    }
    return;
  }
  // The tiles of the lower triangle, kMore more in each row of tiles. A thread has consecutive
  // ones, which need the same rows of L21.
  constexpr int kMore = kUpdateRows / kUpdateColumns;
  const int rows = NumPieces(r, kUpdateRows);
  arena->ParallelForPieces(kMore * rows * (rows + 1) / 2, [&](int tile) {
    int row = 0;
    for (; tile >= kMore * (row + 1); ++row) tile -= kMore * (row + 1);
    if (tile * kUpdateColumns >= r || !job.GoesOn()) return;
    FormUpdateTile(job, front, tile * kUpdateColumns, row * kUpdateRows,
                   std::min((row + 1) * kUpdateRows, r));
  });
}

// Rows [row_begin, row_end) of U in the kUpdateColumns columns from this one on.
template <typename Scalar>
void BlockCholesky<Scalar>::FormUpdateTile(const Job& job, const Front& front, int column,
                                           int row_begin, int row_end) {
  const FrontLayout<Scalar> layout = LayoutOf<Scalar>(front);
  const DenseFront<Scalar> dense(layout, factor_ + FactorStart<Scalar>(front));
  Scalar* update = updates_ + job.UpdateStart(front);
  const int column_end = std::min(column + kUpdateColumns, front.updates);
  dense.FormUpdate(column, column_end, row_begin, row_end, update);
  const int p = front.pivots;
  const FrontTile tile{p + column, p + column_end, p + row_begin, p + row_end};
  ForEachChild(job, front, [&](auto runs, ptrdiff_t stride, const Scalar* from) {
    AddChildToUpdate(runs, from, stride, layout, tile, update);
  });
}

// Pivot columns [column_begin, column_end) in slivers [sliver_begin, sliver_end), before they are
// factored.
template <typename Scalar>
void BlockCholesky<Scalar>::Assemble(const Job& job, const Front& front, int column_begin,
                                     int column_end, int sliver_begin, int sliver_end) {
  const FrontLayout<Scalar> layout = LayoutOf<Scalar>(front);
  const FrontTile tile{column_begin, column_end, layout.FirstRow(sliver_begin),
                       layout.FirstRow(sliver_end)};
  Scalar* entries = factor_ + FactorStart<Scalar>(front);
  ClearColumns(layout, column_begin, column_end, sliver_begin, sliver_end, entries);
  CopyMatrixBlocks(
      job.plan.matrix_blocks().subspan(front.entry_begin, front.entry_end - front.entry_begin),
      job.diagonal, job.off_diagonal, job.scale, layout, tile, entries);
  ForEachChild(job, front, [&](auto runs, ptrdiff_t stride, const Scalar* from) {
    AddChildToPivots(runs, from, stride, layout, tile, entries);
  });
}

template <typename Scalar>
template <typename Body>
void BlockCholesky<Scalar>::ForEachChild(const Job& job, const Front& front, Body&& body) {
  for (int c = front.child_begin; c < front.child_end; ++c) {
    const Front& child = job.plan.fronts()[job.plan.children()[c]];
    body(job.plan.runs().subspan(child.run_begin, child.run_end - child.run_begin),
         UpdateStride(child.updates), updates_ + job.UpdateStart(child));
  }
}

template <typename Scalar>
bool BlockCholesky<Scalar>::Solve(const EliminationPlan& plan, std::span<const double> rhs,
                                  std::span<double> x, const StopToken& stop, TaskArena* arena) {
  assert(static_cast<int>(rhs.size()) == plan.num_rows());
  assert(static_cast<int>(x.size()) == plan.num_rows());
  if (plan.num_blocks() == 0) return true;
  // A right-hand side can exceed the range of single precision.
  double rhs_scale = 1.0;
  if constexpr (std::is_same_v<Scalar, float>) {
    const double scale = PowerOfTwoScale(LargestEntry(rhs, arena));
    if (scale != 0.0) rhs_scale = scale;
  }
  ForEachRow(plan, arena, [&](int row, int position) {
    solution_[position] = static_cast<Scalar>(rhs_scale * rhs[row]);
  });
  if (concurrent_ && arena != nullptr) {
    SolveInWaves(plan, stop, arena);
  } else {
    SolveForward(plan, 0, plan.num_fronts(), scratch_, stop);
    SolveBackward(plan, 0, plan.num_fronts(), scratch_, stop);
  }
  if (stop.Requested()) return false;
  ForEachRow(plan, arena, [&](int row, int position) {
    x[row] = static_cast<double>(solution_[position]) * scale_ / rhs_scale;
  });
  return true;
}

template <typename Scalar>
void BlockCholesky<Scalar>::SolveInWaves(const EliminationPlan& plan, const StopToken& stop,
                                         TaskArena* arena) {
  const auto for_tasks = [&](int w, auto&& solve_fronts, auto&& solve_shared) {
    const std::span<const EliminationPlan::Task> tasks = plan.wave(w);
    const int64_t scratch = TaskScratch<Scalar>(tasks);
    int64_t entries = 0;
    for (const EliminationPlan::Task& task : tasks) entries += task.entries;
    const bool is_shared = entries >= 2 * kSolvedEntries;
    const int num_shared =
        NumShared(plan, w, arena, 2 * kSolvedEntries, [&](const EliminationPlan::Task& task) {
          const Front& front = plan.fronts()[task.front_begin];
          return static_cast<double>(front.pivots) * front.updates;
        });
    ForEachPiece(is_shared ? arena : nullptr, static_cast<int>(tasks.size()), [&](int i) {
      if (i < num_shared) {
        if (!stop.Requested())
          solve_shared(plan.fronts()[tasks[i].front_begin], scratch_ + i * scratch);
      } else {
        solve_fronts(tasks[i].front_begin, tasks[i].front_end, scratch_ + i * scratch);
      }
    });
  };
  for (int w = 0; w < plan.num_waves(); ++w) {
    for_tasks(
        w,
        [&](int begin, int end, Scalar* scratch) { SolveForward(plan, begin, end, scratch, stop); },
        [&](const Front& front, Scalar* scratch) { SolveForward(plan, front, scratch, arena); });
  }
  for (int w = plan.num_waves() - 1; w >= 0; --w) {
    for_tasks(
        w,
        [&](int begin, int end, Scalar* scratch) {
          SolveBackward(plan, begin, end, scratch, stop);
        },
        [&](const Front& front, Scalar* scratch) { SolveBackward(plan, front, scratch, arena); });
  }
}

template <typename Scalar>
void BlockCholesky<Scalar>::SolveForward(const EliminationPlan& plan, int begin, int end,
                                         Scalar* scratch, const StopToken& stop) {
  for (int f = begin; f < end; ++f) {
    if (stop.Requested()) return;
    SolveForward(plan, plan.fronts()[f], scratch, nullptr);
  }
}

template <typename Scalar>
void BlockCholesky<Scalar>::SolveBackward(const EliminationPlan& plan, int begin, int end,
                                          Scalar* scratch, const StopToken& stop) {
  for (int f = end - 1; f >= begin; --f) {
    if (stop.Requested()) return;
    SolveBackward(plan, plan.fronts()[f], scratch, nullptr);
  }
}

// Each front passes what it subtracts from later rows to its parent, so that no two fronts write to
// the same rows.
template <typename Scalar>
void BlockCholesky<Scalar>::SolveForward(const EliminationPlan& plan, const Front& front,
                                         Scalar* x1, TaskArena* arena) {
  const FrontLayout<Scalar> layout = LayoutOf<Scalar>(front);
  constexpr int kLanes = FrontLayout<Scalar>::kLanes;
  Scalar* x2 = x1 + layout.pivot_slivers() * kLanes;
  Scalar* y = solution_ + front.pivot_begin;
  std::fill(x1, x1 + layout.slivers() * kLanes, Scalar{0});
  std::copy(y, y + front.pivots, x1);
  for (int c = front.child_begin; c < front.child_end; ++c) {
    const Front& child = plan.fronts()[plan.children()[c]];
    const Scalar* from = vectors_ + child.vector_start;
    for (int r = child.run_begin; r < child.run_end; ++r) {
      const EliminationPlan::RowRun& run = plan.runs()[r];
      Scalar* to = run.parent_row < front.pivots ? x1 + run.parent_row
                                                 : x2 + (run.parent_row - front.pivots);
      for (int i = 0; i < run.length; ++i) to[i] += from[run.child_row + i];
    }
  }
  const Scalar* factor = factor_ + FactorStart<Scalar>(front);
  ForwardSolvePivots(layout, factor, x1);
  const int slivers = layout.slivers() - layout.pivot_slivers();
  ForEachSolvedPiece(arena, slivers, front.pivots * kLanes, [&](int begin, int end) {
    ForwardSolveUpdates(layout, factor, x1, begin, end, x2);
  });
  std::copy(x1, x1 + front.pivots, y);
  std::copy(x2, x2 + front.updates, vectors_ + front.vector_start);
}

template <typename Scalar>
void BlockCholesky<Scalar>::SolveBackward(const EliminationPlan& plan, const Front& front,
                                          Scalar* x1, TaskArena* arena) {
  const FrontLayout<Scalar> layout = LayoutOf<Scalar>(front);
  constexpr int kLanes = FrontLayout<Scalar>::kLanes;
  Scalar* x2 = x1 + layout.pivot_slivers() * kLanes;
  Scalar* sums = x1 + layout.slivers() * kLanes;
  Scalar* y = solution_ + front.pivot_begin;
  Scalar* below = vectors_ + front.vector_start;  // the parent has put the solution there
  std::fill(x1, x1 + layout.slivers() * kLanes, Scalar{0});
  std::copy(y, y + front.pivots, x1);
  std::copy(below, below + front.updates, x2);
  const Scalar* factor = factor_ + FactorStart<Scalar>(front);
  ForEachSolvedPiece(arena, layout.pivot_slivers(), front.updates * kLanes,
                     [&](int begin, int end) {
                       SumUpdates(layout, factor, x2, begin * kLanes, end * kLanes, sums);
                     });
  BackwardSolvePivots(layout, factor, x1, sums);
  std::copy(x1, x1 + front.pivots, y);
  for (int c = front.child_begin; c < front.child_end; ++c) {
    const Front& child = plan.fronts()[plan.children()[c]];
    Scalar* to = vectors_ + child.vector_start;
    for (int r = child.run_begin; r < child.run_end; ++r) {
      const EliminationPlan::RowRun& run = plan.runs()[r];
      const Scalar* from = run.parent_row < front.pivots ? x1 + run.parent_row
                                                         : x2 + (run.parent_row - front.pivots);
      std::copy(from, from + run.length, to + run.child_row);
    }
  }
}

template class BlockCholesky<double>;
template class BlockCholesky<float>;

}  // namespace sap
