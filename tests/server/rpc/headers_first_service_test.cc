// A server that is full refuses calls by their headers, before their messages are sent.
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <numeric>
#include <string>

#include "tests/server/rpc/rpc_fixture.h"
#include "tests/server/service/batches.h"
#include "tests/support/await.h"

namespace sap::test {
namespace {

class HeadersFirstServiceTest : public RpcFixture {
 protected:
  HeadersFirstServiceTest() {
    config_.threads = 1;
    config_.inline_below_us = 0;
  }

  // How a call ends of which nothing but the headers is ever sent.
  grpc::Status EndOfHeadersAlone(const std::string& method) {
    grpc::GenericStub stub(channel_);
    grpc::CompletionQueue queue;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLong);
    const auto call = stub.PrepareCall(&context, "/sap.v1.SolverService/" + method, &queue);
    void* tag = nullptr;
    bool ok = false;
    call->StartCall(nullptr);
    queue.Next(&tag, &ok);
    grpc::Status status;
    call->Finish(&status, nullptr);
    queue.Next(&tag, &ok);
    return status;
  }
};

TEST_F(HeadersFirstServiceTest, ACallOverALimitIsRefusedByItsHeaders) {
  config_.admission.client.max_calls = 1;
  Start();
  const auto account = handler_->admission().AccountOf("address:ipv4:127.0.0.1");
  ASSERT_TRUE(handler_->admission().Admit(account.get(), {}).has_value());
  for (const char* method : {"Solve", "SolveBatch", "StreamBatch"}) {
    EXPECT_EQ(EndOfHeadersAlone(method).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
  handler_->admission().Release(account.get(), {});
  grpc::ClientContext context;
  v1::SolveRequest request;
  *request.mutable_problem() = MixedProblem();
  v1::SolveResponse response;
  EXPECT_TRUE(stub_->Solve(&context, request, &response).ok());
}

// However many there are, each is told: the first ones at once, the others when it is time.
TEST_F(HeadersFirstServiceTest, RefusalsThatAreHeldAreSentToo) {
  config_.admission.client.max_calls = 1;
  Start();
  const auto account = handler_->admission().AccountOf("address:ipv4:127.0.0.1");
  ASSERT_TRUE(handler_->admission().Admit(account.get(), {}).has_value());
  for (const char* method : {"Solve", "StreamBatch"}) {
    for (int i = 0; i < 120; ++i) {
      EXPECT_EQ(EndOfHeadersAlone(method).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    }
  }
  handler_->admission().Release(account.get(), {});
}

// A call under way, to be given up at the end.
struct Started {
  Started(v1::SolverService::Stub* stub, const v1::SolveRequest& request) {
    context.set_deadline(std::chrono::system_clock::now() + kLong);
    reader = stub->AsyncSolve(&context, request, &queue);
    reader->Finish(&response, &status, nullptr);
  }
  ~Started() {
    context.TryCancel();
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
  }
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  v1::SolveResponse response;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::SolveResponse>> reader;
};

TEST_F(HeadersFirstServiceTest, HighPriorityInTheHeadersPassesWhereNormalIsRefused) {
  config_.queue_timeout_s = 2.5;  // the two large calls are predicted to take longer
  Start();
  v1::SolveRequest large;
  *large.mutable_problem() = Block(24);
  const FairQueue& queue = handler_->queue();
  const Started running(stub_.get(), large);
  ASSERT_TRUE(Await([&] { return queue.running() == 1 && queue.queued() == 0; }));
  const Started waiting(stub_.get(), large);
  ASSERT_TRUE(Await([&] { return queue.queued() == 1; }));
  EXPECT_EQ(EndOfHeadersAlone("Solve").error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);

  grpc::ClientContext context;
  context.AddMetadata("sap-priority", "high");
  context.set_deadline(std::chrono::system_clock::now() + kLong);
  v1::SolveRequest request;
  *request.mutable_problem() = MixedProblem();
  request.mutable_options()->set_priority(v1::PRIORITY_HIGH);
  v1::SolveResponse response;
  const grpc::Status status = stub_->Solve(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

// Who opens a call and goes without sending its message leaves nothing behind.
TEST_F(HeadersFirstServiceTest, ACallWhoseMessageNeverComesLeavesNothingBehind) {
  Start();
  for (int i = 0; i < 20; ++i) {
    grpc::GenericStub stub(channel_);
    grpc::CompletionQueue queue;
    grpc::ClientContext context;
    const auto call = stub.PrepareCall(&context, "/sap.v1.SolverService/Solve", &queue);
    void* tag = nullptr;
    bool ok = false;
    call->StartCall(nullptr);
    queue.Next(&tag, &ok);
    context.TryCancel();
    grpc::Status status;
    call->Finish(&status, nullptr);
    queue.Next(&tag, &ok);
  }
  EXPECT_EQ(handler_->admission().calls(), 0);
  server_->Drain(kLong);
}

TEST_F(HeadersFirstServiceTest, AClientThatTakesNoAnswersOfABatchIsCutOff) {
  config_.session.write_timeout_s = 0.1;
  Start();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  const auto stub = v1::SolverService::NewStub(
      grpc::CreateCustomChannel(server_->address(), grpc::InsecureChannelCredentials(), arguments));
  v1::StreamBatchRequest request;
  for (int i = 0; i < 40; ++i) *request.add_problems() = Block(8);
  request.mutable_options()->set_max_iterations(1);
  grpc::ClientContext context;
  const auto stream = stub->StreamBatch(&context, request);
  // The call ends on the server although none of its answers is read: with OK there if all problems
  // were solved by then, and with CANCELLED for the client in any case.
  const auto& ended = metrics_.handled[static_cast<int>(Method::kStreamBatch)];
  EXPECT_TRUE(Await([&] {
    return std::accumulate(
               std::begin(ended), std::end(ended), uint64_t{0},
               [](uint64_t sum, const Counter& counter) { return sum + counter.Sum(); }) == 1;
  }));
  EXPECT_GT(metrics_.problems_solved.Sum(), 0u);
  v1::StreamBatchResponse response;
  int read = 0;
  while (stream->Read(&response)) ++read;
  EXPECT_LT(read, 40);
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

}  // namespace
}  // namespace sap::test
