// Two threads of a completion queue may handle the end of a call before its acceptance, which the
// queue delivered first. The test takes the events by hand, in that order.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "server/rpc/batch_stream.h"
#include "server/rpc/health_service.h"
#include "server/rpc/session_stream.h"
#include "server/rpc/unary_call.h"
#include "tests/server/rpc/service_parts.h"

namespace sap::test {
namespace {

constexpr std::chrono::seconds kHang{60};
// Time within which an event that an operation has caused arrives, or there is none.
constexpr std::chrono::milliseconds kQuiet{200};
constexpr int kMethods = 7;  // of SolverService

class OrderOfEventsTest : public testing::Test {
 protected:
  using Solver = HeadersFirstService<v1::SolverService::Service>;
  using Solve = UnaryMethod<v1::SolveRequest, v1::SolveResponse>;
  struct Event {
    CompletionTag* tag{nullptr};  // null: there was none
    bool ok{false};
    void Handle() const { tag->Complete(ok); }
  };

  OrderOfEventsTest() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(health_.service());
    builder.RegisterService(&solver_);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }
  ~OrderOfEventsTest() override {
    server_->Shutdown(std::chrono::system_clock::now());
    while (parts_.calls.on_queue() > 0) Next(kHang).Handle();
    queue_->Shutdown();
    EXPECT_EQ(Next(kHang).tag, nullptr);
  }

  Event Next(std::chrono::milliseconds limit) {
    void* tag = nullptr;
    bool ok = false;
    const auto until = std::chrono::system_clock::now() + limit;
    if (queue_->AsyncNext(&tag, &ok, until) != grpc::CompletionQueue::GOT_EVENT) return {};
    return {static_cast<CompletionTag*>(tag), ok};
  }

  // A call of the method that is accepted and cancelled, and whose acceptance is handled last.
  void EndBeforeItBegins(const std::string& method) {
    const int awaited = parts_.calls.on_queue();
    grpc::GenericStub stub(grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    grpc::CompletionQueue of_client;
    const auto call = stub.PrepareCall(&context, method, &of_client);
    call->StartCall(nullptr);
    const Event accepted = Next(kHang);
    ASSERT_TRUE(accepted.tag != nullptr && accepted.ok);
    context.TryCancel();
    const Event done = Next(kHang);
    ASSERT_NE(done.tag, nullptr);
    done.Handle();
    HandleAll();
    accepted.Handle();
    HandleAll();
    EXPECT_EQ(parts_.calls.count(), 0);
    EXPECT_EQ(parts_.calls.on_queue(), awaited);
    of_client.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (of_client.Next(&tag, &ok)) {
    }
  }
  void HandleAll() {
    for (Event event = Next(kQuiet); event.tag != nullptr; event = Next(kQuiet)) event.Handle();
  }

  ServiceParts parts_;
  Solver solver_{kMethods};
  // They outlive the calls that the queue awaits for them.
  HealthService health_{parts_.config.connection, &parts_.calls, &parts_.authenticator,
                        parts_.observer};
  SessionStream sessions_{&solver_, parts_.context};
  BatchStream batches_{&solver_, parts_.context};
  Solve solve_{{&solver_, static_cast<int>(Method::kSolve), parts_.context, Method::kSolve},
               [](Solve::Call*) { ADD_FAILURE() << "the call is over"; }};
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

TEST_F(OrderOfEventsTest, AHealthCheckMayEndBeforeItsAcceptanceIsHandled) {
  health_.Await(queue_.get(), 1);
  EndBeforeItBegins("/grpc.health.v1.Health/Check");
}

TEST_F(OrderOfEventsTest, AHealthWatchMayEndBeforeItsAcceptanceIsHandled) {
  health_.Await(queue_.get(), 1);
  EndBeforeItBegins("/grpc.health.v1.Health/Watch");
}

TEST_F(OrderOfEventsTest, ASessionMayEndBeforeItsAcceptanceIsHandled) {
  sessions_.Await(queue_.get());
  EndBeforeItBegins("/sap.v1.SolverService/SolveSession");
}

TEST_F(OrderOfEventsTest, AStreamedBatchMayEndBeforeItsAcceptanceIsHandled) {
  batches_.Await(queue_.get());
  EndBeforeItBegins("/sap.v1.SolverService/StreamBatch");
}

TEST_F(OrderOfEventsTest, AUnaryCallMayEndBeforeItsAcceptanceIsHandled) {
  solve_.Await(queue_.get());
  EndBeforeItBegins("/sap.v1.SolverService/Solve");
}

}  // namespace
}  // namespace sap::test
