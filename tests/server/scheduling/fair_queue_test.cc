// Clients share the arena by the time of their tasks, regardless of arrival order and number.
#include "server/scheduling/fair_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace sap {
namespace {

// As the time after which long solves hold the arena: without the reserved thread for normal tasks,
// which would change their order. Clocks may count from the start of the machine.
constexpr std::chrono::hours kNever{876'000};

// Tasks that record how they were dispatched. The first one blocks the only thread until it is
// opened, so that the others queue up. The clock is that of the tasks: each advances it by the time
// that it takes, by default as predicted.
class FairQueueTest : public testing::Test {
 protected:
  explicit FairQueueTest(FairQueue::Clock::duration held = kNever)
      : queue_(&arena_, 1e6, 0, &Now, held) {}

  struct Item {
    FairQueueTest* test;
    std::string name;
    double takes_s;
    QueuedTask task;
  };

  static FairQueue::Clock::time_point Now() {
    return FairQueue::Clock::time_point(std::chrono::nanoseconds(now_ns_));
  }

  ~FairQueueTest() override {
    Open();
    WaitForAll();
  }

  ServiceStatus Push(const std::string& name, ClientAccount* account, double work_s,
                     Priority priority = Priority::kNormal, double takes_s = -1) {
    Item& item = items_.emplace_back(Item{this, name, takes_s < 0 ? work_s : takes_s, {}});
    item.task.run = [](void* context, Dispatch dispatch) {
      auto* item = static_cast<Item*>(context);
      item->test->Ran(item->name, dispatch);
      now_ns_ += static_cast<int64_t>(item->takes_s * 1e9);
      if (item->test->after_) item->test->after_(item->name);
      ++item->test->ran_;
    };
    item.task.context = &item;
    item.task.account = account;
    item.task.priority = priority;
    item.task.work_s = work_s;
    ServiceStatus status = queue_.Push(&item.task);
    if (status) ++pushed_;
    return status;
  }

  // Occupies the only thread.
  void Close(ClientAccount* account, Priority priority = Priority::kNormal) {
    ASSERT_TRUE(Push("gate", account, 1e-3, priority).has_value());
    at_gate_.get_future().wait();
  }

  void Open() {
    if (!opened_) gate_.set_value();
    opened_ = true;
  }

  void WaitForAll() {
    while (ran_ < pushed_) std::this_thread::yield();
  }

  std::vector<std::string> Order() {
    Open();
    WaitForAll();
    return order_;
  }

  void Ran(const std::string& name, Dispatch dispatch) {
    if (name == "gate") {
      at_gate_.set_value();
      gate_.get_future().wait();
    } else {
      const std::lock_guard lock(mutex_);
      order_.push_back(name);
      dispatches_[name] = dispatch;
    }
  }

  // One after the other.
  void RunTasks(int count, ClientAccount* account, double work_s, double takes_s) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(Push("warm-up", account, work_s, Priority::kNormal, takes_s).has_value());
      while (queue_.running() > 0) std::this_thread::yield();
    }
    order_.clear();
  }

  inline static std::atomic<int64_t> now_ns_{0};
  ClientAccount a_{"a"}, b_{"b"}, c_{"c"};
  std::mutex mutex_;
  std::vector<std::string> order_;
  std::map<std::string, Dispatch> dispatches_;
  std::promise<void> gate_, at_gate_;
  bool opened_{false};
  std::function<void(const std::string& name)> after_;  // called when a task has ended
  std::atomic<int> ran_{0};
  std::atomic<int> pushed_{0};
  std::deque<Item> items_;
  TaskArena arena_{1};
  FairQueue queue_;
};

class HeldArenaTest : public FairQueueTest {
 protected:
  HeldArenaTest() : FairQueueTest(std::chrono::milliseconds(50)) {}
};

