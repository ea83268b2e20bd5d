#include "tests/bench/recording_arena.h"

#include <chrono>
#include <utility>

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
    const int loop = static_cast<int>(graph_.loops.size());
    graph_.loops.push_back({.tasks = {}, .body = reinterpret_cast<const void*>(body)});
    graph_.tasks[opener].loops.push_back({SinceLast(), loop});
    for (int index = 0; index < count; ++index) {
      current_ = static_cast<int>(graph_.tasks.size());
      graph_.tasks.emplace_back();
      graph_.loops[loop].tasks.push_back(current_);
      const int task = current_;
      since_ = Clock::now();
      body(context, index);
      graph_.tasks[task].after_s = SinceLast();
    }
    current_ = opener;
    since_ = Clock::now();
  }

 private:
  static constexpr int kNone = -1;

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

void TaskArena::Enqueue(void (*task)(void* context) noexcept, void* context) { task(context); }

}  // namespace sap
