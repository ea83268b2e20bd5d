#include "server/engine/batch.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "server/engine/problem_decoder.h"

namespace sap {
namespace {

// By the size of their messages, which is known without decoding them.
std::vector<int> LargestFirst(const Batch::Problems& problems) {
  std::vector<size_t> bytes;
  for (const v1::ContactProblem& problem : problems) bytes.push_back(problem.ByteSizeLong());
  std::vector<int> order(problems.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int a, int b) { return bytes[a] > bytes[b]; });
  return order;
}

}  // namespace

void Batch::Run(const Problems& problems, TaskArena* arena, const SolveProblem& solve) {
  const std::vector<int> order = LargestFirst(problems);
  arena->ParallelFor(static_cast<int>(order.size()),
                     [&](int i) { solve(order[i], Turn::kOnArena); });
}

void Batch::Start(const Problems& problems, const Place& place, SolveProblem solve,
                  std::function<void()> done) {
  if (problems.empty()) return done();
  // Goes with the last of its workers.
  auto* batch = new Batch(problems, place, std::move(solve), std::move(done));
  // Enqueuing the last of them may be the last thing that the batch lives to see.
  const size_t count = batch->workers_.size();
  for (size_t i = 0; i < count; ++i) batch->Enqueue(&batch->workers_[i]);
}

Batch::Batch(const Problems& problems, const Place& place, SolveProblem solve,
             std::function<void()> done)
    : problems_(problems),
      place_(place),
      solve_(std::move(solve)),
      done_(std::move(done)),
      order_(LargestFirst(problems)),
      workers_(std::min<size_t>(order_.size(), place.num_threads)),
      next_(workers_.size()),
      unsolved_(order_.size()) {
  for (size_t i = 0; i < workers_.size(); ++i) workers_[i] = {this, static_cast<int>(i), {}};
}

void Batch::Enqueue(Worker* worker) {
  QueuedTask& task = worker->task;
  task.run = [](void* context, Turn turn) {
    auto* worker = static_cast<Worker*>(context);
    worker->batch->Work(worker, turn);
  };
  task.context = worker;
  task.account = place_.account;
  task.priority = place_.priority;
  task.work_s = PredictedWork(problems_[order_[worker->index]]);
  task.preadmitted = true;
  (void)place_.queue->Push(&task);  // never refused: the batch was let in as a whole
}

void Batch::Work(Worker* worker, Turn turn) {
  solve_(order_[worker->index], turn);
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
