// SolveSession over gRPC: order of messages, steps sent ahead, and every end of a stream. No case
// leaves a session behind.
#include "server/rpc/session_stream.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <future>
#include <optional>

#include "tests/server/rpc/session_streams.h"
#include "tests/support/solution_bits.h"

namespace sap::test::session_streams {
namespace {

// A stream of arbitrary bytes, which generated stubs cannot send.
class RawStream {
 public:
  explicit RawStream(const std::string& address)
      : stub_(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())) {
    context_.set_deadline(std::chrono::system_clock::now() + kLong);
    stream_ = stub_.PrepareCall(&context_, "/sap.v1.SolverService/SolveSession", &queue_);
    stream_->StartCall(this);
    Await();
  }
  ~RawStream() { queue_.Shutdown(); }

  bool Write(const std::string& bytes) {
    const grpc::Slice slice(bytes);
    stream_->Write(grpc::ByteBuffer(&slice, 1), this);
    return Await();
  }

  // Until the end of the stream.
  std::vector<grpc::ByteBuffer> ReadAll() {
    std::vector<grpc::ByteBuffer> messages;
    grpc::ByteBuffer message;
    for (stream_->Read(&message, this); Await(); stream_->Read(&message, this)) {
      messages.push_back(message);
    }
    stream_->Finish(&status_, this);
    Await();
    return messages;
  }

  const grpc::Status& status() const { return status_; }

