// Resuming sessions: a step has one outcome with the same bits although connections are lost, and
// unused sessions are dropped.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <thread>

#include "client/cpp/transport/message_conversion.h"
#include "sap/v1/solver_service.grpc.pb.h"
#include "server/rpc/grpc_server.h"
#include "tests/support/await.h"
#include "tests/support/faulty_link.h"
#include "tests/support/scenes.h"
#include "tests/support/solution_bits.h"

namespace sap::test {
namespace {

v1::ContactProblem Problem(int step) {
  v1::ContactProblem problem = MixedProblem();
  problem.mutable_trees()->clear_guess_velocity();
  problem.mutable_bodies()->clear_guess_velocity();
  problem.mutable_bodies()->clear_body_id();
  for (int i = 0; i < 2; ++i) problem.mutable_bodies()->add_body_id(10 + i);
  problem.mutable_bodies()->set_free_motion_velocity(2, -0.5 - 0.01 * step);
  return problem;
}

// A client of the wire.
class Stream {
 public:
  explicit Stream(v1::SolverService::Stub* stub, bool low_latency = false)
      : low_latency_(low_latency) {
    context_.set_deadline(std::chrono::system_clock::now() + kLong);
    stream_ = stub->SolveSession(&context_);
  }
  ~Stream() {
    if (!finished_) Lose();
  }

  bool Open(const std::string& resume_token = "", bool resumable = true) {
    v1::SolveSessionRequest request;
    request.mutable_open()->set_resume_token(resume_token);
    request.mutable_open()->set_resumable(resumable);
    request.mutable_open()->set_low_latency(low_latency_);
    stream_->Write(request);
    if (!stream_->Read(&response)) return false;
    token = response.opened().resume_token();
    return true;
  }

  void Send(int step) {
    v1::SolveSessionRequest request;
    request.mutable_step()->set_step_id(step);
    *request.mutable_step()->mutable_problem() = Problem(step);
    stream_->Write(request);
  }

  AnswerBits Receive() {
    if (!stream_->Read(&response)) return {"the stream has ended"};
    const v1::Outcome& outcome = response.step().outcome();
    if (!outcome.has_solution()) return {outcome.failure().message()};
    return Bits(outcome.solution());
  }

  AnswerBits Step(int step) {
    Send(step);
    return Receive();
  }

  grpc::StatusCode Lose() {
    context_.TryCancel();
    return Finish();
  }

  grpc::StatusCode Finish() {
    finished_ = true;
    return stream_->Finish().error_code();
  }

  grpc::StatusCode Close() {
    stream_->WritesDone();
    return Finish();
  }

  v1::SolveSessionResponse response;
  std::string token;

