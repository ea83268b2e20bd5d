// Slots of reads: as many as largest messages fit into the transport's memory, half of them for one
// client; those that wait are served in order. Limits of what is received and not yet taken.
#include "server/rpc/message_transfers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "server/rpc/write_budget.h"

namespace sap::test::message_transfers {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct PostedRead final : MessageTransfers::Reader {
  void PostRead() override { posted = true; }
  std::atomic<bool> posted{false};
};

// Four slots, two for one client.
ServerConfig FourSlots() {
  ServerConfig config;
  config.max_message_bytes = 1 << 20;
  config.connection.max_memory_bytes = 4 << 20;
  return config;
}

class MessageTransfersTest : public testing::Test {
 protected:
  // Begins a read; says whether it is posted at once.
  bool Begin(ClientAccount* account) {
    reads_.emplace_back();
    EXPECT_TRUE(transfers_.BeginRead(account, &reads_.back()).has_value());
    return reads_.back().posted;
  }

  MessageTransfers transfers_{FourSlots()};
  ClientAccount alice_{"alice"};
  ClientAccount bob_{"bob"};
  std::deque<PostedRead> reads_;
};

TEST_F(MessageTransfersTest, AClientHasHalfOfTheSlotsAndItsOtherReadsWaitInOrder) {
  EXPECT_TRUE(Begin(&alice_));
  EXPECT_TRUE(Begin(&alice_));
  EXPECT_FALSE(Begin(&alice_));
  EXPECT_FALSE(Begin(&alice_));
  EXPECT_TRUE(Begin(&bob_));
  EXPECT_TRUE(Begin(&bob_));
  transfers_.EndRead(&alice_);
  EXPECT_TRUE(reads_[2].posted);
  EXPECT_FALSE(reads_[3].posted);
  transfers_.EndRead(&bob_);  // a slot that alice may not have
  EXPECT_FALSE(reads_[3].posted);
  transfers_.EndRead(&alice_);
  EXPECT_TRUE(reads_[3].posted);
}

TEST_F(MessageTransfersTest, AReadThatWaitsIsPostedOnceItsCallIsCancelled) {
  for (int i = 0; i < 3; ++i) Begin(&alice_);
  transfers_.Expedite(&reads_[2]);
  EXPECT_TRUE(reads_[2].posted);
  for (int i = 0; i < 3; ++i) transfers_.EndRead(&alice_);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Begin(&alice_));
  EXPECT_FALSE(Begin(&alice_));
}

// However slots are taken and returned, each read is posted, and all slots are free at the end.
TEST_F(MessageTransfersTest, NoReadIsForgottenByManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kReads = 2000;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, account = i % 2 == 0 ? &alice_ : &bob_] {
      for (int read = 0; read < kReads; ++read) {
        PostedRead one;
        PostedRead two;
        ASSERT_TRUE(transfers_.BeginRead(account, &one).has_value());
        ASSERT_TRUE(transfers_.BeginRead(account, &two).has_value());
        while (!one.posted) std::this_thread::yield();
        transfers_.EndRead(account);
        while (!two.posted) std::this_thread::yield();
        transfers_.EndRead(account);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(Begin(&alice_));
  EXPECT_TRUE(Begin(&alice_));
  EXPECT_TRUE(Begin(&bob_));
  EXPECT_TRUE(Begin(&bob_));
}

TEST(MessageTransfersLimitsTest, CallsAndBytesBeyondTheLimitsAreRefusedByName) {
  ServerConfig config;
  config.admission.client.max_calls = 2;
  config.admission.client.max_bytes = 100;
  config.admission.all.max_calls = 3;
  MessageTransfers transfers(config);
  ClientAccount alice("alice", config.admission.client);
  ClientAccount bob("bob", config.admission.client);
  std::deque<PostedRead> reads(4);
  const auto reason = [&](ClientAccount* account, PostedRead* read) {
    const ServiceStatus begun = transfers.BeginRead(account, read);
    return begun ? std::string() : begun.error().reason;
  };
  EXPECT_EQ(reason(&alice, &reads[0]), "");
  EXPECT_EQ(reason(&alice, &reads[1]), "");
  EXPECT_EQ(reason(&alice, &reads[2]), "CLIENT_CALLS");
  EXPECT_EQ(reason(&bob, &reads[2]), "");
  EXPECT_EQ(reason(&bob, &reads[3]), "SERVER_CALLS");
  transfers.EndRead(&alice);
  transfers.BeginAnswer(&alice, 100);
  EXPECT_EQ(reason(&alice, &reads[3]), "CLIENT_BYTES");
  transfers.EndAnswer(&alice, 100);
  EXPECT_EQ(reason(&alice, &reads[3]), "");
}

// A client that takes each answer just in time is given up all the same.
TEST(WriteBudgetTest, WritesCountTogether) {
  const WriteBudget::Clock::time_point start{seconds(1000)};
  WriteBudget budget;
  auto now = start;
  int writes = 0;
  for (; writes < 100; ++writes) {
    budget.WriteStarted(now);
    now += milliseconds(10'000);
    if (budget.IsExceeded(now, 30)) break;
    budget.WriteCompleted(now, 1000);
  }
  EXPECT_EQ(writes, 3);
}

// Large answers have the time of their bytes at a megabyte per second, and short waits are free.
TEST(WriteBudgetTest, ASlowLinkAndABusyServerAreNoFault) {
  WriteBudget budget;
  WriteBudget::Clock::time_point now{seconds(1000)};
  for (int i = 0; i < 100; ++i) {
    budget.WriteStarted(now);
    now += seconds(10);
    EXPECT_FALSE(budget.IsExceeded(now, 30));
    budget.WriteCompleted(now, 10'000'000);
  }
  for (int i = 0; i < 4096; ++i) {
    budget.WriteStarted(now);
    now += milliseconds(90);
    EXPECT_FALSE(budget.IsExceeded(now, 30));
    budget.WriteCompleted(now, 10);
  }
}

}  // namespace
}  // namespace sap::test::message_transfers
