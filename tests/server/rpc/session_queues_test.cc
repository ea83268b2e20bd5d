// On which completion queue a session is served. The test takes the events of two queues by hand.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "server/rpc/session_stream.h"
#include "tests/server/rpc/service_parts.h"

namespace sap::test::session_queues {
namespace {

constexpr std::chrono::seconds kHang{60};
constexpr std::chrono::milliseconds kGlance{1};
constexpr int kMethods = 7;  // of SolverService
constexpr int kAwaited = 8;

class SessionQueuesTest : public testing::Test {
 protected:
  SessionQueuesTest() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&solver_);
    for (auto& queue : queues_) queue = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
    for (const auto& queue : queues_) {
      for (int i = 0; i < kAwaited; ++i) sessions_.Await(queue.get());
    }
  }
  ~SessionQueuesTest() override {
    for (grpc::ClientContext& context : contexts_) context.TryCancel();
    server_->Shutdown(std::chrono::system_clock::now());
    while (parts_.calls.on_queue() > 0) HandleNext();
    for (const auto& queue : queues_) queue->Shutdown();
    EXPECT_EQ(HandleNext(), -1);
    of_client_.Shutdown();
  }

  std::shared_ptr<grpc::Channel> NewConnection() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), arguments);
  }

  // Opens a stream, which is accepted. Returns the index of its queue.
  int Open(const std::shared_ptr<grpc::Channel>& connection) {
    grpc::GenericStub stub(connection);
    streams_.push_back(stub.PrepareCall(&contexts_.emplace_back(),
                                        "/sap.v1.SolverService/SolveSession", &of_client_));
    streams_.back()->StartCall(nullptr);
    return HandleNext();
  }

  // Handles the next event of any queue and returns its index; -1: both are drained.
  int HandleNext() {
    const auto until = std::chrono::steady_clock::now() + kHang;
    for (size_t drained = 0; drained < queues_.size();) {
      drained = 0;
      for (size_t i = 0; i < queues_.size(); ++i) {
        void* tag = nullptr;
        bool ok = false;
        const auto glance = std::chrono::system_clock::now() + kGlance;
        const auto found = queues_[i]->AsyncNext(&tag, &ok, glance);
        if (found == grpc::CompletionQueue::GOT_EVENT) {
          static_cast<CompletionTag*>(tag)->Complete(ok);
          return static_cast<int>(i);
        }
        if (found == grpc::CompletionQueue::SHUTDOWN) ++drained;
      }
      if (std::chrono::steady_clock::now() > until) {
        ADD_FAILURE() << "no event";
        return -1;
      }
    }
    return -1;
  }

  ServiceParts parts_;
  HeadersFirstService<v1::SolverService::Service> solver_{kMethods};
  SessionStream sessions_{&solver_, parts_.context};
  std::array<std::unique_ptr<grpc::ServerCompletionQueue>, 2> queues_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  grpc::CompletionQueue of_client_;
  std::deque<grpc::ClientContext> contexts_;
  std::deque<std::unique_ptr<grpc::GenericClientAsyncReaderWriter>> streams_;
  // The connections of the client need a thread.
  std::jthread client_{[this] {
    void* tag = nullptr;
    bool ok = false;
    while (of_client_.Next(&tag, &ok)) {
    }
  }};
};

// One thread reads, solves and answers a step.
TEST_F(SessionQueuesTest, TheSessionsOfAConnectionAreOnItsQueue) {
  std::array<int, 2> sessions{};
  for (int i = 0; i < 6; ++i) {
    const auto connection = NewConnection();
    const int queue = Open(connection);
    ASSERT_NE(queue, -1);
    EXPECT_EQ(Open(connection), queue);
    sessions[queue] += 2;
  }
  EXPECT_EQ(sessions[0], sessions[1]);
}

// A thread alone could be too slow for them.
TEST_F(SessionQueuesTest, ManySessionsOfAConnectionAreSpreadOverTheQueues) {
  std::array<int, 2> sessions{};
  const auto connection = NewConnection();
  for (int i = 0; i < 60; ++i) {
    const int queue = Open(connection);
    ASSERT_NE(queue, -1);
    ++sessions[queue];
  }
  EXPECT_GE(sessions[0], 20);
  EXPECT_GE(sessions[1], 20);
}

}  // namespace
}  // namespace sap::test::session_queues
