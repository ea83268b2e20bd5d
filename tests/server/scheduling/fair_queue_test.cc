// Clients share the arena by predicted work, regardless of arrival order and number of tasks.
#include "server/scheduling/fair_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <future>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace sap {
namespace {

// Tasks that record how they were dispatched. The first one blocks the only thread until it is
// opened, so that the others queue up.
class FairQueueTest : public testing::Test {
 protected:
  struct Item {
    FairQueueTest* test;
    std::string name;
    QueuedTask task;
  };

  ~FairQueueTest() override {
    Open();
    WaitForAll();
  }

  ServiceStatus Push(const std::string& name, ClientAccount* account, double work_s,
                     Priority priority = Priority::kNormal) {
    Item& item = items_.emplace_back(Item{this, name, {}});
    item.task.run = [](void* context, Dispatch dispatch) {
      auto* item = static_cast<Item*>(context);
      item->test->Ran(item->name, dispatch);
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
  void Close(ClientAccount* account) {
    ASSERT_TRUE(Push("gate", account, 1e-3).has_value());
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
    ++ran_;
  }

  ClientAccount a_{"a"}, b_{"b"}, c_{"c"};
  std::mutex mutex_;
  std::vector<std::string> order_;
  std::map<std::string, Dispatch> dispatches_;
  std::promise<void> gate_, at_gate_;
  bool opened_{false};
  std::atomic<int> ran_{0};
  int pushed_{0};
  std::deque<Item> items_;
  TaskArena arena_{1};
  FairQueue queue_{&arena_, 1e6};
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

TEST_F(FairQueueTest, ATaskThatWouldWaitTooLongIsRefusedAtOnce) {
  FairQueue queue(&arena_, 0.05);
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
  FairQueue queue(&arena_, 1000);
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