TEST_F(FairQueueTest, TasksOfOneClientRunInTheirOrder) {
  Close(&a_);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Push(std::to_string(i), &a_, 1e-3 * (5 - i)).has_value());
  EXPECT_EQ(Order(), (std::vector<std::string>{"0", "1", "2", "3", "4"}));
}

// A burst of one client delays the single task of another by about one task.
TEST_F(FairQueueTest, ABurstOfOneClientDoesNotHoldUpAnother) {
  Close(&c_);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(Push("a", &a_, 10e-3).has_value());
  ASSERT_TRUE(Push("b", &b_, 10e-3).has_value());
  const std::vector<std::string> order = Order();
  const auto b = std::find(order.begin(), order.end(), "b") - order.begin();
  EXPECT_LE(b, 2);
}

// Over any interval in which all have work, each gets the same share, to within two tasks of the
// largest kind.
TEST_F(FairQueueTest, ClientsShareByPredictedWorkAndNotByNumber) {
  const std::map<std::string, double> work{{"a", 20e-3}, {"b", 2e-3}, {"c", 7e-3}};
  Close(&c_);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Push("a", &a_, work.at("a")).has_value());
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(Push("b", &b_, work.at("b")).has_value());
  for (int i = 0; i < 285; ++i) ASSERT_TRUE(Push("c", &c_, work.at("c")).has_value());
  std::map<std::string, double> done{{"a", 0}, {"b", 0}, {"c", 0}};
  for (const std::string& name : Order()) {
    done[name] += work.at(name);
    if (done["a"] > 1.9) break;
    EXPECT_NEAR(done["a"], done["b"], 0.045);
    EXPECT_NEAR(done["a"], done["c"], 0.045);
  }
}

// Tasks that are predicted alike, but those of one client take ten times as long.
TEST_F(FairQueueTest, AClientPaysForWhatItsTasksTakeAndNotForWhatIsPredicted) {
  Close(&c_);
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(Push("a", &a_, 1e-3, Priority::kNormal, 10e-3).has_value());
  }
  for (int i = 0; i < 400; ++i) ASSERT_TRUE(Push("b", &b_, 1e-3).has_value());
  std::map<std::string, double> done;
  for (const std::string& name : Order()) {
    done[name] += name == "a" ? 10e-3 : 1e-3;
    if (done["b"] > 0.38) break;
    EXPECT_NEAR(done["a"], done["b"], 0.025);
  }
}

// The next task of the client whose only one took a second waits for a second of another's tasks.
TEST_F(FairQueueTest, ADebtOutlastsAnEmptyQueueOfTheClient) {
  Close(&c_);
  ASSERT_TRUE(Push("long", &a_, 1e-3, Priority::kNormal, 1).has_value());
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(Push("b", &b_, 0.1).has_value());
  after_ = [&](const std::string& name) {
    if (name != "long") return;
    EXPECT_TRUE(Push("again", &a_, 1e-3).has_value());
  };
  const std::vector<std::string> order = Order();
  const auto again = std::find(order.begin(), order.end(), "again") - order.begin();
  EXPECT_GE(again, 10);
  EXPECT_LE(again, 13);
}

// A client that was served while nobody else waited owes nothing for it.
TEST_F(FairQueueTest, TimeThatNobodyWaitedForIsNoDebt) {
  RunTasks(5, &a_, 1, 1);
  Close(&c_);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Push("b", &b_, 0.1).has_value());
    ASSERT_TRUE(Push("a", &a_, 0.1).has_value());
  }
  const std::vector<std::string> order = Order();
  EXPECT_NEAR(static_cast<double>(std::count(order.begin(), order.begin() + 20, "a")), 10, 1);
}

// One client's predictions are far too short. Another is not refused for it, and the first one is.
TEST_F(FairQueueTest, EachClientIsPredictedByItsOwnTasks) {
  RunTasks(100, &a_, 1e-3, 90e-3);
  FairQueue& queue = queue_;
  const auto accepted = [&](ClientAccount* account) {
    return queue.CheckWait(*account, Priority::kNormal).has_value();
  };
  Close(&c_);
  ASSERT_TRUE(Push("a", &a_, 20e3).has_value());
  EXPECT_FALSE(accepted(&a_));
  ASSERT_TRUE(Push("b", &b_, 20e3).has_value());
  EXPECT_TRUE(accepted(&b_));
}

