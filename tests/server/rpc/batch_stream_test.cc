// Batches over gRPC: as one message, or as a stream of outcomes.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <thread>

#include "sap/v1/solver_service.grpc.pb.h"
#include "server/rpc/grpc_server.h"
#include "tests/server/service/batches.h"
#include "tests/support/await.h"

namespace sap::test {
namespace {

class BatchServerTest : public testing::Test {
 protected:
  BatchServerTest() : handler_(BatchConfig()) {
    auto server = GrpcServer::Start(BatchConfig(), &handler_);
    EXPECT_TRUE(server.has_value()) << server.error();
    server_ = std::move(*server);
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    stub_ = v1::SolverService::NewStub(grpc::CreateCustomChannel(
        server_->address(), grpc::InsecureChannelCredentials(), arguments));
    context_.set_deadline(std::chrono::system_clock::now() + kLong);
  }

  BlockingHandler handler_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<v1::SolverService::Stub> stub_;
  grpc::ClientContext context_;
};

TEST_F(BatchServerTest, OneMessageAnswersAll) {
  const auto request = MixedBatch<v1::SolveBatchRequest>();
  v1::SolveBatchResponse response;
  ASSERT_TRUE(stub_->SolveBatch(&context_, request, &response).ok());
  EXPECT_EQ(AllBits(response), OneByOne(&handler_, request));
}

TEST_F(BatchServerTest, AStreamAnswersEachOnce) {
  const auto stream = stub_->StreamBatch(&context_, MixedBatch<v1::StreamBatchRequest>());
  std::vector<AnswerBits> outcomes(21);
  v1::StreamBatchResponse response;
  int answers = 0;
  for (; stream->Read(&response); ++answers) {
    ASSERT_LT(response.index(), outcomes.size());
    EXPECT_TRUE(outcomes[response.index()].bytes.empty());
    outcomes[response.index()] = BitsOf(response.outcome());
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(answers, 21);
  EXPECT_EQ(outcomes, OneByOne(&handler_, MixedBatch<v1::SolveBatchRequest>()));
}

TEST_F(BatchServerTest, AnEmptyStreamEndsWell) {
  const auto stream = stub_->StreamBatch(&context_, {});
  v1::StreamBatchResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(BatchServerTest, AStreamOverTheLimitIsRefused) {
  v1::StreamBatchRequest request;
  for (int i = 0; i < 41; ++i) request.add_problems();
  const auto stream = stub_->StreamBatch(&context_, request);
  v1::StreamBatchResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

// The small problem is answered while the large ones are still being solved; after the cancellation
// the server has its threads back, or the next call would not be answered in time.
TEST_F(BatchServerTest, OutcomesComeAsTheyAreReadyAndACancelledBatchStops) {
  v1::StreamBatchRequest request;
  *request.add_problems() = Block(24);
  *request.add_problems() = test::MixedProblem();
  const auto stream = stub_->StreamBatch(&context_, request);
  v1::StreamBatchResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.index(), 1u);
  context_.TryCancel();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);

  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLong);
  v1::SolveBatchResponse answer;
  v1::SolveBatchRequest next;
  for (int i = 0; i < 4; ++i) *next.add_problems() = Block(4);
  EXPECT_TRUE(stub_->SolveBatch(&context, next, &answer).ok());
}

// gRPC closes the connection once the last call is answered, which resets it while the client still
// sends window updates; an answer larger than the buffers of the connection could be lost then.
TEST_F(BatchServerTest, DrainingFinishesTheBatchThatRuns) {
  v1::SolveBatchRequest request;
  for (int i = 0; i < 4; ++i) *request.add_problems() = Block(16);
  request.mutable_options()->mutable_response_mask()->add_paths("cost");
  request.mutable_options()->mutable_time_budget()->set_seconds(5);
  v1::SolveBatchResponse response;
  std::thread drain([this] {
    EXPECT_TRUE(Await([this] { return handler_.queue().running() > 0; }));
    server_->Drain(kLong);
  });
  const grpc::Status status = stub_->SolveBatch(&context_, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_code() << ' ' << status.error_message();
  EXPECT_EQ(response.outcomes_size(), 4);
  drain.join();
}

}  // namespace
}  // namespace sap::test
