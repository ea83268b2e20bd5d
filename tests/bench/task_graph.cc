#include "tests/bench/task_graph.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <map>
#include <queue>
#include <utility>

namespace sap::bench {

namespace {

double OwnTime(const TaskGraph::Task& task) {
  double seconds = task.after_s;
  for (const TaskGraph::OpenedLoop& opened : task.loops) seconds += opened.before_s;
  return seconds;
}

class Replay {
 public:
  Replay(const TaskGraph& graph, int threads, const SharingCosts& costs)
      : graph_(graph),
        costs_(costs),
        threads_(threads),
        loops_(graph.loops.size()),
        tasks_(graph.tasks.size()),
        missing_(graph.tasks.size()),
        frames_(threads),
        waits_for_(threads, kNone) {
    std::ranges::transform(graph.tasks, missing_.begin(), &TaskGraph::Task::num_before);
    for (int thread = threads - 1; thread > 0; --thread) idle_.push_back(thread);
  }

  // Every thread has at most one event to come: the end of the time that it runs by itself.
  double Run() {
    Start(0, {.in_loop = kNone, .opened_it = false}, 0, 0);
    double now = 0;
    while (!events_.empty()) {
      const auto [time, thread] = events_.top();
      events_.pop();
      now = time;
      Proceed(thread, now);
    }
    return now;
  }

  // After Run: the time of every task is that of a part.
  std::vector<PartOfTime> Parts() {
    for (const TaskGraph::Loop& loop : graph_.loops) {
      PartOfTime& part = parts_[loop.body];
      part.body = loop.body;
      ++part.loops;
      for (const int task : loop.tasks) part.work_s += OwnTime(graph_.tasks[task]);
    }
    AddTask(0, nullptr);
    std::vector<PartOfTime> parts;
    for (const auto& [body, part] : parts_) parts.push_back(part);
    std::ranges::sort(parts, std::ranges::greater(),
                      [](const PartOfTime& part) { return part.serial_s + part.loop_s; });
    return parts;
  }

 private:
  static constexpr int kNone = -1;

  struct LoopState {
    size_t next{0};     // task to be claimed
    int running{0};     // tasks that have begun and not ended
    int opener{kNone};  // thread
    int outer{kNone};   // the loop in whose task it was opened
    double opened_s{0};
    double closed_s{0};
  };
  struct TaskTimes {
    double begin_s{0};
    double end_s{0};
  };
  struct Claimed {
    int in_loop;
    bool opened_it;
    std::vector<int> ready{};  // tasks that have waited for those which the thread has done
  };
  // A task that a thread is in.
  struct Frame {
    int task;
    Claimed from;
    size_t loops_done;
  };
  using Event = std::pair<double, int>;  // time, thread

  bool HasTasks(int loop) const {
    const std::vector<int>& tasks = graph_.loops[loop].tasks;
    const size_t next = loops_[loop].next;
    return next < tasks.size() && graph_.tasks[tasks[next]].num_before == 0;
  }

  double Stretch(const Frame& frame) const {
    const bool is_shared = threads_ > 1 && frame.from.in_loop != kNone;
    return is_shared && OwnTime(graph_.tasks[frame.task]) < costs_.short_s ? costs_.stretch : 1;
  }

  void Schedule(int thread, double now) {
    const Frame& frame = frames_[thread].back();
    const TaskGraph::Task& task = graph_.tasks[frame.task];
    const bool opens = frame.loops_done < task.loops.size();
    const double alone_s = opens ? task.loops[frame.loops_done].before_s : task.after_s;
    events_.emplace(now + Stretch(frame) * alone_s + (opens ? costs_.loop_s : 0), thread);
  }
  void Start(int task, const Claimed& from, int thread, double now) {
    frames_[thread].push_back({task, from, 0});
    tasks_[task].begin_s = now;
    Schedule(thread, now);
  }
  void Claim(const Claimed& from, int thread, double now) {
    LoopState& state = loops_[from.in_loop];
    ++state.running;
    Start(graph_.loops[from.in_loop].tasks[state.next++], from, thread, now);
  }