TEST_F(FairQueueTest, WhoMayNotUseHighPriorityIsServedAsNormal) {
  ClientAccount unlisted("unlisted", {.high_priority = false});
  Close(&c_, Priority::kHigh);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Push("unlisted", &unlisted, 1e-3, Priority::kHigh).has_value());
    ASSERT_TRUE(Push("listed", &b_, 1e-3, Priority::kHigh).has_value());
  }
  const std::vector<std::string> order = Order();
  EXPECT_EQ(std::vector<std::string>(order.begin(), order.begin() + 3),
            std::vector<std::string>(3, "listed"));
}

// What receiving threads have solved for a client counts like what the queue has.
TEST_F(FairQueueTest, InlineTimeIsPartOfTheShare) {
  Close(&c_);
  queue_.ChargeInline(&a_, std::chrono::milliseconds(50));
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Push("a", &a_, 10e-3).has_value());
    ASSERT_TRUE(Push("b", &b_, 10e-3).has_value());
  }
  const std::vector<std::string> order = Order();
  const auto first_of_a = std::find(order.begin(), order.end(), "a") - order.begin();
  EXPECT_GE(first_of_a, 5);
  EXPECT_LE(first_of_a, 6);
}

// A client that alone uses the receiving threads goes on while nobody else is there to wait.
TEST_F(FairQueueTest, AClientThatWaitsInTheQueueTakesInlineTimeFromOthers) {
  queue_.ChargeInline(&a_, std::chrono::milliseconds(6));
  EXPECT_TRUE(queue_.MayRunInline(a_));
  Close(&c_);
  ASSERT_TRUE(Push("a", &a_, 1e-3).has_value());
  queue_.ChargeInline(&a_, std::chrono::milliseconds(6));
  EXPECT_TRUE(queue_.MayRunInline(a_));
  ASSERT_TRUE(Push("b", &b_, 1e-3).has_value());
  EXPECT_FALSE(queue_.MayRunInline(a_));
  EXPECT_TRUE(queue_.MayRunInline(b_));
}

// Strict priority would let whoever asks for it starve all others.
TEST_F(FairQueueTest, HighPriorityGetsNineOfTenPartsWhileBothWait) {
  Close(&c_, Priority::kHigh);
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(Push("normal", &a_, 1e-3).has_value());
    ASSERT_TRUE(Push("high", &b_, 1e-3, Priority::kHigh).has_value());
  }
  const std::vector<std::string> order = Order();
  EXPECT_NEAR(static_cast<double>(std::count(order.begin(), order.begin() + 200, "high")), 180, 2);
  EXPECT_EQ(order.front(), "high");
}

// By the time that it takes, not by the number or prediction of its tasks.
TEST_F(FairQueueTest, TheSharesOfThePrioritiesAreOfMeasuredTime) {
  Close(&c_, Priority::kHigh);
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(Push("normal", &a_, 1e-3, Priority::kNormal, 3e-3).has_value());
    ASSERT_TRUE(Push("high", &b_, 1e-3, Priority::kHigh).has_value());
  }
  const std::vector<std::string> order = Order();
  const auto high = std::count(order.begin(), order.begin() + 200, "high");
  EXPECT_NEAR(static_cast<double>(high), 200 * 27 / 28, 3);
}

TEST_F(FairQueueTest, HighPriorityGoesFirst) {
  Close(&a_);
  // While the gate occupies the thread, a high-priority task does not even wait for that.
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Push("normal", &a_, 1e-3).has_value());
  ASSERT_TRUE(Push("high", &b_, 1e-3, Priority::kHigh).has_value());
  while (ran_ == 0) std::this_thread::yield();
  {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(order_, std::vector<std::string>{"high"});
    EXPECT_EQ(dispatches_.at("high"), Dispatch::kReservedThread);
  }
  EXPECT_EQ(Order().size(), 4u);
}