 private:
  const bool low_latency_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::SolveSessionRequest, v1::SolveSessionResponse>>
      stream_;
  bool finished_{false};
};

class SessionResumeTest : public testing::Test {
 protected:
  void Start(ServerConfig config = {}) {
    config.listen = "127.0.0.1:0";
    config.threads = 2;
    config.io_threads = 2;
    engine_ = std::make_unique<Engine>(config, nullptr, &metrics_);
    server_ = std::move(
        *GrpcServer::Start(config, engine_.get(), nullptr, CallObserver(&metrics_, nullptr)));
    stub_ = v1::SolverService::NewStub(
        grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
  }

  // Of one session that nothing happens to.
  std::vector<AnswerBits> Expected(int steps) {
    Stream stream(stub_.get());
    EXPECT_TRUE(stream.Open("", /*resumable=*/false));
    std::vector<AnswerBits> expected(1);
    for (int step = 1; step <= steps; ++step) expected.push_back(stream.Step(step));
    EXPECT_EQ(stream.Close(), grpc::StatusCode::OK);
    return expected;
  }

  void WaitForSessions(int count) const {
    const auto until = std::chrono::steady_clock::now() + kLong;
    while (engine_->num_sessions() != count && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    EXPECT_EQ(engine_->num_sessions(), count);
  }

  Metrics metrics_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<v1::SolverService::Stub> stub_;
};

// The answers that were lost come again, and the steps after start where they would have.
TEST_F(SessionResumeTest, ALostSessionGoesOnWithTheSameBits) {
  Start();
  const auto expected = Expected(8);
  std::string token;
  {
    Stream first(stub_.get());
    ASSERT_TRUE(first.Open());
    token = first.token;
    EXPECT_EQ(token.size(), 16u);
    EXPECT_GT(first.response.opened().resume_within_s(), 0);
    for (int step = 1; step <= 5; ++step) first.Send(step);
    EXPECT_EQ(first.Receive(), expected[1]);
    EXPECT_EQ(first.Receive(), expected[2]);
  }
  Stream second(stub_.get());
  ASSERT_TRUE(second.Open(token));
  EXPECT_EQ(second.token, token);
  EXPECT_GE(second.response.opened().last_step_id(), 2u);
  for (int step = 3; step <= 8; ++step) EXPECT_EQ(second.Step(step), expected[step]) << step;
  EXPECT_EQ(second.response.step().warm_started(), true);
  EXPECT_EQ(second.Close(), grpc::StatusCode::OK);
  WaitForSessions(0);
  EXPECT_EQ(metrics_.sessions_resumed.Sum(), 1u);
}

// As after a lost connection that the server has not noticed yet.
TEST_F(SessionResumeTest, ASessionIsTakenFromAStreamThatStillSeemsAlive) {
  Start();
  const auto expected = Expected(3);
  Stream first(stub_.get());
  ASSERT_TRUE(first.Open());
  EXPECT_EQ(first.Step(1), expected[1]);
  Stream second(stub_.get());
  ASSERT_TRUE(second.Open(first.token));
  EXPECT_EQ(first.Finish(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(second.Step(2), expected[2]);
  EXPECT_EQ(second.Step(3), expected[3]);
  EXPECT_EQ(second.Close(), grpc::StatusCode::OK);
  WaitForSessions(0);
}

// The client that resumes need not ask again.
TEST_F(SessionResumeTest, LowLatencyIsKept) {
  Start();
  for (const bool low_latency : {true, false}) {
    Stream first(stub_.get(), low_latency);
    ASSERT_TRUE(first.Open());
    EXPECT_EQ(first.response.opened().low_latency(), low_latency);
    Stream second(stub_.get());
    ASSERT_TRUE(second.Open(first.token));
    EXPECT_EQ(second.response.opened().low_latency(), low_latency);
    EXPECT_EQ(second.Close(), grpc::StatusCode::OK);
  }
}

TEST_F(SessionResumeTest, ATokenThatNobodyHasIsRefused) {
  Start();
  Stream stream(stub_.get());
  EXPECT_FALSE(stream.Open("0123456789abcdef"));
  EXPECT_EQ(stream.Finish(), grpc::StatusCode::FAILED_PRECONDITION);
  WaitForSessions(0);
}

// One that ended in good order, and one that was not opened to be resumed, leave nothing.
TEST_F(SessionResumeTest, OnlyWhatWasLostIsKept) {
  Start();
  Stream closed(stub_.get());
  ASSERT_TRUE(closed.Open());
  EXPECT_EQ(closed.Close(), grpc::StatusCode::OK);
  Stream plain(stub_.get());
  ASSERT_TRUE(plain.Open("", /*resumable=*/false));
  EXPECT_EQ(plain.token, "");
  EXPECT_EQ(plain.Lose(), grpc::StatusCode::CANCELLED);
  WaitForSessions(0);
}

TEST_F(SessionResumeTest, ALostSessionIsDroppedAfterAWhile) {
  ServerConfig config;
  config.session.resume_s = 0.2;
  Start(config);
  std::string token;
  {
    Stream stream(stub_.get());
    ASSERT_TRUE(stream.Open());
    token = stream.token;
  }
  WaitForSessions(0);
  Stream late(stub_.get());
  EXPECT_FALSE(late.Open(token));
}

TEST_F(SessionResumeTest, ALostSessionMakesRoomForANewOne) {
  ServerConfig config;
  config.session.max_sessions = 1;
  Start(config);
  {
    Stream lost(stub_.get());
    ASSERT_TRUE(lost.Open());
  }
  // Until the server has noticed, it may still be there.
  const auto until = std::chrono::steady_clock::now() + kLong;
  bool opened = false;
  while (!opened && std::chrono::steady_clock::now() < until) {
    Stream next(stub_.get());
    opened = next.Open();
  }
  EXPECT_TRUE(opened);
}

TEST_F(SessionResumeTest, AnIdleSessionEndsAndSaysWhy) {
  ServerConfig config;
  config.session.idle_s = 0.2;
  Start(config);
  Stream stream(stub_.get());
  ASSERT_TRUE(stream.Open());
  stream.Step(1);
  stream.Receive();
  EXPECT_EQ(stream.Finish(), grpc::StatusCode::ABORTED);
  WaitForSessions(0);
  EXPECT_EQ(metrics_.sessions_expired.Sum(), 1u);
}

TEST_F(SessionResumeTest, AnswersTellOfCreditsAndOfTheDrainBeforeItComes) {
  Start();
  Stream stream(stub_.get());
  ASSERT_TRUE(stream.Open());
  EXPECT_EQ(stream.response.credits(), 8u);
  const AnswerBits before = stream.Step(1);
  EXPECT_EQ(stream.response.credits(), 8u);
  EXPECT_FALSE(stream.response.draining());
  server_->AnnounceDrain();
  stream.Step(2);
  EXPECT_TRUE(stream.response.draining());
  EXPECT_TRUE(stream.response.step().outcome().has_solution());
  EXPECT_EQ(stream.Close(), grpc::StatusCode::OK);
  server_->Drain(kLong);
}

// The client library: a cut connection is not even noticed.
TEST_F(SessionResumeTest, TheClientResumesByItself) {
  Start();
  constexpr int kSteps = 200;
  const auto expected = Expected(kSteps);
  FaultyLink link(server_->address());
  auto client = client::Client::Connect(link.address());
  ASSERT_TRUE(client.has_value());
  auto session = client->OpenSession();
  ASSERT_TRUE(session.has_value());
  int sent = 0, received = 0;
  while (received < kSteps) {
    while (sent < kSteps && session->in_flight() < 4) {
      ASSERT_TRUE(session->Send(*client::FromMessage(Problem(++sent))).has_value());
    }
    const auto outcome = session->Receive();
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
    ++received;
    EXPECT_EQ(outcome->step_id, static_cast<uint64_t>(received));
    ASSERT_TRUE(outcome->solution.has_value()) << outcome->solution.error().message;
    v1::ContactSolution message;
    client::ToMessage(*outcome->solution, &message);
    EXPECT_EQ(Bits(message), expected[received]) << received;
    if (received % 20 == 10) link.Cut();
  }
  EXPECT_GT(link.connections(), 3);
  EXPECT_TRUE(session->Close().has_value());
  WaitForSessions(0);
}

}  // namespace
}  // namespace sap::test