  // The thread has come to the next loop of its task, or to its end.
  void Proceed(int thread, double now) {
    const Frame frame = frames_[thread].back();
    const TaskGraph::Task& task = graph_.tasks[frame.task];
    if (frame.loops_done < task.loops.size()) {
      const int loop = task.loops[frame.loops_done].loop;
      loops_[loop].opened_s = now;
      loops_[loop].opener = thread;
      loops_[loop].outer = frame.from.in_loop;
      open_.push_back(loop);
      Claim({.in_loop = loop, .opened_it = true}, thread, now);
      Recruit(loop, now);
      return;
    }
    tasks_[frame.task].end_s = now;
    frames_[thread].pop_back();
    if (frame.from.in_loop == kNone) return;
    Claimed from = frame.from;
    for (const int next : task.next) {
      if (--missing_[next] == 0) from.ready.push_back(next);
    }
    if (from.ready.empty()) return EndTask(from, thread, now);
    const int next = from.ready.back();
    from.ready.pop_back();
    Start(next, from, thread, now);
  }

  // Threads without work join a loop that was opened.
  void Recruit(int loop, double now) {
    while (!idle_.empty() && HasTasks(loop)) {
      const int helper = idle_.back();
      idle_.pop_back();
      Help(helper, now);
    }
    for (int thread = 0; thread < static_cast<int>(frames_.size()) && HasTasks(loop); ++thread) {
      if (waits_for_[thread] != kNone) WaitFor(waits_for_[thread], thread, now);
    }
  }

  void EndTask(const Claimed& from, int thread, double now) {
    LoopState& state = loops_[from.in_loop];
    --state.running;
    if (HasTasks(from.in_loop)) return Claim(from, thread, now);
    if (state.running == 0 && waits_for_[state.opener] == from.in_loop) {
      WaitFor(from.in_loop, state.opener, now);
    }
    if (frames_[thread].empty()) {
      Help(thread, now);
    } else {
      const Frame& frame = frames_[thread].back();  // of which this thread has opened the next loop
      WaitFor(graph_.tasks[frame.task].loops[frame.loops_done].loop, thread, now);
    }
  }

  // The thread that opened the loop, which has no task left for it, goes on once all have ended.
  // Until then it helps with loops that were opened within them.
  void WaitFor(int loop, int thread, double now) {
    waits_for_[thread] = kNone;
    if (loops_[loop].running == 0) {
      ++frames_[thread].back().loops_done;
      loops_[loop].closed_s = now;
      return Schedule(thread, now);
    }
    for (const int open : open_) {
      if (!HasTasks(open) || !IsWithin(open, loop)) continue;
      return Claim({.in_loop = open, .opened_it = false}, thread, now + costs_.loop_s);
    }
    waits_for_[thread] = loop;
  }

  bool IsWithin(int loop, int outer) const {
    while (loop != kNone && loop != outer) loop = loops_[loop].outer;
    return loop == outer;
  }

  void Help(int thread, double now) {
    std::erase_if(open_, [this](int loop) { return !HasTasks(loop); });
    if (open_.empty()) {
      idle_.push_back(thread);
    } else {
      Claim({.in_loop = open_.front(), .opened_it = false}, thread, now + costs_.loop_s);
    }
  }

