// A session belongs to its client: connections are cut and servers replaced, and its outcomes are
// those of a session that nothing happens to, bit for bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "client/cpp/session.h"
#include "tests/client/cpp/session_steps.h"
#include "tests/support/await.h"
#include "tests/support/faulty_link.h"
#include "tests/support/transports.h"

namespace sap::test::session_reconnect {
namespace {

using client::Client;
using client::ErrorCode;
using client::Problem;
using client::SolveOptions;

// Steps of every kind: faulty ones, one with a guess for the bodies alone, one whose bodies have
// other names, and one of which the session would keep nothing.
Problem Varied(int step) {
  Problem problem = SceneAt(step);
  if (step % 10 == 4 || step % 10 == 5) problem.time_step = -1;
  if (step % 10 == 6) problem.bodies.guess_velocity.assign(12, 0.125);
  if (step % 10 == 7) problem.bodies.body_id = {11, 12};
  if (step % 10 == 9) problem.bodies.body_id.clear();
  return problem;
}

class SessionReconnectTest : public testing::Test {
 protected:
  client::Session Open(const client::ConnectOptions& options = {.reconnect_within = kLong},
                       const SolveOptions& solve_options = {}) {
    auto client = Client::Connect(link_.address(), options);
    EXPECT_TRUE(client.has_value()) << client.error().message;
    auto session = client->OpenSession(solve_options);
    EXPECT_TRUE(session.has_value()) << session.error().message;
    return std::move(*session);
  }