// However long its solves take, and however many more it has sent.
TEST_F(HeldArenaTest, AClientThatHoldsAllThreadsDoesNotStopTheOthers) {
  Close(&a_);
  ASSERT_TRUE(Push("own", &a_, 1e-3).has_value());
  ASSERT_TRUE(Push("of another", &b_, 1e-3).has_value());
  now_ns_ += 1'000'000'000;
  while (ran_ == 0) std::this_thread::yield();
  {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(order_, std::vector<std::string>{"of another"});
    EXPECT_EQ(dispatches_.at("of another"), Dispatch::kReservedThread);
  }
  EXPECT_EQ(Order().back(), "own");
}

TEST_F(HeldArenaTest, ATaskThatIsPushedBeforeALongOneStartsDoesNotWaitForIt) {
  std::promise<void> arena_is_free;
  const auto wait = [](void* promise) noexcept {
    static_cast<std::promise<void>*>(promise)->get_future().wait();
  };
  arena_.Enqueue(wait, &arena_is_free);
  ASSERT_TRUE(Push("gate", &a_, 1e-3).has_value());
  ASSERT_TRUE(Push("of another", &b_, 1e-3).has_value());
  arena_is_free.set_value();
  at_gate_.get_future().wait();
  now_ns_ += 1'000'000'000;
  while (ran_ == 0) std::this_thread::yield();
  EXPECT_EQ(Order(), std::vector<std::string>{"of another"});
  EXPECT_EQ(dispatches_.at("of another"), Dispatch::kReservedThread);
}

TEST_F(FairQueueTest, ATaskThatWouldWaitTooLongIsRefusedAtOnce) {
  FairQueue queue(&arena_, 0.05, 0, &FairQueue::Clock::now, kNever);
  Close(&a_);
  std::atomic<int> ran{0};
  std::deque<QueuedTask> tasks(8);
  int refused = 0, accepted = 0;
  for (QueuedTask& task : tasks) {
    task.run = [](void* ran, Dispatch) { ++*static_cast<std::atomic<int>*>(ran); };
    task.context = &ran;
    task.account = &b_;
    task.work_s = 20e-3;
    const ServiceStatus status = queue.Push(&task);
    status ? ++accepted : ++refused;
    if (status) continue;
    EXPECT_EQ(status.error().code, ServiceCode::kResourceExhausted);
    EXPECT_EQ(status.error().reason, "QUEUE_TIME");
    EXPECT_GT(status.error().retry_after_s, 0);
  }
  // 0, 20 and 40 ms ahead are within the limit.
  EXPECT_EQ(accepted, 3);
  EXPECT_EQ(refused, 5);
  Open();
  while (ran < accepted) std::this_thread::yield();
}

// However long the predicted wait is: predictions err, and an idle server helps nobody.
TEST_F(FairQueueTest, ARefusedClientIsToldToComeBackWithinTenSeconds) {
  FairQueue queue(&arena_, 1000, 0, &FairQueue::Clock::now, kNever);
  Close(&a_);
  std::atomic<int> ran{0};
  QueuedTask first, second;
  for (QueuedTask* task : {&first, &second}) {
    task->run = [](void* ran, Dispatch) { ++*static_cast<std::atomic<int>*>(ran); };
    task->context = &ran;
    task->account = &b_;
    task->work_s = 1e5;
  }
  ASSERT_TRUE(queue.Push(&first).has_value());
  const ServiceStatus refused = queue.Push(&second);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().retry_after_s, 10);
  EXPECT_LE(queue.Expired().retry_after_s, 10);
  Open();
  while (ran < 1) std::this_thread::yield();
}