  // Adds the time of a task of a loop with this body.
  void AddTask(int task, const void* body) {
    double since = tasks_[task].begin_s;
    for (const auto& [before_s, loop] : graph_.tasks[task].loops) {
      const LoopState& state = loops_[loop];
      const std::vector<int>& tasks = graph_.loops[loop].tasks;
      PartOfTime& part = parts_[graph_.loops[loop].body];
      part.serial_s += state.opened_s - since;
      since = state.closed_s;
      const auto end = [this](int of_loop) { return tasks_[of_loop].end_s; };
      int last = *std::ranges::max_element(tasks, std::ranges::less(), end);
      part.loop_s += state.closed_s - tasks_[last].end_s;
      while (true) {
        AddTask(last, graph_.loops[loop].body);
        const double begin_s = tasks_[last].begin_s;
        const auto before = std::ranges::find_if(tasks, [&](int of_loop) {
          return std::ranges::find(graph_.tasks[of_loop].next, last) !=
                     graph_.tasks[of_loop].next.end() &&
                 end(of_loop) == begin_s;
        });
        if (before == tasks.end()) break;
        last = *before;
      }
      part.loop_s += tasks_[last].begin_s - state.opened_s;
    }
    parts_[body].loop_s += tasks_[task].end_s - since;
  }

  const TaskGraph& graph_;
  const SharingCosts costs_;
  const int threads_;
  std::vector<LoopState> loops_;
  std::vector<TaskTimes> tasks_;
  std::vector<int> missing_;                 // by task: of those that it waits for
  std::map<const void*, PartOfTime> parts_;  // by body
  std::vector<std::vector<Frame>> frames_;   // by thread, the innermost last
  std::vector<int> open_;                    // in the order in which they were opened
  std::vector<int> idle_;
  std::vector<int> waits_for_;  // by thread: the loop it has opened and waits for without work
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace

SharingCosts SharingCosts::Of(int threads) {
  constexpr double kShort_s = 100e-6;
  if (threads >= 8) return {.loop_s = 2e-6, .stretch = 2, .short_s = kShort_s};
  if (threads >= 4) return {.loop_s = 1.5e-6, .stretch = 1.5, .short_s = kShort_s};
  return {.loop_s = 1e-6};
}

void KeepLeastTimes(const TaskGraph& other, TaskGraph* graph) {
  assert(other.tasks.size() == graph->tasks.size());
  const auto keep = [](double time, double* least) { *least = std::min(*least, time); };
  for (size_t i = 0; i < graph->tasks.size(); ++i) {
    TaskGraph::Task& task = graph->tasks[i];
    assert(other.tasks[i].loops.size() == task.loops.size());
    keep(other.tasks[i].after_s, &task.after_s);
    for (size_t k = 0; k < task.loops.size(); ++k) {
      keep(other.tasks[i].loops[k].before_s, &task.loops[k].before_s);
    }
  }
}

double Work(const TaskGraph& graph) {
  double seconds = 0;
  for (const TaskGraph::Task& task : graph.tasks) seconds += OwnTime(task);
  return seconds;
}

double CriticalPath(const TaskGraph& graph) {
  // A task is recorded before those of its loops and those that wait for it.
  std::vector<double> path(graph.tasks.size());
  for (size_t i = graph.tasks.size(); i-- > 0;) {
    path[i] = OwnTime(graph.tasks[i]);
    for (const TaskGraph::OpenedLoop& opened : graph.tasks[i].loops) {
      double longest = 0;
      for (const int task : graph.loops[opened.loop].tasks) {
        longest = std::max(longest, path[task]);
      }
      path[i] += longest;
    }
    double longest = 0;
    for (const int next : graph.tasks[i].next) longest = std::max(longest, path[next]);
    path[i] += longest;
  }
  return path.empty() ? 0 : path[0];
}

double ReplayedTime(const TaskGraph& graph, int threads, const SharingCosts& costs) {
  if (graph.tasks.empty()) return 0;
  return Replay(graph, threads, costs).Run();
}

std::vector<PartOfTime> PartsOfReplayedTime(const TaskGraph& graph, int threads,
                                            const SharingCosts& costs) {
  if (graph.tasks.empty()) return {};
  Replay replay(graph, threads, costs);
  replay.Run();
  return replay.Parts();
}

}  // namespace sap::bench
