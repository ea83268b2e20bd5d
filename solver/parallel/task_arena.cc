#include "solver/parallel/task_arena.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>

#include "solver/parallel/forked_threads.h"
#include "solver/parallel/work_sharing_loops.h"

namespace sap {

namespace {

// oneTBB makes at most as many workers as the machine has cores unless a global_control allows
// more; here the size of each arena decides. Several such objects combine to the smallest limit, so
// the process has one.
void AllowMoreThreadsThanCores() {
  constexpr int kMostThreads = 256;
  static oneapi::tbb::global_control control(oneapi::tbb::global_control::max_allowed_parallelism,
                                             kMostThreads);
}

}  // namespace

struct TaskArena::Impl {
  Impl(int num_threads, Sharing sharing) : loops(num_threads, sharing) {
    if (ForkGeneration() > 0) {
      forked.emplace(num_threads);
    } else {
      // No slot is kept for callers: enqueued tasks may fill all of them.
      arena.emplace(num_threads, 0);
      AllowMoreThreadsThanCores();
    }
  }

  template <typename Task>
  void Enqueue(Task&& task) {
    if (forked) {
      forked->Enqueue(std::forward<Task>(task));
    } else {
      arena->enqueue(std::forward<Task>(task));
    }
  }

  // One of the two.
  std::optional<oneapi::tbb::task_arena> arena;
  std::optional<ForkedThreads> forked;
  WorkSharingLoops loops;
};

TaskArena::TaskArena(int num_threads, Sharing sharing)
    : num_threads_(num_threads),
      sharing_(sharing),
      impl_(std::make_unique<Impl>(num_threads, sharing)) {}

TaskArena::~TaskArena() = default;

bool TaskArena::has_helpers() const { return impl_->loops.has_helpers(); }

void TaskArena::RunLoop(int count, bool ascending, void (*body)(void* context, int index),
                        void* context) {
  WorkSharingLoops::Loop* loop = nullptr;
  if (num_threads_ > 1 && count > 1) {
    const auto claim =
        ascending ? WorkSharingLoops::Claim::kAscending : WorkSharingLoops::Claim::kByNeighbors;
    loop = impl_->loops.Open(count, claim, body, context);
  }
  if (loop == nullptr) {
    for (int i = 0; i < count; ++i) body(context, i);
    return;
  }
  while (impl_->loops.InviteHelper(std::min(count, num_threads_) - 1)) {
    if (!SendHelper()) break;
  }
  impl_->loops.Finish(loop);
}

// False if there is no memory for it. The loop does not need helpers, but it must be finished.
bool TaskArena::SendHelper() {
  try {
    impl_->Enqueue([loops = &impl_->loops] { loops->Help(); });
    return true;
  } catch (...) {
    impl_->loops.WithdrawInvitation();
    return false;
  }
}

void TaskArena::Enqueue(void (*task)(void* context) noexcept, void* context) {
  impl_->loops.TaskWaits();
  try {
    impl_->Enqueue([loops = &impl_->loops, task, context] {
      loops->TaskStarts();
      task(context);
    });
  } catch (...) {
    impl_->loops.TaskStarts();
    std::rethrow_exception(std::current_exception());
  }
}

}  // namespace sap
