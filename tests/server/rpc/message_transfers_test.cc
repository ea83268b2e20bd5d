// Requests that are received: nobody's unfinished request keeps another client's from being read,
// whoever holds how many; slots bound those that take long. Limits of what is received and not yet
// taken.
#include "server/rpc/message_transfers.h"

#include <gtest/gtest.h>

#include <algorithm>
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
  using Reader::answer_evicted;
  using Reader::evicted;
  using Reader::withdrawn;
  std::atomic<bool> posted{false};
};

// Four slots, two for the requests that a client has waiting.
ServerConfig FourSlots() {
  ServerConfig config;
  config.max_message_bytes = 3 << 20;
  config.connection.max_memory_bytes = 16 << 20;
  return config;
}

// With a clock that the test sets.
class MessageTransfersTest : public testing::Test {
 protected:
  static MessageTransfers::Clock::time_point Now() {
    return MessageTransfers::Clock::time_point(milliseconds(now_ms_));
  }

  PostedRead* Begin(ClientAccount* account) {
    PostedRead* read = &reads_.emplace_back();
    EXPECT_TRUE(transfers_.BeginRead(account, read).has_value());
    return read;
  }
  std::vector<PostedRead*> Begin(ClientAccount* account, int count) {
    std::vector<PostedRead*> reads;
    for (int i = 0; i < count; ++i) reads.push_back(Begin(account));
    return reads;
  }
  void Arrive(PostedRead* read) {
    transfers_.Received(read);
    transfers_.EndRead(read);
  }
  MessageTransfers::State Sweep(milliseconds after) {
    now_ms_ += after.count();
    return transfers_.Sweep();
  }
  // Requests that came at once.
  void SendShortOnes(ClientAccount* account, int count) {
    for (int i = 0; i < count; ++i) Arrive(Begin(account));
  }

  static int CountPosted(const std::vector<PostedRead*>& reads) {
    return static_cast<int>(
        std::ranges::count_if(reads, [](auto* read) { return !!read->posted; }));
  }
  static int CountEvicted(const std::vector<PostedRead*>& reads) {
    return static_cast<int>(
        std::ranges::count_if(reads, [](auto* read) { return read->evicted(); }));
  }

  inline static int64_t now_ms_{1'000'000};
  MessageTransfers transfers_{FourSlots(), &Now};
  ClientAccount alice_{"alice"}, bob_{"bob"}, carol_{"carol"}, dave_{"dave"}, eve_{"eve"};
  std::deque<PostedRead> reads_;
};

// As many as there are, from two clients, and more that wait.
TEST_F(MessageTransfersTest, UnfinishedRequestsOfOthersDelayNobody) {
  for (ClientAccount* attacker : {&alice_, &bob_}) Begin(attacker, 60);
  for (int i = 0; i < 100; ++i) {
    PostedRead* const read = Begin(&eve_);
    EXPECT_TRUE(read->posted);
    Arrive(read);
    Sweep(milliseconds(50));
  }
}

TEST_F(MessageTransfersTest, UnfinishedRequestsOfAThousandClientsDelayNobody) {
  std::deque<ClientAccount> clients;
  for (int i = 0; i < 1000; ++i) Begin(&clients.emplace_back(std::to_string(i)));
  for (int i = 0; i < 100; ++i) {
    PostedRead* const read = Begin(&eve_);
    EXPECT_TRUE(read->posted);
    Arrive(read);
    // A second later all are evicted that have no slot.
    const MessageTransfers::State state = Sweep(milliseconds(50));
    EXPECT_EQ(state.waiting, 0);
    EXPECT_EQ(state.slow, i < 19 ? 0 : 4);
  }
}

TEST_F(MessageTransfersTest, LongRequestsOfAClientHaveHalfOfTheSlotsAndTheOthersWaitInOrder) {
  const std::vector<PostedRead*> reads = Begin(&alice_, 5);
  EXPECT_EQ(CountPosted(reads), 2);
  EXPECT_EQ(Sweep(milliseconds(50)).waiting, 3);
  EXPECT_EQ(CountPosted(reads), 2);
  transfers_.EndRead(reads[1]);
  EXPECT_TRUE(reads[2]->posted);
  EXPECT_FALSE(reads[3]->posted);
  transfers_.EndRead(reads[0]);
  EXPECT_TRUE(reads[3]->posted);
  EXPECT_FALSE(reads[4]->posted);
  EXPECT_EQ(CountEvicted(reads), 0);
}

// A client whose requests come at once has many of them read at the same time, until they do not.
TEST_F(MessageTransfersTest, ReadsWithoutASlotAreEarnedAndLost) {
  SendShortOnes(&alice_, 10);
  const std::vector<PostedRead*> reads = Begin(&alice_, 20);
  EXPECT_EQ(CountPosted(reads), 12);
  Sweep(milliseconds(50));
  for (int i = 0; i < 12; ++i) transfers_.EndRead(reads[i]);
  // The others wait for the client's slots.
  EXPECT_EQ(CountPosted(reads), 14);
  SendShortOnes(&bob_, 1000);
  EXPECT_EQ(CountPosted(Begin(&bob_, 100)), 64);
}

