#include "tests/bench/task_graph.h"

#include <gtest/gtest.h>

namespace sap::bench {
namespace {

// A solve that runs for `before`, then a loop of `count` tasks of `each`, then for `after`.
TaskGraph OneLoop(int count, double before, double each, double after) {
  TaskGraph graph;
  graph.tasks = {{.loops = {{before, 0}}, .after_s = after}};
  graph.loops.emplace_back();
  for (int i = 0; i < count; ++i) {
    graph.loops[0].tasks.push_back(static_cast<int>(graph.tasks.size()));
    graph.tasks.push_back({.loops = {}, .after_s = each});
  }
  return graph;
}

// Two tasks, of which the first opens a loop of four and the second takes `second`.
TaskGraph NestedLoops(double inner, double second) {
  TaskGraph graph;
  graph.tasks = {{.loops = {{0, 0}}}, {.loops = {{1, 1}}, .after_s = 2}, {.loops = {}}};
  graph.tasks[2].after_s = second;
  graph.loops = {{{1, 2}}, {{3, 4, 5, 6}}};
  for (int i = 0; i < 4; ++i) graph.tasks.push_back({.loops = {}, .after_s = inner});
  return graph;
}

TEST(TaskGraphTest, OneThreadTakesAllTimesAndThreadsWithoutNumberTheLongestChain) {
  const TaskGraph graph = NestedLoops(4, 10);
  EXPECT_EQ(Work(graph), 1 + 4 * 4 + 2 + 10);
  EXPECT_EQ(CriticalPath(graph), 10);
  EXPECT_EQ(ReplayedTime(graph, 1, {}), Work(graph));
  EXPECT_EQ(ReplayedTime(graph, 64, {}), CriticalPath(graph));
  EXPECT_EQ(CriticalPath(NestedLoops(4, 1)), 1 + 4 + 2);
}

TEST(TaskGraphTest, TasksOfALoopAreDealtOneByOneAndTheRestIsSerial) {
  const TaskGraph graph = OneLoop(10, 3, 2, 5);
  EXPECT_EQ(ReplayedTime(graph, 1, {}), 3 + 20 + 5);
  EXPECT_EQ(ReplayedTime(graph, 2, {}), 3 + 10 + 5);
  EXPECT_EQ(ReplayedTime(graph, 4, {}), 3 + 6 + 5);  // 3 tasks of 2 for two of the four threads
  EXPECT_EQ(ReplayedTime(graph, 10, {}), 3 + 2 + 5);
}

// With two threads the helper is in the task of 10 until then: it takes the last inner task.
TEST(TaskGraphTest, AThreadThatHasEndedItsTaskJoinsTheLoopThatIsOpen) {
  EXPECT_EQ(ReplayedTime(NestedLoops(4, 10), 2, {}), 10 + 4 + 2);
  EXPECT_EQ(ReplayedTime(NestedLoops(4, 10), 3, {}), 1 + 2 * 4 + 2);
  EXPECT_EQ(ReplayedTime(NestedLoops(4, 1), 2, {}), 1 + 2 * 4 + 2);
}

// With two threads the one that opened the outer loop ends its task of 1 when the other opens the
// inner loop, and takes half of that.
TEST(TaskGraphTest, AThreadThatWaitsForItsLoopHelpsWithLoopsOpenedWithinIt) {
  TaskGraph graph = NestedLoops(4, 1);
  std::swap(graph.loops[0].tasks[0], graph.loops[0].tasks[1]);
  EXPECT_EQ(ReplayedTime(graph, 2, {}), 1 + 2 * 4 + 2);
}

TEST(TaskGraphTest, OpeningAndJoiningALoopTakeTheirTime) {
  EXPECT_EQ(ReplayedTime(OneLoop(2, 0, 8, 0), 1, {.loop_s = 0.5}), 0.5 + 16);
  EXPECT_EQ(ReplayedTime(OneLoop(2, 0, 8, 0), 2, {.loop_s = 0.5}), 0.5 + 0.5 + 8);
}

// Two tasks of 8 and a solve that runs for 3 before them and for 5 after: not a task of a loop.
TEST(TaskGraphTest, ShortTasksOfLoopsTakeLongerWhereThreadsShareThem) {
  const TaskGraph graph = OneLoop(2, 3, 8, 5);
  const SharingCosts costs{.stretch = 1.5, .short_s = 9};
  EXPECT_EQ(ReplayedTime(graph, 2, costs), 3 + 12 + 5);
  EXPECT_EQ(ReplayedTime(graph, 1, costs), 3 + 16 + 5);
  EXPECT_EQ(ReplayedTime(graph, 2, {.stretch = 1.5, .short_s = 8}), 3 + 8 + 5);
}

// Two threads: the loop of ten takes 5 rounds of 2, the solve itself 3 before it and 5 after.
TEST(TaskGraphTest, PartsOfAReplayedTimeAddUpToIt) {
  const int name = 0;
  TaskGraph graph = OneLoop(10, 3, 2, 5);
  graph.loops[0].body = &name;
  const std::vector<PartOfTime> parts = PartsOfReplayedTime(graph, 2, {});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].body, &name);
  EXPECT_EQ(parts[0].loops, 1);
  EXPECT_EQ(parts[0].serial_s, 3);
  EXPECT_EQ(parts[0].loop_s, 10);
  EXPECT_EQ(parts[0].work_s, 20);
  EXPECT_EQ(parts[1].body, nullptr);
  EXPECT_EQ(parts[1].loop_s, 5);
}

