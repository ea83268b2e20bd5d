// The calls of the C interface: one problem from structs to an answer, on threads of this process.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "client/c/answer.h"
#include "client/c/sap_islands.h"
#include "client/c/struct_reader.h"
#include "solver/parallel/stop_token.h"
#include "solver/parallel/task_arena.h"
#include "solver/problem/named_velocities.h"
#include "solver/solve.h"

struct sap_stop {
  std::atomic<bool> requested{false};
};

namespace sap::c {

// What a stream of problems keeps between them.
struct Workspace {
  ContactProblem problem;
  ProblemLayout layout;
  Solver solver{nullptr};
};

// Threads and idle workspaces of one process. Thread-safe.
class ProcessState {
 public:
  explicit ProcessState(int threads);

  int generation() const { return generation_; }
  TaskArena& arena() { return arena_; }
  std::unique_ptr<Workspace> Take();
  void Give(std::unique_ptr<Workspace> workspace);

 private:
  const int generation_;  // see ForkGeneration
  TaskArena arena_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> idle_;
};

// What sessions share with the solver that they were made from. Thread-safe.
class SharedState {
 public:
  explicit SharedState(int threads);
  ~SharedState();
  SharedState(const SharedState&) = delete;
  SharedState& operator=(const SharedState&) = delete;

  int threads() const { return threads_; }
  // State of this process: a child of fork() gets its own at its first call.
  ProcessState& Current();

 private:
  const int threads_;
  std::atomic<ProcessState*> state_;
};

// When a call ends.
struct CallLimits {
  StopToken::Clock::time_point arrival{StopToken::Clock::now()};
  const sap_stop* stop{nullptr};
  std::optional<std::chrono::nanoseconds> time_budget{};

  bool cancelled() const { return stop != nullptr && stop->requested.load(); }
  StopToken Token() const;
};

// Each fills the answers, with solutions or errors; none throws. Those of batches return the kind
// of what ended the batch.
void Solve(SharedState* shared, const sap_problem* problem, const sap_options* options,
           const sap_stop* stop, sap_answer* answer);
int32_t SolveBatch(SharedState* shared, std::span<const sap_problem* const> problems,
                   const sap_options* options, const sap_stop* stop,
                   std::span<sap_answer* const> answers);
void FindIslands(SharedState* shared, const sap_problem* problem, sap_answer* answer);
void Differentiate(SharedState* shared, const sap_differentiation* request, const sap_stop* stop,
                   sap_answer* answer);
int32_t DifferentiateBatch(SharedState* shared,
                           std::span<const sap_differentiation* const> requests,
                           const double* time_budget_s, const sap_stop* stop,
                           std::span<sap_answer* const> answers);

}  // namespace sap::c

struct sap_solver {
  std::shared_ptr<sap::c::SharedState> shared;
};

// A sequence of steps. Not thread-safe.
struct sap_session {
  explicit sap_session(std::shared_ptr<sap::c::SharedState> of_solver);

  void Step(const sap_problem* problem, const sap_options* options, const sap_stop* stop,
            sap_answer* answer);
  void Reset() { last_velocities_.Clear(); }

 private:
  std::shared_ptr<sap::c::SharedState> shared_;
  std::unique_ptr<sap::c::Workspace> workspace_;  // null during a step, and after a failed one
  sap::NamedVelocities last_velocities_;
  bool stepping_{false};
};