// All slots are in use; the clients with the fewest are next, and take turns.
TEST_F(MessageTransfersTest, WaitingRequestsAreServedByClient) {
  std::vector<PostedRead*> held;
  for (ClientAccount* client : {&alice_, &bob_}) {
    for (PostedRead* read : Begin(client, 2)) held.push_back(read);
  }
  Sweep(milliseconds(50));
  // Clients whose requests do not come at once.
  for (ClientAccount* client : {&carol_, &dave_}) {
    for (PostedRead* read : Begin(client, 2)) held.push_back(read);
  }
  Sweep(milliseconds(50));
  const std::vector<PostedRead*> of_alice = Begin(&alice_, 3);
  const std::vector<PostedRead*> of_carol = Begin(&carol_, 3);
  const std::vector<PostedRead*> of_dave = Begin(&dave_, 3);
  for (int i = 4; i < 8; ++i) transfers_.EndRead(held[i]);  // what carol and dave have
  transfers_.EndRead(held[2]);
  transfers_.EndRead(held[3]);  // what bob has
  EXPECT_EQ(CountPosted(of_alice), 0);
  EXPECT_EQ(CountPosted(of_carol), 2);
  EXPECT_EQ(CountPosted(of_dave), 2);
}

// Two clients have all slots. A third one's request of a second takes one of them.
TEST_F(MessageTransfersTest, WhoHasMostSlotsLosesTheOldestReadToARequestOfASecond) {
  std::vector<PostedRead*> held;
  for (ClientAccount* client : {&alice_, &bob_}) {
    for (PostedRead* read : Begin(client, 2)) held.push_back(read);
  }
  Sweep(milliseconds(500));
  PostedRead* const read = Begin(&eve_);
  EXPECT_FALSE(Sweep(milliseconds(950)).evicted);
  EXPECT_TRUE(Sweep(milliseconds(50)).evicted);
  EXPECT_EQ(CountEvicted(held), 1);
  EXPECT_TRUE(held[0]->evicted());
  EXPECT_FALSE(held[0]->withdrawn());
  EXPECT_FALSE(read->evicted());
  // It is not evicted in turn by the one that lost.
  transfers_.EndRead(held[0]);
  Begin(&alice_, 2);
  EXPECT_FALSE(Sweep(milliseconds(1000)).evicted);
}

TEST_F(MessageTransfersTest, AMessageThatHasArrivedIsNotEvicted) {
  std::vector<PostedRead*> held;
  for (ClientAccount* client : {&alice_, &bob_}) {
    for (PostedRead* read : Begin(client, 2)) held.push_back(read);
  }
  Sweep(milliseconds(50));
  for (PostedRead* read : held) transfers_.Received(read);
  PostedRead* const read = Begin(&eve_);
  EXPECT_TRUE(Sweep(seconds(1)).evicted);
  EXPECT_EQ(CountEvicted(held), 0);
  EXPECT_TRUE(read->evicted());
}

// Who came first keeps its slot among equals: if each took it from another, nobody would finish.
// After ten seconds it is somebody else's.
TEST_F(MessageTransfersTest, AmongEqualsASlotIsKeptForTenSeconds) {
  std::vector<PostedRead*> held;
  for (ClientAccount* client : {&alice_, &bob_, &carol_, &dave_}) held.push_back(Begin(client));
  Sweep(milliseconds(50));
  PostedRead* const early = Begin(&eve_);
  Sweep(seconds(1));
  EXPECT_TRUE(early->evicted());
  transfers_.EndRead(early);
  EXPECT_EQ(CountEvicted(held), 0);
  PostedRead* const late = Begin(&eve_);
  Sweep(seconds(9));
  EXPECT_FALSE(late->evicted());
  EXPECT_TRUE(held[0]->evicted());
  EXPECT_EQ(CountEvicted(held), 1);
}

// Nobody else needs a place, but the server waits.
TEST_F(MessageTransfersTest, ADrainWaitsTenSecondsForARequest) {
  const std::vector<PostedRead*> reads = Begin(&alice_, 3);
  Sweep(seconds(9));
  transfers_.Drain();
  EXPECT_FALSE(Sweep(milliseconds(999)).evicted);
  EXPECT_TRUE(Sweep(milliseconds(1)).evicted);
  EXPECT_EQ(CountEvicted(reads), 3);
}

