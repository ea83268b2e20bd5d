// A session without its transport: a sequence of steps, each warm-started from the velocities of
// the last solved one.
//
//   step -> step_id checked -> decoded -> guess from the last step -> solved -> outcome
//                                               ^----- velocities stored -------'
//
// Keeps one problem, one solver with its plans and workspaces, and one solution, so that a step
// with a known pattern computes no ordering and allocates no memory. What a client's sessions keep
// is counted; over the limits on bytes, or where the memory of the server runs short, the plans of
// earlier steps are freed after the step, and then all the rest, except for the velocities, without
// which the next step would not start from them: a step whose velocities do not fit is refused. A
// failed step leaves this state unchanged. The state never changes the bits of an answer: a step
// equals a unary call with the same guess.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sap/v1/solver_service.pb.h"
#include "server/scheduling/admission.h"
#include "server/scheduling/fair_queue.h"
#include "server/service/heap_trimmer.h"
#include "server/service/solve_job.h"
#include "solver/parallel/idle_spinners.h"
#include "solver/parallel/task_arena.h"
#include "solver/problem/named_velocities.h"
#include "solver/solve.h"

namespace sap {

// Answers up to this size are kept by the transport, which uses their storage again: one for each
// step in flight.
inline constexpr int64_t kMaxKeptAnswer_bytes = 16 << 10;

// Resources shared by all sessions; they outlive the sessions.
struct SessionResources {
  const ServerConfig& config;
  TaskArena* arena;
  FairQueue* queue;
  IdleSpinners* idle_spinners;
  Admission* admission;
  HeapTrimmer* heap_trimmer;
  ClientAccount* account;  // of the client; admission counts this session for it
  Telemetry telemetry;
};

// Not thread-safe; at most one step at a time.
class Session {
 public:
  // Completion callback of a started step, called on a thread of the queue.
  using Done = void (*)(void* context);

  explicit Session(const SessionResources& resources) : shared_(resources) {}
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Call once, before the first step. An error if the options violate a rule.
  ServiceStatus Open(const v1::OpenSession& request);

  // Does not block: returns true if the step is already answered; otherwise `done` is called when
  // it is. Step, outcome and context must live until then. The outcome's storage is reused. The
  // caller accounts for the step's bytes, see Admission::HoldBytes.
  bool StartStep(const v1::SessionStep& step, const CallContext& call, v1::StepOutcome* outcome,
                 Done done, void* context);

  // Takes a step that fails with the error; its problem is not read.
  void RefuseStep(const v1::SessionStep& step, const CallContext& call, const ServiceError& error,
                  v1::StepOutcome* outcome);

  // Whether the session is a low-latency session (see IdleSpinners).
  bool low_latency() const { return low_latency_; }

 private:
  void Begin(const v1::SessionStep& step, const CallContext& call, v1::StepOutcome* outcome);
  ServiceStatus CheckStepId();
  ServiceStatus Decode();
  ServiceStatus Run(TaskArena* arena);
  ServiceStatus KeepVelocities();
  int64_t StorageBytes() const;
  ServiceStatus CountStorage();
  void Keep();
  ServiceStatus DecodeAndRun(TaskArena* arena);
  bool Enqueue();
  void RunQueued(Dispatch dispatch);
  void End(const ServiceStatus& status);
  void SetFailure(const ServiceStatus& status);

  const SessionResources shared_;

  v1::SolveOptions options_;  // default for steps without options
  bool low_latency_{false};
  SolveJob solve_;
  std::unique_ptr<Solver> solver_;
  NamedVelocities last_velocities_;
  // As admission counts them: by last_velocities_; by all else here and the answers of the slots.
  int64_t velocity_bytes_{0};
  int64_t kept_bytes_{0};
  std::optional<uint64_t> last_step_id_;
  CallContext::Clock::time_point last_end_;

  // The step in progress.
  const v1::SessionStep* step_{nullptr};
  v1::StepOutcome* outcome_{nullptr};
  Done done_{nullptr};
  void* context_{nullptr};
  QueuedTask task_;
  Demand demand_;
};

}  // namespace sap