// The task of 1, its loop of 4 tasks of 4 on two threads and its end of 2; the task of 1 is short.
TEST(TaskGraphTest, PartsOfALoopWithinATaskAreThoseOfItsBody) {
  const int outer = 0;
  const int inner = 0;
  TaskGraph graph = NestedLoops(4, 1);
  graph.loops[0].body = &outer;
  graph.loops[1].body = &inner;
  double of_outer = 0;
  double of_inner = 0;
  for (const PartOfTime& part : PartsOfReplayedTime(graph, 2, {})) {
    if (part.body == &outer) of_outer = part.serial_s + part.loop_s;
    if (part.body == &inner) of_inner = part.serial_s + part.loop_s;
  }
  EXPECT_EQ(of_inner, 1 + 2 * 4);
  EXPECT_EQ(of_outer, 2);
}

// A loop of five tasks: 1 and 2 take 4 and 1; 3 waits for 2 and takes 6, 4 for 1 and 3, 5 for none.
TaskGraph OrderedTasks() {
  TaskGraph graph;
  graph.tasks = {{.loops = {{1, 0}}, .after_s = 2}};
  for (const double time : {4, 1, 6, 3, 5}) graph.tasks.push_back({.loops = {}, .after_s = time});
  graph.tasks[1].next = {4};
  graph.tasks[2].next = {3};
  graph.tasks[3].next = {4};
  graph.tasks[3].num_before = 1;
  graph.tasks[4].num_before = 2;
  graph.loops = {{{1, 2, 5, 3, 4}}};
  return graph;
}

// On two threads 1, then 5 on one; 2, 3 and 4 on the other.
TEST(TaskGraphTest, AThreadGoesOnWithTheTaskThatWaitedForTheOneItHasDone) {
  EXPECT_EQ(CriticalPath(OrderedTasks()), 1 + 1 + 6 + 3 + 2);
  EXPECT_EQ(ReplayedTime(OrderedTasks(), 1, {}), Work(OrderedTasks()));
  EXPECT_EQ(ReplayedTime(OrderedTasks(), 2, {}), 1 + 10 + 2);
  EXPECT_EQ(ReplayedTime(OrderedTasks(), 3, {}), 1 + 10 + 2);
}

TEST(TaskGraphTest, PartsOfTasksThatWaitForOthersAddUpToo) {
  TaskGraph graph = OrderedTasks();
  const int body = 0;
  graph.loops[0].body = &body;
  double sum = 0;
  for (const PartOfTime& part : PartsOfReplayedTime(graph, 2, {}))
    sum += part.serial_s + part.loop_s;
  EXPECT_EQ(sum, ReplayedTime(graph, 2, {}));
}

TEST(TaskGraphTest, OfTwoRecordingsTheLesserTimeOfEachTaskIsKept) {
  TaskGraph graph = OneLoop(3, 3, 2, 5);
  KeepLeastTimes(OneLoop(3, 4, 1, 6), &graph);
  EXPECT_EQ(Work(graph), 3 + 3 * 1 + 5);
  KeepLeastTimes(OneLoop(3, 1, 4, 2), &graph);
  EXPECT_EQ(Work(graph), 1 + 3 * 1 + 2);
}

}  // namespace
}  // namespace sap::bench
