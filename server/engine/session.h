// A session without its transport: problems over time, one step after the other, each starting from
// the velocities of the last solved one.
//
//   step -> number checked -> decoded -> guess from the last step -> solved -> outcome
//                                              ^----- velocities remembered ----'
//
// Keeps one problem, one solver with its plans and workspaces, and one solution, so that a step of
// a pattern seen before orders and allocates nothing. A step that fails leaves everything as it
// was. What is kept can change no bit of an answer: a step equals a unary call with the same guess.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sap/v1/solver_service.pb.h"
#include "server/engine/solve_job.h"
#include "server/scheduling/admission.h"
#include "server/scheduling/idle_spinners.h"
#include "server/scheduling/work_queue.h"
#include "solver/parallel/task_arena.h"
#include "solver/solve.h"

namespace sap {

// Velocities of the trees and bodies of a step by their names, to be the guess of the next.
class NamedVelocities {
 public:
  // Of the trees that have a name; those of an island that left the range of doubles are not taken:
  // a bad velocity must not spoil the next steps.
  void Remember(const ContactProblem& problem, const ContactSolution& solution);

  // Sets the guess of each tree or body whose name was there with as many dofs, except where the
  // client's message brings a guess of its own; the others keep theirs. Whether any was set.
  bool SetGuess(const v1::ContactProblem& message, ContactProblem* problem);

 private:
  struct Entry {
    int64_t name;
    int start;  // into velocities_
    int dofs;
  };

  std::vector<Entry> entries_;  // by name
  std::vector<double> velocities_;
  std::vector<double> guess_;  // scratch of SetGuess
};

// What sessions share; it outlives them.
struct SessionResources {
  const ServerConfig& config;
  TaskArena* arena;
  WorkQueue* queue;
  IdleSpinners* idle_spinners;
  Admission* admission;
  ClientAccount* this_process;  // of steps whose limits name none
  Observers observers;
  std::atomic<int>* gauge;  // counts the sessions that are there, and has counted a new one
};

// One step at a time.
class Session {
 public:
  // Told that a started step is answered, on a thread of the queue.
  using Done = void (*)(void* context);

  explicit Session(const SessionResources& resources) : shared_(resources) {}
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Once, before the first step. An error if the options break a rule.
  ServiceStatus Open(const v1::OpenSession& request);

  // Answers on the calling thread, helped by the arena. Reuses the storage of the outcome.
  void Step(const v1::SessionStep& step, const CallContext& limits, v1::StepOutcome* outcome);

  // The same without ever waiting for the arena: true if the step is answered already, else `done`
  // is called once it is. Step, outcome and context must live until then.
  bool StartStep(const v1::SessionStep& step, const CallContext& limits, v1::StepOutcome* outcome,
                 Done done, void* context);

  // Of the last step that has, or will have, an outcome.
  std::optional<uint64_t> last_step_id() const { return last_step_id_; }

  // Whether processors are kept awake for its steps.
  bool low_latency() const { return low_latency_; }

 private:
  void Begin(const v1::SessionStep& step, const CallContext& limits, v1::StepOutcome* outcome);
  ServiceStatus CheckNumber();
  ServiceStatus Decode();
  ServiceStatus Run(TaskArena* arena);
  ServiceStatus DecodeAndRun(TaskArena* arena);
  bool Enqueue();
  void RunQueued(Turn turn);
  void End(const ServiceStatus& status);
  void Refuse(const ServiceStatus& status);

  const SessionResources shared_;

  v1::SolveOptions options_;  // of steps that bring none
  bool low_latency_{false};
  SolveJob solve_;
  std::unique_ptr<Solver> solver_;
  NamedVelocities last_velocities_;
  std::optional<uint64_t> last_step_id_;
  std::optional<uint64_t> previous_step_id_;
  CallContext::Clock::time_point last_end_;

  // The step being solved.
  const v1::SessionStep* step_{nullptr};
  v1::StepOutcome* outcome_{nullptr};
  Done done_{nullptr};
  void* context_{nullptr};
  QueuedTask task_;
  Demand demand_;
};

}  // namespace sap
