#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>

#include "client/mujoco/judge.h"
#include "client/mujoco/sap_mujoco_handle.h"
#include "solver/parallel/task_arena.h"

namespace sap::mujoco {
namespace {

// State shared by the threads that judge the steps of a recording.
class Judging {
 public:
  Judging(const MujocoCalls& calls, const void* model, const sap_mujoco_recording& recording,
          sap_mujoco_judgment* judgments)
      : calls_(calls),
        model_(model),
        recording_(recording),
        judgments_(judgments),
        refused_(recording.states) {}

  // Judges steps, each the next one, until one of them or one before it is refused.
  void Work(void* data) {
    Judge judge;
    for (int64_t k = next_++; k < refused_; k = next_++) {
      const auto judgment =
          CatchExceptions([&] { return judge.Run(calls_, model_, data, recording_, k); });
      if (!judgment) return Refuse(k, judgment.error());
      judgments_[k] = *judgment;
    }
  }

  int32_t Finish(sap_mujoco_refusal* refusal) const {
    *refusal = {};
    refusal->state = refused_;
    std::snprintf(refusal->message, sizeof refusal->message, "%s", error_.message.c_str());
    return refused_ < recording_.states ? static_cast<int32_t>(error_.code) : 0;
  }

 private:
  // The first step that is refused counts, whichever thread judges it.
  void Refuse(int64_t k, const EngineError& error) {
    const std::scoped_lock lock(mutex_);
    if (k >= refused_) return;
    refused_ = k;
    error_ = error;
  }

  const MujocoCalls& calls_;
  const void* const model_;
  const sap_mujoco_recording& recording_;
  sap_mujoco_judgment* const judgments_;
  std::atomic<int64_t> next_{0};
  std::atomic<int64_t> refused_;
  std::mutex mutex_;
  EngineError error_;
};

}  // namespace
}  // namespace sap::mujoco

int32_t sap_mujoco_judge(const sap_mujoco* solver, const void* model, void* const* data,
                         int32_t threads, const sap_mujoco_recording* recording,
                         sap_mujoco_judgment* judgments, sap_mujoco_refusal* refusal) {
  sap::mujoco::Judging judging(solver->calls, model, *recording, judgments);
  sap::TaskArena arena(std::max(threads, 1));
  arena.ParallelFor(std::max(threads, 1), [&](int i) { judging.Work(data[i]); });
  return judging.Finish(refusal);
}