 private:
  bool Await() {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
    return ok;
  }

  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  grpc::Status status_;
};

TEST_F(SessionStreamTest, StepsAreAnsweredOneByOne) {
  Stream stream(stub_.get());
  ASSERT_TRUE(stream.Open());
  EXPECT_EQ(stream.response().opened().max_steps_in_flight(), 4u);
  for (int i = 1; i <= 20; ++i) {
    ASSERT_TRUE(stream.Send(i, Small(i)));
    ASSERT_TRUE(stream.Solved(i));
    EXPECT_EQ(stream.step().warm_started(), i > 1);
  }
  ExpectSessions(1);
  stream.CloseWriting();
  EXPECT_TRUE(stream.Finish().ok());
}

// Sent as fast as they can be, small and large ones mixed: the answers come in the order of the
// steps with the bits of one at a time.
TEST_F(SessionStreamTest, StepsSentAheadAreAnsweredInOrderWithTheSameBits) {
  constexpr int kSteps = 60;
  const auto problem = [](int i) { return i % 5 == 3 ? Block(4) : Small(i); };
  std::vector<AnswerBits> one_by_one;
  Stream waiting(stub_.get());
  ASSERT_TRUE(waiting.Open());
  for (int i = 0; i < kSteps; ++i) {
    ASSERT_TRUE(waiting.Send(i, problem(i)));
    ASSERT_TRUE(waiting.Solved(i));
    one_by_one.push_back(Bits(waiting.step().outcome().solution()));
  }
  Stream ahead(stub_.get());
  ASSERT_TRUE(ahead.Open());
  auto sender = std::async(std::launch::async, [&] {
    for (int i = 0; i < kSteps; ++i) ahead.Send(i, problem(i));
    ahead.CloseWriting();
  });
  for (int i = 0; i < kSteps; ++i) {
    ASSERT_TRUE(ahead.Solved(i));
    EXPECT_EQ(Bits(ahead.step().outcome().solution()), one_by_one[i]) << i;
  }
  sender.get();
  EXPECT_TRUE(ahead.Finish().ok());
}

TEST_F(SessionStreamTest, FailedStepsAreAnsweredInTheirPlace) {
  Stream stream(stub_.get());
  ASSERT_TRUE(stream.Open());
  v1::ContactProblem bad = Small();
  bad.set_time_step(-1);
  stream.Send(1, Small());
  stream.Send(2, bad);
  stream.Send(2, Small());
  stream.Send(3, Small());
  EXPECT_TRUE(stream.Solved(1));
  ASSERT_TRUE(stream.Read());
  EXPECT_EQ(stream.step().outcome().failure().field(), "time_step");
  ASSERT_TRUE(stream.Read());
  EXPECT_EQ(stream.step().outcome().failure().field(), "step_id");
  EXPECT_TRUE(stream.Solved(3));
  EXPECT_TRUE(stream.step().warm_started());
}

TEST_F(SessionStreamTest, WhenTheClientClosesItsSideTheStepsAreStillAnswered) {
  Stream stream(stub_.get());
  ASSERT_TRUE(stream.Open());
  stream.Send(1, Block(6));
  stream.Send(2, Small());
  stream.CloseWriting();
  EXPECT_TRUE(stream.Solved(1));
  EXPECT_TRUE(stream.Solved(2));
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(SessionStreamTest, AStreamThatDoesNotOpenASessionIsRefused) {
  Stream silent(stub_.get());
  silent.CloseWriting();
  ExpectRefused(&silent, grpc::StatusCode::INVALID_ARGUMENT, "open is missing");

  Stream hasty(stub_.get());
  hasty.Send(1, Small());
  ExpectRefused(&hasty, grpc::StatusCode::INVALID_ARGUMENT, "open is missing");

  Stream empty(stub_.get());
  empty.Send(v1::SolveSessionRequest());
  ExpectRefused(&empty, grpc::StatusCode::INVALID_ARGUMENT, "request is missing");

  v1::SolveOptions options;
  options.set_relative_tolerance(-1);
  Stream wrong(stub_.get());
  EXPECT_FALSE(wrong.Open(options));
  ExpectRefused(&wrong, grpc::StatusCode::INVALID_ARGUMENT, "options.relative_tolerance is -1");
}

// The steps before it have their answers.
TEST_F(SessionStreamTest, AMessageWithoutAPlaceEndsTheSession) {
  v1::SolveSessionRequest open;
  open.mutable_open();
  for (const v1::SolveSessionRequest& wrong : {open, v1::SolveSessionRequest()}) {
    Stream stream(stub_.get());
    ASSERT_TRUE(stream.Open());
    stream.Send(1, Block(6));
    stream.Send(2, Small());
    stream.Send(wrong);
    EXPECT_TRUE(stream.Solved(1));
    EXPECT_TRUE(stream.Solved(2));
    ExpectRefused(&stream, grpc::StatusCode::INVALID_ARGUMENT,
                  wrong.has_open() ? "open is sent a second time" : "request is missing");
  }
}

// Bytes that are no message have no outcome, so that the session cannot go on after them.
TEST_F(SessionStreamTest, BytesThatAreNoMessageEndTheSession) {
  v1::SolveSessionRequest open, step;
  open.mutable_open();
  step.mutable_step()->set_step_id(1);
  *step.mutable_step()->mutable_problem() = Small();
  const std::vector<std::string> messages = {open.SerializeAsString(), step.SerializeAsString(),
                                             "\xff\xff\xff"};
  for (const bool at_first : {false, true}) {
    RawStream stream(server_->address());
    for (const std::string& message : messages) {
      if (!at_first || &message == &messages.back()) stream.Write(message);
    }
    const auto answers = stream.ReadAll();
    EXPECT_EQ(answers.size(), at_first ? 0u : 2u);
    EXPECT_EQ(stream.status().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(stream.status().error_message(), testing::HasSubstr("not a"));
  }
}

TEST_F(SessionStreamTest, BeyondTheLimitOfSessionsOneIsRefusedAndThenHasItsTurn) {
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 3; ++i) {
    streams.push_back(std::make_unique<Stream>(stub_.get()));
    ASSERT_TRUE(streams.back()->Open());
  }
  Stream refused(stub_.get());
  EXPECT_FALSE(refused.Open());
  ExpectRefused(&refused, grpc::StatusCode::RESOURCE_EXHAUSTED, "limit of 3 sessions");
  streams.pop_back();
  ExpectSessions(2);
  Stream taken(stub_.get());
  EXPECT_TRUE(taken.Open());
}

// Sessions of one client leave room for those of others, and end none of them.
TEST_F(SessionStreamTest, OneClientMayNotOpenAllSessions) {
  ServerConfig config = Config();
  config.admission.client.max_sessions = 1;
  Start(config);
  Stream first(stub_.get());
  ASSERT_TRUE(first.Open());
  Stream refused(stub_.get());
  EXPECT_FALSE(refused.Open());
  ExpectRefused(&refused, grpc::StatusCode::RESOURCE_EXHAUSTED, "this client already has");
  const auto other = handler_->admission().AccountOf("other");
  EXPECT_TRUE(handler_->NewSession(other.get()).has_value());
  EXPECT_TRUE(first.Send(1, Small()));
  EXPECT_TRUE(first.Solved(1));
}

TEST_F(SessionStreamTest, ACancelledSessionStopsItsStep) {
  Stream stream(stub_.get());
  ASSERT_TRUE(stream.Open());
  stream.Send(1, Endless());
  stream.Send(2, Small());
  ASSERT_TRUE(Await([this] { return handler_->queue().running() > 0; }));
  stream.Cancel();
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::CANCELLED);
  ExpectSessions(0);
}

TEST_F(SessionStreamTest, AnIdleSessionThatIsCancelledGoes) {
  for (int i = 0; i < 20; ++i) {
    Stream stream(stub_.get());
    ASSERT_TRUE(stream.Open());
    stream.Cancel();
    EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::CANCELLED);
    ExpectSessions(0);
  }
}