// A call whose message is being read counts with its client's recent mean per task, until its
// reservation is released.
TEST_F(FairQueueTest, ReservedCallsCountInThePredictedWait) {
  FairQueue queue(&arena_, 1);
  Close(&a_);
  std::atomic<int> ran{0};
  QueuedTask task;
  task.run = [](void* ran, Dispatch) { ++*static_cast<std::atomic<int>*>(ran); };
  task.context = &ran;
  task.account = &b_;
  task.work_s = 10;
  ASSERT_TRUE(queue.Push(&task).has_value());
  Open();
  while (ran < 1) std::this_thread::yield();
  while (queue.running() > 0) std::this_thread::yield();

  std::vector<FairQueue::Reservation> expected;
  for (auto next = queue.Reserve(&b_, Priority::kNormal); next;
       next = queue.Reserve(&b_, Priority::kNormal)) {
    expected.push_back(*next);
    ASSERT_LT(expected.size(), 100u);
  }
  EXPECT_GT(expected.size(), 1u);
  // Neither other clients nor high priority are affected.
  EXPECT_TRUE(queue.CheckWait(c_, Priority::kNormal).has_value());
  EXPECT_TRUE(queue.CheckWait(b_, Priority::kHigh).has_value());
  EXPECT_FALSE(queue.CheckWait(b_, Priority::kNormal).has_value());
  for (const FairQueue::Reservation& call : expected) queue.ReleaseReservation(&b_, call);
  EXPECT_TRUE(queue.CheckWait(b_, Priority::kNormal).has_value());
}

// The predicted wait is 0; the gate holds the task for longer than the limit of 0.
TEST_F(FairQueueTest, ATaskThatHasWaitedTooLongExpires) {
  FairQueue queue(&arena_, 0);
  Close(&a_);
  std::promise<Dispatch> dispatched;
  QueuedTask task;
  task.run = [](void* promise, Dispatch dispatch) {
    static_cast<std::promise<Dispatch>*>(promise)->set_value(dispatch);
  };
  task.context = &dispatched;
  task.account = &b_;
  ASSERT_TRUE(queue.Push(&task).has_value());
  Open();
  EXPECT_EQ(dispatched.get_future().get(), Dispatch::kExpired);
  EXPECT_EQ(queue.Expired().reason, "QUEUE_TIME");
}

// Many threads push for many clients; every task runs once.
TEST(FairQueueThreadsTest, EveryTaskRunsOnceWhoeverPushesIt) {
  constexpr int kPushers = 4, kTasks = 2000;
  TaskArena arena(3);
  std::atomic<int> ran{0};
  std::deque<ClientAccount> accounts;
  for (int i = 0; i < 7; ++i) accounts.emplace_back(std::to_string(i));
  std::vector<std::deque<QueuedTask>> tasks(kPushers);
  {
    FairQueue queue(&arena, 1e6);
    std::vector<std::thread> pushers;
    for (int pusher = 0; pusher < kPushers; ++pusher) {
      tasks[pusher].resize(kTasks);
      pushers.emplace_back([&, pusher] {
        std::mt19937 random(pusher);
        for (QueuedTask& task : tasks[pusher]) {
          task.run = [](void* ran, Dispatch) { ++*static_cast<std::atomic<int>*>(ran); };
          task.context = &ran;
          task.account = &accounts[random() % accounts.size()];
          task.priority = random() % 4 == 0 ? Priority::kHigh : Priority::kNormal;
          task.work_s = 1e-6 * static_cast<double>(1 + random() % 3000);
          EXPECT_TRUE(queue.Push(&task).has_value());
        }
      });
    }
    for (std::thread& pusher : pushers) pusher.join();
    while (ran < kPushers * kTasks) std::this_thread::yield();
    EXPECT_EQ(queue.queued(), 0);
  }
  EXPECT_EQ(ran, kPushers * kTasks);
}

}  // namespace
}  // namespace sap
