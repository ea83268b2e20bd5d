// Solves problems in this process: the C library and the embedded client call it.
//
//   view -> workspace -> checked -> solved on the calling thread, or on all -> solution
//
// Calls block. A child of fork() goes on with threads and workspaces of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "solver/engine/engine_error.h"
#include "solver/engine/object_pool.h"
#include "solver/engine/solve_task.h"
#include "solver/engine/time_limit.h"
#include "solver/parallel/task_arena.h"
#include "solver/problem/problem_layout.h"
#include "solver/solve.h"

namespace sap {

// Numbers 0 to sizes.size() - 1, the largest size first: a long problem that began last would leave
// the other threads idle. Equal ones keep their order.
std::vector<int> LargestFirst(const std::vector<int64_t>& sizes);

// A measure of a problem, which need not be valid, by which batches are ordered.
int64_t SizeOf(const ContactProblemView& problem);

// Memory of a stream of problems.
struct Workspace {
  SolveTask task;
  ProblemLayout layout;  // of a problem of which only the islands are wanted
  Solver solver{nullptr};
};

// Thread-safe.
class Engine {
 public:
  // At most `threads` threads work on one problem, the calling one included.
  explicit Engine(int threads);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  int threads() const { return threads_; }

  // Calls body(workspace) with an idle workspace, which is lost in an exception: its state is
  // undefined then. Returns the status of the body, or the exception as an error.
  template <typename Body>
  EngineStatus Run(const Body& body) {
    return CatchExceptions([&]() -> EngineStatus {
      Process& process = Current();
      std::unique_ptr<Workspace> workspace = process.idle.Acquire();
      if (workspace == nullptr) workspace = std::make_unique<Workspace>();
      EngineStatus status = body(*workspace);
      process.idle.Release(std::move(workspace));
      return status;
    });
  }

  // Answers a request, and calls finish(task, answer) if it could, before the task is used for
  // another one.
  template <typename Finish>
  EngineStatus Answer(const SolveRequest& request, const CallLimits& call, const Finish& finish) {
    return Run([&](Workspace& workspace) -> EngineStatus {
      SolveAnswer answer;
      EngineStatus solved = AnswerIn(&workspace, request, call, &answer);
      if (solved) finish(workspace.task, answer);
      return solved;
    });
  }

  // Solves the problem that the task of the workspace has read.
  EngineStatus Solve(Workspace* workspace, const SolverOptions& options, const CallLimits& call,
                     const SolveLimits& limits, ContactSolution* solution,
                     Derivatives* derivatives = nullptr);

  // Calls body(i) for each entry of the sizes, concurrently, the largest first.
  void ForLargestFirst(const std::vector<int64_t>& sizes, const std::function<void(int i)>& body);

 private:
  // State of one process; see ForkGeneration.
  struct Process {
    explicit Process(int threads);

    const int generation;
    TaskArena arena;
    ObjectPool<Workspace> idle;
  };

  Process& Current();
  EngineStatus AnswerIn(Workspace* workspace, const SolveRequest& request, const CallLimits& call,
                        SolveAnswer* answer);

  const int threads_;
  std::atomic<Process*> process_;
};

}  // namespace sap
