#include "tests/bench/recording_arena.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "solver/parallel/task_arena.h"

namespace sap {
namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

// State of the one thread that records.
class Recorder {
 public:
  void Start() {
    graph_ = {};
    graph_.tasks.emplace_back();
    current_ = 0;
    since_ = Clock::now();
  }
  TaskGraph Take() {
    graph_.tasks[0].after_s = SinceLast();
    current_ = kNone;
    return std::exchange(graph_, {});
  }
  bool is_recording() const { return current_ != kNone; }

  void RunLoop(int count, void (*body)(void* context, int index), void* context) {
    const int opener = current_;
    const int loop = OpenLoop(body);
    for (int index = 0; index < count; ++index) RunTask(loop, index, body, context);
    CloseLoop(opener);
  }
  void RunTasks(const TaskOrder& order, int* state, void (*body)(void* context, int index),
                void* context) {
    const int opener = current_;
    const int loop = OpenLoop(body);
    std::vector<int> recorded(order.size());
    for (const int first : order.first) {
      RunFromTask(order, first, state,
                  [&](int task) { recorded[task] = RunTask(loop, task, body, context); });
    }
    for (int task = 0; task < order.size(); ++task) {
      TaskGraph::Task& of = graph_.tasks[recorded[task]];
      of.num_before = order.num_before[task];
      for (const int next : order.waiting_for(task)) of.next.push_back(recorded[next]);
    }
    std::ranges::stable_partition(graph_.loops[loop].tasks,
                                  [&](int task) { return graph_.tasks[task].num_before == 0; });
    CloseLoop(opener);
  }

 private:
  static constexpr int kNone = -1;

  int OpenLoop(void (*body)(void* context, int index)) {
    const int loop = static_cast<int>(graph_.loops.size());
    graph_.loops.push_back({.tasks = {}, .body = reinterpret_cast<const void*>(body)});
    graph_.tasks[current_].loops.push_back({SinceLast(), loop});
    return loop;
  }
  int RunTask(int loop, int index, void (*body)(void* context, int index), void* context) {
    const int task = static_cast<int>(graph_.tasks.size());
    current_ = task;
    graph_.tasks.emplace_back();
    graph_.loops[loop].tasks.push_back(task);
    since_ = Clock::now();
    body(context, index);
    graph_.tasks[task].after_s = SinceLast();
    return task;
  }
  void CloseLoop(int opener) {
    current_ = opener;
    since_ = Clock::now();
  }

  double SinceLast() { return std::chrono::duration<double>(Clock::now() - since_).count(); }

  TaskGraph graph_;
  int current_{kNone};
  Clock::time_point since_;
};

Recorder recorder;

}  // namespace

void StartRecording() { recorder.Start(); }
TaskGraph TakeRecording() { return recorder.Take(); }

}  // namespace bench

struct TaskArena::Impl {};

// The times are the same for any number of threads: none is to be tried.
TaskArena::TaskArena(int num_threads, Sharing /*sharing*/)
    : num_threads_(num_threads), sharing_(Sharing::kAlways) {}
TaskArena::~TaskArena() = default;

// As after the first loop of a solve.
bool TaskArena::has_helpers() const { return true; }

void TaskArena::RunLoop(int count, bool /*ascending*/, void (*body)(void* context, int index),
                        void* context) {
  if (bench::recorder.is_recording() && num_threads_ > 1 && count > 1) {
    bench::recorder.RunLoop(count, body, context);
  } else {
    for (int index = 0; index < count; ++index) body(context, index);
  }
}

void TaskArena::RunTasks(const TaskOrder& order, int* state, void (*body)(void* context, int index),
                         void* context) {
  std::ranges::copy(order.num_before, state);
  if (bench::recorder.is_recording() && num_threads_ > 1) {
    bench::recorder.RunTasks(order, state, body, context);
  } else {
    for (const int first : order.first) {
      RunFromTask(order, first, state, [&](int task) { body(context, task); });
    }
  }
}

void TaskArena::Enqueue(void (*task)(void* context) noexcept, void* context) { task(context); }

}  // namespace sap
