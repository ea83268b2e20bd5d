// Who may run on which thread: no client runs normal tasks on all threads, nobody waits for threads
// that are free, and who holds the arena does not keep others from the thread beyond it. In every
// order of events.
#include "server/scheduling/fair_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sap {
namespace {

using std::chrono::milliseconds;
using Clock = FairOrder::Clock;

constexpr milliseconds kHeld{50};

// An order with its clients, threads and clock, driven by hand. Tasks take as long as predicted.
class World {
 public:
  static constexpr int kThreads = 2;  // of the arena
  static constexpr int kClients = 3;

  enum class Phase : char { kQueued = 'q', kArena = 'a', kBeyond = 'b', kEnded = 'e' };

  void Push(int client, Priority priority) {
    Item& item = items_.emplace_back();
    item.client = client;
    item.task.account = &accounts_[client];
    item.task.priority = priority;
    item.task.expected_s = item.task.work_s = 0.1;
    if (order_.Append(&item.task, now_)) StartWorker();
  }

  // A worker that was started gets its thread. Returns the client that it runs; nothing: none.
  std::optional<int> WorkerComes() {
    --coming_;
    return Started(order_.StartOnArena(now_), Phase::kArena);
  }
  std::optional<int> StartBeyondArena() {
    return Started(order_.StartBeyondArena(now_), Phase::kBeyond);
  }

  // A worker whose task has ended goes on with the next one.
  void End(size_t index) {
    Item& item = items_[index];
    const bool goes_on = item.phase == Phase::kArena;
    item.phase = Phase::kEnded;
    if (order_.End(item.task, item.task.expected_s, true, now_)) StartWorker();
    if (goes_on) Started(order_.StartOnArena(now_), Phase::kArena);
  }

  void Wait() {
    now_ += kHeld;
    waited_ = true;
  }

  size_t size() const { return items_.size(); }
  Phase phase(size_t index) const { return items_[index].phase; }
  int coming() const { return coming_; }
  bool waited() const { return waited_; }

  int Count(int client, Phase phase) const {
    return static_cast<int>(std::ranges::count_if(items_, [&](const Item& item) {
      return (client < 0 || item.client == client) && item.phase == phase;
    }));
  }
  bool IsHighBeyond() const {
    return std::ranges::any_of(items_, [](const Item& item) {
      return item.phase == Phase::kBeyond && item.task.priority == Priority::kHigh;
    });
  }
  int Running(int client) const {
    return Count(client, Phase::kArena) + Count(client, Phase::kBeyond);
  }
  int Pushed(int client) const {
    return static_cast<int>(std::ranges::count(items_, client, &Item::client));
  }

  // Tasks that wait and run, whatever the virtual times.
  std::string State() const {
    std::array<std::string, kClients> tasks;
    for (const Item& item : items_) {
      tasks[item.client] += item.task.priority == Priority::kHigh ? 'h' : 'n';
      tasks[item.client] += static_cast<char>(item.phase);
    }
    std::string state = std::to_string(coming_) + (waited_ ? "w" : "-");
    for (const std::string& of_client : tasks) state += "|" + of_client;
    return state;
  }

 private:
  struct Item {
    int client{0};
    Phase phase{Phase::kQueued};
    QueuedTask task;
  };

  void StartWorker() {
    ++coming_;
    waited_ = false;
  }

  std::optional<int> Started(const QueuedTask* task, Phase phase) {
    if (task == nullptr) return std::nullopt;
    if (phase == Phase::kArena) waited_ = false;
    const auto item = std::ranges::find(items_, task, [](const Item& each) { return &each.task; });
    const auto first = std::ranges::find_if(items_, [&](const Item& each) {
      return each.client == item->client && each.phase == Phase::kQueued &&
             each.task.priority == task->priority;
    });
    EXPECT_EQ(item, first) << "not the first of its client: " << State();
    item->phase = phase;
    return item->client;
  }