  Server servers_[2] = {Server("tcp:", ConfigWithThreads(2)), Server("tcp:", ConfigWithThreads(2))};
  FaultyLink link_{servers_[0].grpc()->address()};
};

// The next connection leads to the other server, which knows nothing of the session.
TEST_F(SessionReconnectTest, ASessionGoesOnAtAnotherServerWithTheSameBits) {
  constexpr int kSteps = 120;
  client::Session session = Open();
  client::Session whole = *Client::Connect(servers_[0].grpc()->address())->OpenSession();
  int sent = 0;
  for (int received = 1; received <= kSteps; ++received) {
    while (sent < kSteps && session.in_flight() < 1 + sent % 5) {
      ASSERT_TRUE(session.Send(Varied(++sent)).has_value());
    }
    const auto outcome = session.Receive();
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
    ASSERT_TRUE(whole.Send(Varied(received)).has_value());
    EXPECT_EQ(Seen(*outcome), Seen(*whole.Receive())) << received;
    if (received % 7 != 0) continue;
    link_.Redirect(servers_[received % 2].grpc()->address());
    link_.Cut();
  }
  EXPECT_GT(link_.connections(), 10);
  EXPECT_TRUE(session.Close().has_value());
}

// The client needs the velocities, but who did not ask for them does not get them.
TEST_F(SessionReconnectTest, FieldsOutsideTheMaskAreKeptByTheClientAlone) {
  SolveOptions cost_alone;
  cost_alone.response_mask = {"cost"};
  SolveOptions impulse_alone;
  impulse_alone.response_mask = {"impulse", "islands"};
  client::Session session = Open({.reconnect_within = kLong}, cost_alone);
  client::Session whole = *Client::Connect(servers_[0].grpc()->address(), {.reconnect_within = {}})
                               ->OpenSession(cost_alone);
  for (int step = 1; step <= 12; ++step) {
    std::optional<SolveOptions> options;
    if (step % 3 == 0) options = impulse_alone;
    ASSERT_TRUE(session.Send(SceneAt(step), options).has_value());
    ASSERT_TRUE(whole.Send(SceneAt(step), options).has_value());
    const auto outcome = session.Receive();
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
    EXPECT_EQ(Seen(*outcome), Seen(*whole.Receive())) << step;
    EXPECT_TRUE(outcome->solution->velocity.empty());
    link_.Cut();
  }
}

TEST_F(SessionReconnectTest, ASessionThatTheServerEndedAsIdleGoesOn) {
  ServerConfig config = ConfigWithThreads(2);
  config.session.idle_s = 0.1;
  Server impatient("tcp:", config);
  client::Session session = *impatient.Connect().OpenSession();
  client::Session whole = Open();
  for (int step = 1; step <= 3; ++step) {
    ASSERT_TRUE(session.Send(SceneAt(step)).has_value());
    ASSERT_TRUE(whole.Send(SceneAt(step)).has_value());
    EXPECT_EQ(Seen(*session.Receive()), Seen(*whole.Receive())) << step;
    ASSERT_TRUE(Await([&] { return impatient.handler()->num_sessions() == 0; }));
  }
}

// One new stream, which another server of the address may take; where the same one takes it again,
// the session stays until it ends.
TEST_F(SessionReconnectTest, ADrainingServerIsLeftOnceNothingIsInFlight) {
  client::Session session = Open();
  client::Session whole = *servers_[1].Connect().OpenSession();
  const auto step = [&](int i) {
    ASSERT_TRUE(session.Send(SceneAt(i)).has_value());
    ASSERT_TRUE(whole.Send(SceneAt(i)).has_value());
    EXPECT_EQ(Seen(*session.Receive()), Seen(*whole.Receive())) << i;
  };
  step(1);
  EXPECT_FALSE(session.draining());
  servers_[0].grpc()->AnnounceDrain();
  step(2);
  EXPECT_TRUE(session.draining());
  for (int i = 3; i <= 6; ++i) step(i);
  EXPECT_TRUE(Await([&] { return servers_[0].handler()->num_sessions() == 1; }));
  link_.Redirect(servers_[1].grpc()->address());
  servers_[0].grpc()->Drain(kLong);
  for (int i = 7; i <= 9; ++i) step(i);
  EXPECT_FALSE(session.draining());
}

// A client that loses its place to others before it is back waits for one.
TEST_F(SessionReconnectTest, ALostSessionWaitsForAPlaceAtAFullServer) {
  ServerConfig config = ConfigWithThreads(2);
  config.admission.all.max_sessions = 1;
  Server full("tcp:", config);
  client::Session other = *full.Connect().OpenSession();
  client::Session session = Open({.reconnect_within = kLong});
  ASSERT_TRUE(session.Step(SceneAt(1)).has_value());
  link_.Redirect(full.grpc()->address());
  link_.Cut();
  auto next = std::async(std::launch::async, [&] { return session.Step(SceneAt(2)); });
  ASSERT_TRUE(Await([&] { return link_.connections() > 1; }));
  ASSERT_TRUE(other.Close().has_value());
  const auto solution = next.get();
  EXPECT_TRUE(solution.has_value()) << solution.error().message;
}

// New connections are made, and no byte passes.
TEST_F(SessionReconnectTest, TheTimeToReconnectHoldsAlsoWherePacketsVanish) {
  client::Session session = Open({.reconnect_within = std::chrono::seconds(2)});
  ASSERT_TRUE(session.Step(SceneAt(1)).has_value());
  link_.Stall(true);
  link_.Cut();
  auto next = std::async(std::launch::async, [&] { return session.Step(SceneAt(2)); });
  // gRPC itself would wait for 20 s.
  const bool returned = next.wait_for(std::chrono::seconds(15)) == std::future_status::ready;
  EXPECT_TRUE(returned);
  link_.Stall(false);
  const auto ended = next.get();
  ASSERT_FALSE(ended.has_value());
  EXPECT_EQ(ended.error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(session.open());
}

TEST_F(SessionReconnectTest, WithoutTimeToReconnectTheSessionEndsWithItsConnection) {
  client::Session session = Open({.reconnect_within = {}});
  ASSERT_TRUE(session.Step(SceneAt(1)).has_value());
  link_.Cut();
  const auto ended = session.Step(SceneAt(2));
  ASSERT_FALSE(ended.has_value());
  EXPECT_EQ(ended.error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(session.open());
}

// A step that ends its stream for what it is, here for its size, is not sent again and again.
TEST_F(SessionReconnectTest, AStepOverTheSizeLimitEndsTheSession) {
  ServerConfig config = ConfigWithThreads(2);
  config.max_message_bytes = 20'000;
  Server small("tcp:", config);
  client::Session session = *small.Connect().OpenSession();
  ASSERT_TRUE(session.Step(SceneAt(1)).has_value());
  const auto ended = session.Step(SphereBlock(8));
  ASSERT_FALSE(ended.has_value());
  EXPECT_EQ(ended.error().code, ErrorCode::kResourceExhausted);
  EXPECT_FALSE(session.open());
}

TEST_F(SessionReconnectTest, AfterALossNothingIsLeftToCloseButTheSession) {
  client::Session session = Open();
  ASSERT_TRUE(session.Step(SceneAt(1)).has_value());
  link_.Cut();
  ASSERT_TRUE(Await([&] { return servers_[0].handler()->num_sessions() == 0; }));
  EXPECT_TRUE(session.Close().has_value());
}

}  // namespace
}  // namespace sap::test::session_reconnect