TEST_F(SessionStreamTest, TheDeadlineEndsTheSessionAndItsStep) {
  // Long enough to open a session: a busy machine may need several attempts.
  std::optional<Stream> stream;
  auto deadline = std::chrono::milliseconds(200);
  ASSERT_TRUE(Await([&] {
    stream.emplace(stub_.get(), deadline *= 2);
    return stream->Open();
  }));
  stream->Send(1, Endless());
  // The best iterate may just have made it, or the outcome of a step that had none in time.
  while (stream->Read()) {
    const v1::Outcome& outcome = stream->step().outcome();
    if (outcome.has_failure()) {
      EXPECT_EQ(outcome.failure().code(), grpc::StatusCode::DEADLINE_EXCEEDED);
    } else {
      EXPECT_THAT(outcome.solution().islands().status(),
                  testing::ElementsAre(v1::ISLAND_STATUS_DEADLINE));
    }
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  ExpectSessions(0);
}

TEST_F(SessionStreamTest, AnIdleSessionEndsAndSaysWhy) {
  ServerConfig config = Config();
  config.session.idle_s = 3;  // longer than a busy machine takes for the step
  Start(config);
  Stream stream(stub_.get());
  ASSERT_TRUE(stream.Open());
  stream.Send(1, Small());
  EXPECT_TRUE(stream.Solved(1));
  ExpectRefused(&stream, grpc::StatusCode::ABORTED, "idle");
  ExpectSessions(0);
  EXPECT_EQ(metrics_.sessions_expired.Sum(), 1u);
}

TEST_F(SessionStreamTest, AnswersTellOfCreditsAndOfTheDrainBeforeItComes) {
  Stream stream(stub_.get());
  ASSERT_TRUE(stream.Open());
  EXPECT_EQ(stream.response().credits(), 4u);
  stream.Send(1, Small());
  ASSERT_TRUE(stream.Solved(1));
  EXPECT_EQ(stream.response().credits(), 4u);
  EXPECT_FALSE(stream.response().draining());
  server_->AnnounceDrain();
  stream.Send(2, Small());
  ASSERT_TRUE(stream.Solved(2));
  EXPECT_TRUE(stream.response().draining());
}

// A client that does not read cannot be told why: its status would wait behind the answer.
TEST_F(SessionStreamTest, AnAnswerThatIsNotReadCancelsTheSession) {
  ServerConfig config = Config();
  config.session.write_timeout_s = 0.2;
  Start(config);
  Stream stream(stub_.get());
  ASSERT_TRUE(stream.Open());
  stream.Send(1, Block(12));
  ExpectSessions(0);
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::CANCELLED);
}