  std::array<ClientAccount, kClients> accounts_{ClientAccount("a"), ClientAccount("b"),
                                                ClientAccount("c")};
  std::deque<Item> items_;
  Clock::time_point now_{std::chrono::hours(1)};
  int coming_{0};       // workers that were started and have no thread yet
  bool waited_{false};  // since a worker was started, or a task began in the arena
  FairOrder order_{kThreads, kHeld};
};

using Phase = World::Phase;

// An event, and its subject: a client, or the index of a task.
struct Event {
  enum class Kind : uint8_t { kPush, kPushHigh, kWorkerComes, kBeyond, kEnd, kWait } kind;
  int subject{0};
};

// Whether the event could happen; if so it has.
bool Happen(const Event& event, const std::array<int, World::kClients>& most, World* world) {
  switch (event.kind) {
    case Event::Kind::kPush:
    case Event::Kind::kPushHigh:
      if (world->Pushed(event.subject) == most[event.subject]) return false;
      world->Push(event.subject,
                  event.kind == Event::Kind::kPush ? Priority::kNormal : Priority::kHigh);
      return true;
    case Event::Kind::kWorkerComes:
      if (world->coming() == 0) return false;
      world->WorkerComes();
      return true;
    case Event::Kind::kBeyond: {
      if (world->Count(-1, Phase::kBeyond) > 0) return false;
      std::array<int, World::kClients> before{};
      for (int i = 0; i < World::kClients; ++i) before[i] = world->Running(i);
      const int in_arena = world->Count(-1, Phase::kArena);
      const auto client = world->StartBeyondArena();
      if (!client) return false;
      const bool is_of_others = before[*client] == 0 && in_arena > 0;
      const bool goes_first = world->IsHighBeyond() && in_arena == World::kThreads;
      EXPECT_TRUE(is_of_others || goes_first) << "nobody holds the arena: " << world->State();
      return true;
    }
    case Event::Kind::kEnd: {
      const auto index = static_cast<size_t>(event.subject);
      if (index >= world->size()) return false;
      const Phase phase = world->phase(index);
      if (phase != Phase::kArena && phase != Phase::kBeyond) return false;
      world->End(index);
      return true;
    }
    case Event::Kind::kWait:
      if (world->waited()) return false;
      world->Wait();
      return true;
  }
  return false;
}

void Check(World* world) {
  const int in_arena = world->Count(-1, Phase::kArena);
  const bool is_busy_beyond = world->Count(-1, Phase::kBeyond) > 0;
  int queued_of_others = 0;  // than the client beyond the arena
  for (int client = 0; client < World::kClients; ++client) {
    if (world->Count(client, Phase::kBeyond) == 0) {
      queued_of_others += world->Count(client, Phase::kQueued);
    }
  }
  // Where tasks wait, each thread runs one, or its worker is on its way. Who runs beyond the arena
  // leaves a thread of it to others.
  const auto are_used = [&](int threads, int queued) {
    return in_arena + world->coming() >= std::min(threads, in_arena + queued);
  };
  ASSERT_TRUE(are_used(World::kThreads, queued_of_others) &&
              are_used(World::kThreads - 1, world->Count(-1, Phase::kQueued)))
      << "a thread is free: " << world->State();
  for (int client = 0; client < World::kClients; ++client) {
    ASSERT_TRUE(world->Running(client) <= World::kThreads || world->IsHighBeyond())
        << "all threads: " << world->State();
    if (world->Count(client, Phase::kQueued) == 0) continue;
    const bool is_held =
        world->waited() && in_arena > 0 && in_arena + world->coming() == World::kThreads;
    if (world->Running(client) == 0 && is_held && !is_busy_beyond) {
      const std::string state = world->State();
      ASSERT_TRUE(world->StartBeyondArena().has_value()) << "nobody is let beyond: " << state;
      return;
    }
  }
}

// Visits every state that events can lead to, by all paths of new states.
void CheckAllStates(const std::array<int, World::kClients>& most, bool with_high, size_t* states) {
  std::vector<Event> events{
      {Event::Kind::kWorkerComes}, {Event::Kind::kBeyond}, {Event::Kind::kWait}};
  int tasks = 0;
  for (int client = 0; client < World::kClients; ++client) {
    tasks += most[client];
    events.push_back({Event::Kind::kPush, client});
    if (with_high) events.push_back({Event::Kind::kPushHigh, client});
  }
  for (int task = 0; task < tasks; ++task) events.push_back({Event::Kind::kEnd, task});

  std::set<std::string> seen;
  std::deque<std::vector<Event>> paths{{}};
  while (!paths.empty()) {
    for (const Event& event : events) {
      World world;
      for (const Event& before : paths.front()) Happen(before, most, &world);
      if (!Happen(event, most, &world)) continue;
      if (!seen.insert(world.State()).second) continue;
      std::vector<Event> path = paths.front();
      path.push_back(event);
      paths.push_back(std::move(path));
      Check(&world);
      if (testing::Test::HasFailure()) return;
    }
    paths.pop_front();
  }
  *states = seen.size();
}

// Three clients, three threads: bursts, late workers, solves without an end, in every order.
TEST(FairOrderTest, NoClientTakesAllThreadsAndNobodyWaitsForAFreeOne) {
  size_t states = 0;
  CheckAllStates({3, 2, 2}, /*with_high=*/false, &states);
  EXPECT_GT(states, 5000u);
}

TEST(FairOrderTest, NorWhereSomeTasksAreOfHighPriority) {
  size_t states = 0;
  CheckAllStates({3, 1, 1}, /*with_high=*/true, &states);
  EXPECT_GT(states, 5000u);
}

// The solver threads of an idle server may have a lower priority, so that a burst comes before any
// of them runs. The thread beyond the arena is for others.
TEST(FairOrderTest, ABurstBeforeAnyWorkerRunsTakesTheArenaAlone) {
  World world;
  for (int i = 0; i < 3; ++i) world.Push(0, Priority::kNormal);
  world.Wait();
  EXPECT_EQ(world.StartBeyondArena(), std::nullopt);
  EXPECT_EQ(world.WorkerComes(), 0);
  EXPECT_EQ(world.WorkerComes(), 0);
  world.Wait();
  EXPECT_EQ(world.StartBeyondArena(), std::nullopt);
  world.Push(1, Priority::kNormal);
  EXPECT_EQ(world.StartBeyondArena(), 1);
}

// A task that shares its loops with all threads may keep a worker from coming.
TEST(FairOrderTest, AWorkerThatDoesNotComeKeepsNobodyWaiting) {
  World world;
  world.Push(0, Priority::kNormal);
  EXPECT_EQ(world.WorkerComes(), 0);
  world.Push(1, Priority::kNormal);
  EXPECT_EQ(world.StartBeyondArena(), std::nullopt);
  world.Wait();
  EXPECT_EQ(world.StartBeyondArena(), 1);
}

TEST(FairOrderTest, AClientBeyondTheArenaLeavesAThreadOfItToOthers) {
  World world;
  for (int i = 0; i < 2; ++i) world.Push(0, Priority::kNormal);
  for (int i = 0; i < 2; ++i) world.WorkerComes();
  for (int i = 0; i < 3; ++i) world.Push(1, Priority::kNormal);
  world.Wait();
  ASSERT_EQ(world.StartBeyondArena(), 1);
  for (const size_t ended : {0, 1}) world.End(ended);
  EXPECT_EQ(world.Running(1), 2);
  world.Push(2, Priority::kNormal);
  EXPECT_EQ(world.WorkerComes(), 2);
}

}  // namespace
}  // namespace sap
