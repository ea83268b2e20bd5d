// Limits on bytes in sessions: what waits to be solved or to be received counts, and a client at
// its limit waits in the transport.
#include <future>

#include "tests/server/rpc/session_streams.h"

namespace sap::test::session_streams {
namespace {

class SessionBytesTest : public SessionStreamTest {
 protected:
  static v1::SolveSessionRequest Request(uint64_t step_id, int bodies) {
    v1::SolveSessionRequest request;
    request.mutable_step()->set_step_id(step_id);
    *request.mutable_step()->mutable_problem() = Block(bodies);
    return request;
  }

  // Takes all of its budget, which is longer than a busy machine takes to receive the next step.
  static v1::SolveSessionRequest Long() {
    v1::SolveSessionRequest request = Request(1, 16);
    v1::SolveOptions* options = request.mutable_step()->mutable_options();
    options->set_newton(v1::NEWTON_METHOD_GAUSS_SEIDEL);
    options->set_max_iterations(10'000);
    options->set_relative_tolerance(0);
    options->set_absolute_speed_tolerance(0);
    options->mutable_time_budget()->set_seconds(8);
    return request;
  }

  static v1::SolveSessionRequest Short() {
    v1::SolveSessionRequest request = Request(2, 8);
    request.mutable_step()->mutable_options()->set_max_iterations(1);
    return request;
  }

  int64_t Held() { return handler_->admission().bytes(); }

  const v1::SolveSessionRequest running_ = Long();
  const v1::SolveSessionRequest waiting_ = Short();
  const int64_t running_bytes_ = static_cast<int64_t>(running_.ByteSizeLong());
  const int64_t waiting_bytes_ = static_cast<int64_t>(waiting_.ByteSizeLong());
};

TEST_F(SessionBytesTest, StepsReadAheadAndUnreadAnswersCount) {
  Stream stream(stub_.get());
  ASSERT_TRUE(stream.Open());
  stream.Send(running_);
  stream.Send(waiting_);
  EXPECT_TRUE(Await([this] { return Held() == running_bytes_ + waiting_bytes_; }));
  // Steps without their requests, since these have been solved.
  EXPECT_TRUE(Await([this] { return Held() < running_bytes_ + waiting_bytes_; }));
  ASSERT_TRUE(Await([this] { return handler_->queue().running() == 0; }));
  EXPECT_GT(Held(), 0);
  EXPECT_TRUE(stream.Solved(1));
  EXPECT_TRUE(stream.Solved(2));
  EXPECT_TRUE(Await([this] { return Held() == 0; }));
}

// Steps wait in the transport, and none fails.
TEST_F(SessionBytesTest, AtTheByteLimitNoFurtherStepIsRead) {
  ServerConfig config = Config();
  config.admission.client.max_bytes = running_bytes_ + 1;
  Start(config);
  Stream stream(stub_.get());
  ASSERT_TRUE(stream.Open());
  stream.Send(running_);
  v1::SolveSessionRequest request = waiting_;
  auto sender = std::async(std::launch::async, [&] {
    for (uint64_t i = 2; i <= 4; ++i) {
      request.mutable_step()->set_step_id(i);
      stream.Send(request);
    }
  });
  int64_t most = 0;
  ASSERT_TRUE(Await([&] {
    most = std::max(most, Held());
    return handler_->queue().running() > 0 && Held() >= running_bytes_ + waiting_bytes_;
  }));
  while (handler_->queue().running() > 0) most = std::max(most, Held());
  EXPECT_EQ(most, running_bytes_ + waiting_bytes_);
  for (int i = 1; i <= 4; ++i) EXPECT_TRUE(stream.Solved(i)) << i;
  EXPECT_EQ(sender.wait_for(kLong), std::future_status::ready);
}

// As a call over the limit is.
TEST_F(SessionBytesTest, AStepThatDoesNotFitBesideOtherSessionsFails) {
  ServerConfig config = Config();
  config.admission.client.max_bytes = running_bytes_ + 1;
  Start(config);
  Stream first(stub_.get());
  Stream second(stub_.get());
  ASSERT_TRUE(first.Open());
  ASSERT_TRUE(second.Open());
  first.Send(running_);
  ASSERT_TRUE(Await([this] { return Held() == running_bytes_; }));
  second.Send(waiting_);
  ASSERT_TRUE(second.Read());
  EXPECT_EQ(second.step().step_id(), 2u);
  EXPECT_EQ(second.step().outcome().failure().reason(), "CLIENT_BYTES");
  EXPECT_TRUE(second.step().outcome().failure().has_retry_delay());
  EXPECT_TRUE(first.Solved(1));
  ASSERT_TRUE(Await([this] { return Held() == 0; }));
  v1::SolveSessionRequest again = waiting_;
  again.mutable_step()->set_step_id(3);
  second.Send(again);
  EXPECT_TRUE(second.Solved(3));
}

}  // namespace
}  // namespace sap::test::session_streams