// The time begins with the answer, not with the step.
TEST_F(SessionStreamTest, AStepThatTakesLongerThanTheWriteTimeoutKeepsItsAnswer) {
  ServerConfig config = Config();
  config.session.write_timeout_s = 8;
  config.session.idle_s = 3;
  Start(config);
  Stream stream(stub_.get());
  ASSERT_TRUE(stream.Open());
  v1::SolveSessionRequest request;
  request.mutable_step()->set_step_id(1);
  *request.mutable_step()->mutable_problem() = Endless();
  request.mutable_step()->mutable_options()->mutable_time_budget()->set_seconds(9);
  stream.Send(request);
  ASSERT_TRUE(Await([this] { return handler_->queue().running() > 0; }));
  ASSERT_TRUE(Await([this] { return handler_->queue().running() == 0; }));
  // The sweep that ends this session finds the answer of the other one unread.
  Stream idle(stub_.get());
  ASSERT_TRUE(idle.Open());
  ExpectRefused(&idle, grpc::StatusCode::ABORTED, "idle");
  EXPECT_TRUE(stream.Solved(1));
}

TEST_F(SessionStreamTest, DrainingAnswersTheStepsTakenInAndEndsTheSession) {
  Stream busy(stub_.get());
  ASSERT_TRUE(busy.Open());
  Stream idle(stub_.get());
  ASSERT_TRUE(idle.Open());
  v1::SolveSessionRequest request;
  request.mutable_step()->set_step_id(7);
  *request.mutable_step()->mutable_problem() = Endless();
  request.mutable_step()->mutable_options()->mutable_time_budget()->set_seconds(1);
  busy.Send(request);
  // From its arrival until its answer, larger than the window, is read.
  ASSERT_TRUE(Await([this] { return handler_->admission().bytes() > 0; }));
  auto drained = std::async(std::launch::async, [this] { server_->Drain(kLong); });
  ExpectRefused(&idle, grpc::StatusCode::UNAVAILABLE, "shutting down");
  EXPECT_TRUE(busy.Solved(7));
  ExpectRefused(&busy, grpc::StatusCode::UNAVAILABLE, "shutting down");
  EXPECT_EQ(drained.wait_for(kLong), std::future_status::ready);
  Stream late(stub_.get());
  EXPECT_FALSE(late.Open());
  EXPECT_EQ(late.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(SessionStreamTest, TheDrainTimeoutCancelsTheStepThatIsLeft) {
  Stream stream(stub_.get());
  ASSERT_TRUE(stream.Open());
  stream.Send(1, Endless());
  ASSERT_TRUE(Await([this] { return handler_->queue().running() > 0; }));
  server_->Drain(std::chrono::milliseconds(100));
  EXPECT_FALSE(stream.Finish().ok());
  ExpectSessions(0);
}

TEST_F(SessionStreamTest, AServerThatGoesTakesItsSessionsWithIt) {
  Stream stream(stub_.get());
  ASSERT_TRUE(stream.Open());
  stream.Send(1, Endless());
  server_.reset();
  EXPECT_FALSE(stream.Finish().ok());
  ExpectSessions(0);
}

TEST_F(SessionStreamTest, AMessageOverTheLimitEndsTheSession) {
  ServerConfig config = Config();
  config.max_message_bytes = 20'000;
  const auto server = GrpcServer::Start(config, handler_.get());
  ASSERT_TRUE(server.has_value()) << server.error();
  const auto stub = v1::SolverService::NewStub(
      grpc::CreateChannel((*server)->address(), grpc::InsecureChannelCredentials()));
  Stream stream(stub.get());
  ASSERT_TRUE(stream.Open());
  stream.Send(1, Block(8));
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  ExpectSessions(0);
}

// A client that sends and never reads holds up itself alone.
TEST_F(SessionStreamTest, AClientThatDoesNotReadKeepsNobodyFromTheServer) {
  Stream deaf(stub_.get());
  ASSERT_TRUE(deaf.Open());
  auto sender = std::async(std::launch::async, [&] {
    for (uint64_t i = 0; deaf.Send(i, Block(8)); ++i) {
    }
  });
  Stream other(stub_.get());
  ASSERT_TRUE(other.Open());
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(other.Send(i, Small(i)));
    ASSERT_TRUE(other.Solved(i));
  }
  deaf.Cancel();
  EXPECT_EQ(sender.wait_for(kLong), std::future_status::ready);
}

}  // namespace
}  // namespace sap::test::session_streams
