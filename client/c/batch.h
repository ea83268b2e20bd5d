// A batch whose answers are handed out one by one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "client/c/connection.h"
#include "solver/parallel/forked_threads.h"

namespace sap::c {

class RunningBatch {
 public:
  // The lists are valid until the batch has ended.
  RunningBatch(std::shared_ptr<Connection> client, std::span<const sap_problem* const> problems,
               const sap_options* options, const CallSettings& call,
               std::span<sap_answer* const> answers);

  void Run();
  // See sap_batch_next.
  int64_t Next(const Wait& wait);
  // Cancels what has not ended, and waits for that.
  void Cancel();
  // False in a child of fork(), which does not have the thread of the batch.
  bool of_this_process() const { return generation_ == ForkGeneration(); }

 private:
  void Put(int index);

  const int generation_{ForkGeneration()};
  const std::shared_ptr<Connection> client_;
  const std::span<const sap_problem* const> problems_;
  const sap_options* const options_;
  const std::span<sap_answer* const> answers_;
  CallSettings call_;
  std::atomic<bool> cancelled_{false};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> complete_;  // by index
  std::vector<int> ended_;      // indices in the order of their ends; holds all without growing
  size_t returned_{0};
  bool complete_all_{false};
  bool finished_{false};  // nothing is called any more
};

}  // namespace sap::c

struct sap_batch {
  std::shared_ptr<sap::c::RunningBatch> running;
};
