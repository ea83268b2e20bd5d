// Clients that stop halfway: messages that do not arrive, answers that are not taken.
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>

#include "tests/server/rpc/rpc_fixture.h"
#include "tests/server/service/batches.h"
#include "tests/support/await.h"
#include "tests/support/half_sent_call.h"

namespace sap::test::stalled_clients {
namespace {

constexpr uint32_t kAnnounced = 100 << 20;

std::string PathOf(const std::string& method) { return "/sap.v1.SolverService/" + method; }

class StalledClientsTest : public RpcFixture {
 protected:
  StalledClientsTest() {
    config_.threads = 1;
    config_.io_threads = 3;  // two queues
  }

  grpc::Status Solve() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLong);
    v1::SolveRequest request;
    *request.mutable_problem() = MixedProblem();
    v1::SolveResponse response;
    return stub_->Solve(&context, request, &response);
  }

  uint64_t Ended(Method method, grpc::StatusCode code) const {
    return metrics_.handled[static_cast<int>(method)][code].Sum();
  }
};

TEST_F(StalledClientsTest, AMessageThatStopsHalfwayEndsItsCall) {
  config_.read_timeout_s = 0.1;
  Start();
  for (const char* method :
       {"Solve", "SolveBatch", "StreamBatch", "SolveSession", "GetServerInfo"}) {
    HalfSentCall call(server_->address(), PathOf(method), kAnnounced);
    ASSERT_TRUE(Await([&] { return call.Ended(); })) << method;
  }
  EXPECT_TRUE(Await([&] { return Ended(Method::kSolve, grpc::CANCELLED) == 1; }));
  EXPECT_TRUE(Await([&] { return Ended(Method::kStreamBatch, grpc::CANCELLED) == 1; }));
  EXPECT_TRUE(Await([&] { return Ended(Method::kSolveSession, grpc::CANCELLED) == 1; }));
  // Once it has its message in time.
  EXPECT_TRUE(Await([&] { return Solve().ok(); }));
}

// gRPC does not tell when a step begins to arrive, so that the session counts as idle.
TEST_F(StalledClientsTest, AStepThatStopsHalfwayEndsItsSessionAsIdle) {
  config_.session.idle_s = 0.1;
  Start();
  v1::SolveSessionRequest open;
  open.mutable_open()->set_low_latency(true);
  HalfSentCall call(server_->address(), PathOf("SolveSession"), kAnnounced, 100,
                    open.SerializeAsString());
  EXPECT_TRUE(Await([&] { return call.Ended(); }));
  EXPECT_TRUE(Await([&] { return Ended(Method::kSolveSession, grpc::ABORTED) == 1; }));
  EXPECT_TRUE(Await([&] { return handler_->num_sessions() == 0; }));
}

// An upload that the client gives up is not counted with the bytes that are no message.
TEST_F(StalledClientsTest, AnUploadThatIsGivenUpIsCancelled) {
  Start();
  for (const char* method : {"Solve", "StreamBatch"}) {
    HalfSentCall call(server_->address(), PathOf(method), kAnnounced);
    ASSERT_TRUE(Await([&] { return call.WindowOpened(); }));
  }
  for (const Method method : {Method::kSolve, Method::kStreamBatch}) {
    EXPECT_TRUE(Await([&] { return Ended(method, grpc::CANCELLED) == 1; }));
    EXPECT_EQ(Ended(method, grpc::INVALID_ARGUMENT), 0u);
  }
}