// With more requests than calls may be received, the client that has most loses its oldest.
TEST_F(MessageTransfersTest, WhoSendsMostMakesRoomForOthersAtTheLimitOfAllCalls) {
  ServerConfig config = FourSlots();
  config.admission.all.max_calls = 4;
  MessageTransfers transfers(config, &Now);
  const auto begin = [&](ClientAccount* account) {
    return transfers.BeginRead(account, &reads_.emplace_back()).has_value();
  };
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(begin(&alice_));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(begin(&bob_));
  EXPECT_FALSE(begin(&eve_)) << "they may all be complete in a moment";
  reads_.pop_back();
  now_ms_ += 50;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(begin(&eve_));
  EXPECT_FALSE(begin(&eve_)) << "nobody has more";
  EXPECT_TRUE(reads_[0].evicted());
  EXPECT_FALSE(reads_[0].withdrawn());
  EXPECT_TRUE(transfers.Sweep().evicted);
  EXPECT_EQ(std::ranges::count_if(reads_, [](const PostedRead& read) { return read.evicted(); }),
            2);
}

// Answers that are not taken for a second, too.
TEST_F(MessageTransfersTest, WhoTakesNoAnswersMakesRoomForOthersAtTheLimitsOfAll) {
  for (const bool by_bytes : {false, true}) {
    ServerConfig config = FourSlots();
    if (by_bytes) {
      config.admission.all.max_bytes = 4;
    } else {
      config.admission.all.max_calls = 4;
    }
    MessageTransfers transfers(config, &Now);
    ClientAccount alice("alice"), bob("bob"), eve("eve");
    std::deque<PostedRead> calls(6);
    const auto begin = [&](ClientAccount* account, PostedRead* call) {
      return transfers.BeginRead(account, call).has_value();
    };
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(begin(i < 2 ? &alice : &bob, &calls[i]));
      transfers.Received(&calls[i]);
      transfers.EndRead(&calls[i]);
      transfers.BeginAnswer(&calls[i], 1);
    }
    EXPECT_FALSE(begin(&eve, &calls[4])) << "they may be taken in a moment";
    now_ms_ += 1000;
    EXPECT_FALSE(begin(&alice, &calls[4])) << "nobody has more";
    EXPECT_TRUE(begin(&eve, &calls[4]));
    EXPECT_TRUE(calls[0].answer_evicted());
    EXPECT_TRUE(transfers.Sweep().evicted);
    transfers.EndRead(&calls[4]);
    for (int i = 0; i < 4; ++i) transfers.EndAnswer(&calls[i]);
    EXPECT_FALSE(calls[1].answer_evicted());
    EXPECT_TRUE(begin(&alice, &calls[5]));
    transfers.EndRead(&calls[5]);
  }
}

// Nothing comes of a request before it is read, so it has no time to keep its place. It has no read
// that could end either.
TEST_F(MessageTransfersTest, ARequestThatWaitsMakesRoomAtOnceAndIsWithdrawn) {
  ServerConfig config = FourSlots();
  config.admission.all.max_calls = 8;
  MessageTransfers transfers(config, &Now);
  std::deque<PostedRead> reads(9);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(transfers.BeginRead(&alice_, &reads[i]).has_value());
  const auto waiting =
      std::ranges::find_if(reads, [](const PostedRead& read) { return !read.posted; });
  ASSERT_NE(waiting, reads.end());
  EXPECT_TRUE(transfers.BeginRead(&bob_, &reads[8]).has_value());
  EXPECT_TRUE(reads[8].posted);
  EXPECT_EQ(std::ranges::count_if(reads, [](const PostedRead& read) { return read.evicted(); }), 1);
  EXPECT_TRUE(waiting->evicted());
  EXPECT_TRUE(waiting->withdrawn());
  transfers.Expedite(&*waiting);
  EXPECT_FALSE(waiting->posted);
  for (PostedRead& read : reads) transfers.EndRead(&read);
  EXPECT_FALSE(waiting->posted);
}

TEST_F(MessageTransfersTest, AReadThatWaitsIsPostedOnceItsCallIsCancelled) {
  const std::vector<PostedRead*> reads = Begin(&alice_, 3);
  transfers_.Expedite(reads[2]);
  EXPECT_TRUE(reads[2]->posted);
  for (PostedRead* read : reads) transfers_.EndRead(read);
  EXPECT_EQ(CountPosted(Begin(&alice_, 3)), 2);
}

// However places are taken and returned, each read is posted.
TEST(MessageTransfersThreadsTest, NoReadIsForgotten) {
  constexpr int kThreads = 4;
  constexpr int kReads = 2000;
  MessageTransfers transfers(FourSlots());
  ClientAccount alice("alice"), bob("bob");
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, account = i % 2 == 0 ? &alice : &bob] {
      for (int read = 0; read < kReads; ++read) {
        PostedRead one, two;
        ASSERT_TRUE(transfers.BeginRead(account, &one).has_value());
        ASSERT_TRUE(transfers.BeginRead(account, &two).has_value());
        while (!one.posted) std::this_thread::yield();
        transfers.EndRead(&one);
        while (!two.posted) std::this_thread::yield();
        transfers.Received(&two);
        transfers.EndRead(&two);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(transfers.Sweep().waiting, 0);
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
  transfers.EndRead(&reads[0]);
  transfers.BeginAnswer(&reads[0], 100);
  EXPECT_EQ(reason(&alice, &reads[3]), "CLIENT_BYTES");
  transfers.EndAnswer(&reads[0]);
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
