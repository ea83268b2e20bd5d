// A client of SolveSession without the client library, and a server with room for three sessions.
#pragma once

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "client/cpp/transport/message_conversion.h"
#include "tests/server/rpc/rpc_fixture.h"
#include "tests/support/await.h"
#include "tests/support/scenes.h"

namespace sap::test::session_streams {

inline ServerConfig Config() {
  ServerConfig config;
  config.listen = "127.0.0.1:0";
  config.threads = 2;
  config.io_threads = 3;  // two queues
  config.admission.all.max_sessions = 3;
  config.session.max_steps_in_flight = 4;
  return config;
}

inline v1::ContactProblem Small(int step = 0) {
  v1::ContactProblem problem = MixedProblem();
  problem.mutable_trees()->clear_guess_velocity();
  problem.mutable_bodies()->clear_guess_velocity();
  problem.mutable_bodies()->set_free_motion_velocity(2, -0.5 - 0.01 * step);
  return problem;
}

inline v1::ContactProblem Block(int count) {
  v1::ContactProblem problem;
  client::ToMessage(SphereBlock(count), &problem);
  return problem;
}

// Whole minutes of work unless it is stopped.
inline const v1::ContactProblem& Endless() {
  static const v1::ContactProblem problem = Block(24);
  return problem;
}

// A client of the wire, without the client library.
class Stream {
 public:
  explicit Stream(v1::SolverService::Stub* stub, std::chrono::milliseconds deadline = kLong) {
    context_.set_deadline(std::chrono::system_clock::now() + deadline);
    stream_ = stub->SolveSession(&context_);
  }

  ~Stream() {
    if (!finished_) context_.TryCancel();
    Finish();
  }

  bool Open(const v1::SolveOptions& options = {}) {
    v1::SolveSessionRequest request;
    *request.mutable_open()->mutable_options() = options;
    stream_->Write(request);
    return Read() && response_.has_opened();
  }

  bool Send(uint64_t step_id, const v1::ContactProblem& problem) {
    v1::SolveSessionRequest request;
    request.mutable_step()->set_step_id(step_id);
    *request.mutable_step()->mutable_problem() = problem;
    return stream_->Write(request);
  }

  bool Send(const v1::SolveSessionRequest& request) { return stream_->Write(request); }
  bool Read() { return stream_->Read(&response_); }
  void CloseWriting() { stream_->WritesDone(); }
  void Cancel() { context_.TryCancel(); }

  // Whether the next answer is the solution of this step.
  bool Solved(uint64_t step_id) {
    return Read() && step().step_id() == step_id && step().outcome().has_solution();
  }

  const v1::StepOutcome& step() const { return response_.step(); }
  const v1::SolveSessionResponse& response() const { return response_; }
  const grpc::ClientContext& context() const { return context_; }

  grpc::Status Finish() {
    if (finished_) return status_;
    while (Read()) {
    }
    finished_ = true;
    return status_ = stream_->Finish();
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::SolveSessionRequest, v1::SolveSessionResponse>>
      stream_;
  v1::SolveSessionResponse response_;
  bool finished_{false};
  grpc::Status status_;
};

class SessionStreamTest : public RpcFixture {
 protected:
  SessionStreamTest() {
    // A window of 64 kB, so that large answers wait until they are read.
    channel_arguments_.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    Start(Config());
  }

  void Start(const ServerConfig& config) {
    config_ = config;
    RpcFixture::Start();
  }

  ~SessionStreamTest() override { ExpectSessions(0); }

  // The end of a stream reaches the client before the server has cleared up.
  void ExpectSessions(int count) {
    Await([&] { return handler_->num_sessions() == count; });
    EXPECT_EQ(handler_->num_sessions(), count);
  }

  void ExpectRefused(Stream* stream, grpc::StatusCode code, const std::string& words) {
    const grpc::Status status = stream->Finish();
    EXPECT_EQ(status.error_code(), code);
    EXPECT_THAT(status.error_message(), testing::HasSubstr(words));
  }
};

}  // namespace sap::test::session_streams
