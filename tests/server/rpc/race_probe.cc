// Two steps of a completion queue, on two threads, that change the same number and are ordered by
// nothing: ThreadSanitizer has to report it. This shows that what tests/support/grpc_ordering.cc
// states hides no such race.
#include <grpcpp/alarm.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "server/rpc/completion_tag.h"
#include "server/rpc/completion_threads.h"

namespace sap {
namespace {

int changed = 0;
std::atomic<int> begun{0};

class Step final : public CompletionTag {
 public:
  explicit Step(grpc::CompletionQueue* queue) {
    alarm_.Set(queue, gpr_time_0(GPR_CLOCK_MONOTONIC), this);
  }
  // Ends when both have begun, so that two threads take them; a relaxed counter orders nothing.
  void Complete(bool) override {
    ++changed;
    begun.fetch_add(1, std::memory_order_relaxed);
    while (begun.load(std::memory_order_relaxed) < 2) std::this_thread::yield();
  }

 private:
  grpc::Alarm alarm_;
};

void Run() {
  grpc::CompletionQueue queue;
  const Step first(&queue);
  const Step second(&queue);
  const CompletionThreads threads({&queue}, /*assisted=*/true);
  while (begun.load(std::memory_order_relaxed) < 2) std::this_thread::yield();
}

}  // namespace
}  // namespace sap

int main() {
  sap::Run();
  std::puts("no race was reported");
}
