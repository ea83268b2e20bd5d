// A call of Advance, in slices of some worlds and steps:
//
//   64 worlds x 20 steps -> a slice of 1 x 1 -> slices of about 5 ms, each a task of the queue
//
// A call has at most one task per arena thread in the queue, as a batch has: a finished one queues
// the next behind what its client has queued meanwhile. Worlds whose steps take longer than a slice
// go on from a checkpoint in the next one, which changes no bits.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "sap/v1/world_service.pb.h"
#include "server/scheduling/call_context.h"
#include "server/scheduling/fair_queue.h"
#include "server/service/metrics.h"
#include "server/worlds/model_cache.h"
#include "server/worlds/worker_pool.h"
#include "server/worlds/world_messages.h"

namespace sap {

class WorldCall {
 public:
  // Where its slices run, and who hears of them.
  struct Target {
    FairQueue* queue;
    WorkerPool* pool;
    int num_threads;
    ClientAccount* account;
    Metrics* metrics;  // may be null
    // Receives the part of the work that is done, or need not be. Called concurrently.
    std::function<void(double part)> release_part;
    // A model that has held up or ended workers is dropped.
    std::function<void()> drop_model;
  };
  using Done = std::function<void(const ServiceStatus&)>;

  // Returns at once. `done` is called after the last slice, on a thread of the queue. Messages and
  // account must live until then.
  static void Start(const v1::AdvanceRequest& request, const AdvancePlan& plan,
                    std::shared_ptr<HeldModel> model, const CallContext& call, const Target& target,
                    v1::AdvanceResponse* answer, Done done);

 private:
  // Worlds [first_world, first_world + worlds) that have taken the same number of steps.
  struct Unit {
    int64_t first_world{0};
    int64_t worlds{0};
    int64_t first_step{0};
    std::vector<double> checkpoints;      // empty: they have not begun
    std::vector<WorldProgress> progress;  // likewise
    bool goes_alone{false};               // has ended a worker; its worlds go one by one
    int losses{0};                        // workers that a world has ended by itself
  };
  // One of the call's tasks in the queue.
  struct Lane {
    WorldCall* call;
    QueuedTask task;
  };

  WorldCall(const v1::AdvanceRequest& request, const AdvancePlan& plan,
            std::shared_ptr<HeldModel> model, const CallContext& call, const Target& target,
            v1::AdvanceResponse* answer, Done done);

  void Enqueue(Lane* lane);
  void Work(Lane* lane);
  ServiceStatus RunSlice();

  std::optional<Unit> Take(int64_t* steps);
  int64_t StepsOfSlice(const Unit& unit, double step_s) const;
  int64_t WorldsOfSlice(const Unit& unit, int64_t steps, double step_s) const;
  void PutBack(Unit unit);
  int WantedLanes() const;
  // Lanes to queue besides the one that runs.
  std::vector<Lane*> MoreLanes();

  ServiceStatus Step(WorkerPool::Lease* worker, Unit* unit, int64_t steps);
  WorldSlice SliceOf(const Unit& unit, int64_t steps) const;
  ServiceStatus Lost(Unit unit, ServiceError how);
  // The error of an answer that cannot be, about world i of a unit.
  static ServiceStatus WrongAnswer(const Unit& unit, int64_t i);
  bool IsPossible(const WorldProgress& progress, const Unit& unit, int64_t steps) const;
  void EncodeCertificates(const std::vector<sap_mujoco_certificate>& certificates, const Unit& unit,
                          int64_t steps, const std::vector<WorldProgress>& progress);
  void Continue(const Unit& unit, std::vector<double> checkpoints,
                std::vector<WorldProgress> progress, double took_s);
  void EndWorld(int64_t world, const WorldProgress& progress, const double* checkpoint);
  void RepeatRows(int64_t world, const WorldProgress& progress);

  bool IsStopped() const;
  void Fail(const ServiceError& error);

  const v1::AdvanceRequest& request_;
  const AdvancePlan plan_;
  const std::shared_ptr<HeldModel> model_;
  const CallContext context_;
  const Target target_;
  v1::AdvanceResponse* const answer_;
  const Done done_;
  std::vector<Lane> lanes_;

  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  // Guarded by it:
  std::deque<Unit> units_;  // to be stepped, those that have begun first
  std::vector<Lane*> idle_lanes_;
  int64_t open_steps_;  // of all worlds
  std::optional<ServiceError> error_;
};

}  // namespace sap
