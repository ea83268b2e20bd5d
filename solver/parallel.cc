#include "solver/parallel.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>

#include "solver/task_loop.h"

namespace sap {

namespace {

// oneTBB makes no more workers than the machine has cores unless told so; the arenas set their own
// sizes here. Limits of several live objects combine to the smallest, so there is one for the
// process.
void AllowMoreThreadsThanCores() {
  constexpr int kMostThreads = 256;
  static oneapi::tbb::global_control control(oneapi::tbb::global_control::max_allowed_parallelism,
                                             kMostThreads);
}

}  // namespace

struct TaskArena::Impl {
  // No slot is kept for callers: enqueued tasks may fill all of them.
  explicit Impl(int num_threads) : arena(num_threads, 0) { AllowMoreThreadsThanCores(); }
  oneapi::tbb::task_arena arena;
};

TaskArena::TaskArena(int num_threads)
    : num_threads_(num_threads), impl_(std::make_unique<Impl>(num_threads)) {}

TaskArena::~TaskArena() = default;

void TaskArena::ParallelFor(int count, void (*body)(void* context, int index), void* context) {
  if (num_threads_ == 1 || count <= 1) {
    for (int i = 0; i < count; ++i) body(context, i);
    return;
  }
  // One task per thread, each claiming the next index: indices start in ascending order, which a
  // range split in halves would not give. Isolated, so that a waiting thread does not pick up a
  // task of another loop and hold this one up.
  const int num_tasks = count < num_threads_ ? count : num_threads_;
  TaskLoop loop(count, body, context);
  const auto work = [&](int) { loop.Work(); };
  impl_->arena.execute([&] {
    oneapi::tbb::this_task_arena::isolate(
        [&] { oneapi::tbb::parallel_for(0, num_tasks, work, oneapi::tbb::simple_partitioner()); });
  });
  loop.Finish();
}

void TaskArena::Enqueue(void (*task)(void* context), void* context) {
  HandOver();
  impl_->arena.enqueue([task, context] {
    TakeOver();
    task(context);
  });
}

}  // namespace sap