TEST_F(StalledClientsTest, CallsThatAreBeingReceivedCountAgainstTheLimit) {
  config_.admission.client.max_calls = 1;
  Start();
  auto half = std::make_unique<HalfSentCall>(server_->address(), PathOf("Solve"), kAnnounced);
  ASSERT_TRUE(Await([&] { return half->WindowOpened(); }));
  EXPECT_EQ(Solve().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  half.reset();
  EXPECT_TRUE(Await([&] { return Solve().ok(); }));
}

// Two largest messages of one client are received at the same time here; the next one waits.
TEST_F(StalledClientsTest, OnlySoManyMessagesOfAClientAreReceivedAtTheSameTime) {
  config_.connection.max_memory_bytes = 6 * config_.max_message_bytes;
  Start();
  auto first = std::make_unique<HalfSentCall>(server_->address(), PathOf("Solve"), kAnnounced);
  HalfSentCall second(server_->address(), PathOf("StreamBatch"), kAnnounced);
  ASSERT_TRUE(Await([&] { return first->WindowOpened() && second.WindowOpened(); }));
  HalfSentCall third(server_->address(), PathOf("Solve"), kAnnounced);
  ASSERT_TRUE(Await([&] { return metrics_.started[static_cast<int>(Method::kSolve)].Sum() == 2; }));
  EXPECT_FALSE(third.WindowOpened());
  first.reset();
  EXPECT_TRUE(Await([&] { return third.WindowOpened(); }));
}

// Two slots here, and a client that has earned reads without one. What does not arrive in a second
// and finds no slot is ended, and told why.
TEST_F(StalledClientsTest, AMessageThatDoesNotArriveMakesRoomWithAReason) {
  config_.connection.max_memory_bytes = config_.max_message_bytes;
  Start();
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(Solve().ok());
  const auto refused = [&] { return metrics_.refusals()["SLOW_REQUEST"]; };
  HalfSentCall first(server_->address(), PathOf("Solve"), kAnnounced);
  HalfSentCall second(server_->address(), PathOf("StreamBatch"), kAnnounced);
  ASSERT_TRUE(Await([&] { return metrics_.reads_slow == 2; }));
  EXPECT_EQ(refused(), 0u);
  HalfSentCall third(server_->address(), PathOf("SolveBatch"), kAnnounced);
  EXPECT_TRUE(Await([&] { return third.Ended(); }));
  EXPECT_NE(third.trailers().find("did not arrive in full"), std::string::npos);
  EXPECT_NE(third.trailers().find("sap-server"), std::string::npos);
  EXPECT_EQ(refused(), 1u);
  EXPECT_TRUE(Await([&] { return Ended(Method::kSolveBatch, grpc::RESOURCE_EXHAUSTED) == 1; }));
  EXPECT_FALSE(first.Ended());
  EXPECT_FALSE(second.Ended());
  // Small messages are read meanwhile.
  EXPECT_TRUE(Solve().ok());
}

// A call that sends a request with a large answer and takes nothing of it.
class UntakenAnswer {
 public:
  UntakenAnswer(const std::string& address, const char* method,
                const google::protobuf::Message& request) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    grpc::GenericStub stub(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
    context_.set_deadline(std::chrono::system_clock::now() + kLong);
    call_ = stub.PrepareCall(&context_, PathOf(method), &queue_);
    call_->StartCall(nullptr);
    Next();
    const grpc::Slice slice(request.SerializeAsString());
    call_->WriteLast(grpc::ByteBuffer(&slice, 1), {}, nullptr);
    Next();
  }

  grpc::StatusCode Finish() {
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Next();
    return status.error_code();
  }

  grpc::ClientContext* context() { return &context_; }

 private:
  void Next() {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
  }

  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

v1::SolveRequest WithLargeAnswer() {
  v1::SolveRequest request;
  *request.mutable_problem() = Block(16);
  request.mutable_options()->set_max_iterations(1);
  return request;
}

TEST_F(StalledClientsTest, AnAnswerThatIsNotTakenEndsItsCall) {
  config_.session.write_timeout_s = 0.1;
  Start();
  UntakenAnswer call(server_->address(), "Solve", WithLargeAnswer());
  ASSERT_TRUE(Await([&] { return Ended(Method::kSolve, grpc::OK) == 1; }));
  // The call no longer keeps the server from ending.
  auto drained = std::async(std::launch::async, [this] { server_->Drain(10 * kLong); });
  EXPECT_EQ(drained.wait_for(kLong), std::future_status::ready);
  call.context()->TryCancel();
  EXPECT_EQ(call.Finish(), grpc::StatusCode::CANCELLED);
}

// Bytes count until the answer is taken: those of a request,
TEST_F(StalledClientsTest, AnswersThatAreNotTakenCountAgainstTheLimit) {
  config_.admission.client.max_bytes = 1 << 20;
  Start();
  ASSERT_GT(WithLargeAnswer().ByteSizeLong(), 1u << 20);
  UntakenAnswer call(server_->address(), "Solve", WithLargeAnswer());
  ASSERT_TRUE(Await([&] { return Ended(Method::kSolve, grpc::OK) == 1; }));
  const auto exhausted = [&] {
    return Solve().error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
  };
  EXPECT_TRUE(Await(exhausted));
  call.context()->TryCancel();
  EXPECT_EQ(call.Finish(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Await([&] { return Solve().ok(); }));
}

// or those of an answer that is larger: a thousand gradients.
TEST_F(StalledClientsTest, DerivativesThatAreNotTakenCountWithTheirOwnBytes) {
  config_.admission.client.max_bytes = 1 << 18;
  Start();
  v1::DifferentiateRequest request;
  *request.mutable_problem() = MixedProblem();
  while (request.cotangents_size() < 1000) request.add_cotangents();
  ASSERT_LT(request.ByteSizeLong(), 1u << 14);
  UntakenAnswer call(server_->address(), "Differentiate", request);
  ASSERT_TRUE(Await([&] { return Ended(Method::kDifferentiate, grpc::OK) == 1; }));
  EXPECT_TRUE(Await([&] { return Solve().error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED; }));
  call.context()->TryCancel();
  EXPECT_EQ(call.Finish(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Await([&] { return Solve().ok(); }));
}

}  // namespace
}  // namespace sap::test::stalled_clients
