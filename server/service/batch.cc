#include "server/service/batch.h"

#include <algorithm>
#include <utility>

#include "solver/engine/engine.h"

namespace sap {
namespace {

std::vector<int64_t> SizesOf(const Batch::Problems& problems) {
  std::vector<int64_t> sizes;
  for (const Batch::Problem& problem : problems) sizes.push_back(problem.bytes);
  return sizes;
}

}  // namespace

void Batch::Start(Problems problems, const QueueTarget& target, SolveProblem solve,
                  std::function<void()> done) {
  if (problems.empty()) return done();
  // Deleted by the last worker, in Work.
  auto* batch = new Batch(std::move(problems), target, std::move(solve), std::move(done));
  // The batch may be deleted during the last Enqueue, so the count is copied first.
  const size_t count = batch->workers_.size();
  for (size_t i = 0; i < count; ++i) batch->Enqueue(&batch->workers_[i]);
}

Batch::Batch(Problems problems, const QueueTarget& target, SolveProblem solve,
             std::function<void()> done)
    : problems_(std::move(problems)),
      target_(target),
      solve_(std::move(solve)),
      done_(std::move(done)),
      order_(LargestFirst(SizesOf(problems_))),
      workers_(std::min<size_t>(order_.size(), target.num_threads)),
      next_(workers_.size()),
      unsolved_(order_.size()) {
  for (size_t i = 0; i < workers_.size(); ++i) workers_[i] = {this, static_cast<int>(i), {}};
}

void Batch::Enqueue(Worker* worker) {
  QueuedTask& task = worker->task;
  task.run = [](void* context, Dispatch dispatch) {
    auto* worker = static_cast<Worker*>(context);
    worker->batch->Work(worker, dispatch);
  };
  task.context = worker;
  task.account = target_.account;
  task.priority = target_.priority;
  task.work_s = share_.load(std::memory_order_relaxed) * problems_[order_[worker->index]].work_s;
  task.preadmitted = true;
  (void)target_.queue->Push(&task);  // cannot fail: the batch was admitted as a whole
}

void Batch::Work(Worker* worker, Dispatch dispatch) {
  const int problem = order_[worker->index];
  const double share = solve_(problem, dispatch);
  share_.store(share, std::memory_order_relaxed);
  if (share < 1) target_.release_work((1 - share) * problems_[problem].work_s);
  const size_t next = next_.fetch_add(1);
  if (next < order_.size()) {
    worker->index = static_cast<int>(next);
    --unsolved_;
    return Enqueue(worker);
  }
  if (--unsolved_ > 0) return;
  done_();
  delete this;
}

}  // namespace sap
