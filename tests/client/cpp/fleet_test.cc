// A client of several servers by a list of addresses, of which some drain, are killed and come
// back: every call is answered once, with the bits of an embedded server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "client/cpp/client.h"
#include "server/rpc/grpc_server.h"
#include "tests/client/cpp/session_steps.h"
#include "tests/support/await.h"
#include "tests/support/certificates.h"
#include "tests/support/child_process.h"
#include "tests/support/scripted_server.h"

namespace sap::test::fleet {
namespace {

using client::Client;
using client::Problem;

// A server that can be started again, at the same address.
class Member {
 public:
  explicit Member(int threads) : threads_(threads) { Start(); }

  void Start() {
    ServerConfig config;
    config.listen = address_;
    config.threads = threads_;
    handler_ = std::make_unique<RequestHandler>(config);
    auto server = GrpcServer::Start(config, handler_.get());
    ASSERT_TRUE(server.has_value()) << server.error();
    server_ = std::move(*server);
    address_ = server_->address();
  }

  // Calls under way are not answered.
  void Kill() {
    server_ = nullptr;
    handler_ = nullptr;
  }

  void Drain() {
    server_->AnnounceDrain();
    server_->Drain(kLong);
    Kill();
  }

  const std::string& address() const { return address_; }
  GrpcServer* grpc() { return server_.get(); }
  RequestHandler* handler() { return handler_.get(); }

 private:
  const int threads_;
  std::string address_{"127.0.0.1:0"};
  std::unique_ptr<RequestHandler> handler_;
  std::unique_ptr<GrpcServer> server_;
};

// Member i has i + 1 threads, by which an answer of Info tells it.
class FleetTest : public testing::Test {
 protected:
  Client Connect() const {
    std::string list;
    for (const Member& member : members_) list += (list.empty() ? "" : ",") + member.address();
    auto client = Client::Connect(list, {.connect_timeout = kLong, .reconnect_within = kLong});
    EXPECT_TRUE(client.has_value()) << client.error().message;
    return std::move(*client);
  }

  // The members that answer the next calls.
  static std::set<int> Answering(Client* client) {
    std::set<int> answering;
    for (int i = 0; i < 12; ++i) {
      const auto info = client->Info();
      EXPECT_TRUE(info.has_value()) << info.error().message;
      if (info) answering.insert(static_cast<int>(info->solver_threads) - 1);
    }
    return answering;
  }

  Member members_[3] = {Member(1), Member(2), Member(3)};
};

TEST_F(FleetTest, CallsGoToEveryServer) {
  Client client = Connect();
  EXPECT_TRUE(Await([&] { return Answering(&client).size() == 3; }));
}

TEST_F(FleetTest, AServerThatDrainsGetsNoFurtherCalls) {
  Client client = Connect();
  ASSERT_TRUE(Await([&] { return Answering(&client).size() == 3; }));
  members_[1].grpc()->AnnounceDrain();
  EXPECT_TRUE(Await([&] { return Answering(&client) == std::set<int>{0, 2}; }));
  EXPECT_EQ(Answering(&client), (std::set<int>{0, 2}));
}

TEST_F(FleetTest, AServerThatCameBackGetsCalls) {
  Client client = Connect();
  ASSERT_TRUE(Await([&] { return Answering(&client).size() == 3; }));
  members_[1].Kill();
  EXPECT_EQ(Answering(&client), (std::set<int>{0, 2}));
  members_[1].Start();
  EXPECT_TRUE(Await([&] { return Answering(&client).size() == 3; }));
}

// With four steps in flight, and not because its stream ends: this server announces its end only.
TEST_F(FleetTest, ASessionLeavesADrainingServerWithStepsInFlight) {
  Client client = Connect();
  ASSERT_TRUE(Await([&] { return Answering(&client).size() == 3; }));
  client::Session session = *client.OpenSession();
  Client embedded = *Client::Connect("embedded:");
  client::Session whole = *embedded.OpenSession();
  int at = 0;
  while (members_[at].handler()->num_sessions() == 0) ++at;
  int sent = 0, received = 0;
  const auto receive_next = [&] {
    while (session.in_flight() < 4) ASSERT_TRUE(session.Send(SceneAt(++sent)).has_value());
    ++received;
    ASSERT_TRUE(whole.Send(SceneAt(received)).has_value());
    ASSERT_EQ(Seen(session.Receive()), Seen(whole.Receive())) << received;
  };
  while (received < 20) ASSERT_NO_FATAL_FAILURE(receive_next());
  members_[at].grpc()->AnnounceDrain();
  while (!session.draining()) ASSERT_NO_FATAL_FAILURE(receive_next());
  while (session.draining()) ASSERT_NO_FATAL_FAILURE(receive_next());
  EXPECT_TRUE(Await([&] { return members_[at].handler()->num_sessions() == 0; }));
  for (const int end = received + 20; received < end;) ASSERT_NO_FATAL_FAILURE(receive_next());
  while (session.in_flight() > 0) {
    ASSERT_TRUE(whole.Send(SceneAt(++received)).has_value());
    ASSERT_EQ(Seen(session.Receive()), Seen(whole.Receive())) << received;
  }
  EXPECT_TRUE(session.Close().has_value());
}

// Where no other server takes the session, it stays, and goes on as before.
TEST_F(FleetTest, ASessionStaysWhereEveryServerDrains) {
  Client client = Connect();
  client::Session session = *client.OpenSession();
  client::Session whole = *Client::Connect("embedded:")->OpenSession();
  for (int step = 1; step <= 40; ++step) {
    if (step == 10) {
      for (Member& member : members_) member.grpc()->AnnounceDrain();
    }
    ASSERT_TRUE(session.Send(SceneAt(step)).has_value());
    ASSERT_TRUE(whole.Send(SceneAt(step)).has_value());
    ASSERT_EQ(Seen(session.Receive()), Seen(whole.Receive())) << step;
  }
  EXPECT_TRUE(session.draining());
}

// A list needs the health service of its servers; where that refuses, its words are in the error.
TEST(FleetHealthTest, AClientIsToldWhyNoServerIsUsed) {
  const grpc::Status full{grpc::StatusCode::RESOURCE_EXHAUSTED, "too many Watch streams"};
  const ScriptedServer server("0.2.0 x86-64-v3 0123456789abcdef", full);
  const std::string list = server.address() + "," + server.address();
  const auto client = Client::Connect(list, {.connect_timeout = std::chrono::milliseconds(300)});
  ASSERT_FALSE(client.has_value());
  EXPECT_EQ(client.error().message,
            "no server answers at " + list + "; health: RESOURCE_EXHAUSTED too many Watch streams");
}

// Certificates have the common host of the addresses, or the name that the client expects.
TEST(FleetTlsTest, EveryServerOfAListIsVerifiedByOneName) {
  const TemporaryDirectory directory;
  const CertificateAuthority authority(directory / "", "authority");
  const CertificateFiles files = authority.Issue("solvers.example");
  ServerConfig config;
  config.listen = "127.0.0.1:0";
  config.threads = 1;
  const auto certificates = ServerCertificates::Open(
      {.certificate = files.certificate, .key = files.key, .client_ca = ""}, {});
  ASSERT_TRUE(certificates.has_value()) << certificates.error();
  RequestHandler handlers[] = {RequestHandler(config), RequestHandler(config)};
  const auto start = [&](RequestHandler* handler) {
    return GrpcServer::Start(config, handler, nullptr, CallObserver(nullptr, nullptr),
                             certificates->get());
  };
  const auto a = start(&handlers[0]);
  const auto b = start(&handlers[1]);
  ASSERT_TRUE(a.has_value() && b.has_value());
  const std::string list = (*a)->address() + "," + (*b)->address();
  client::ConnectOptions options;
  options.connect_timeout = kLong;
  options.credentials.server_ca = authority.certificate();
  for (const char* name : {"", "solvers.example"}) {
    options.credentials.server_name = name;
    auto client = Client::Connect(list, options);
    ASSERT_TRUE(client.has_value()) << client.error().message;
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(client->Solve(SceneAt(i)).has_value());
  }
  options.connect_timeout = std::chrono::milliseconds(500);
  options.credentials.server_name = "others.example";
  const auto other = Client::Connect(list, options);
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, client::ErrorCode::kUnavailable);
}

// Calls that a worker of the test below repeats. Each returns its finding.
class Load {
 public:
  explicit Load(Client client) : client_(std::move(client)) {
    for (int i = 0; i < kProblems; ++i) problems_.push_back(SceneAt(i));
    Client embedded = *Client::Connect("embedded:");
    for (const Problem& problem : problems_) expected_.push_back(Seen(embedded.Solve(problem)));
    client::Session session = *embedded.OpenSession();
    for (const Problem& problem : problems_) {
      EXPECT_TRUE(session.Send(problem).has_value());
      expected_steps_.push_back(Seen(session.Receive()));
    }
  }

  void Solve() {
    for (int i = 0; i < kProblems; ++i) EXPECT_EQ(Seen(client_.Solve(problems_[i])), expected_[i]);
  }

  void SolveBatch() {
    const auto outcomes = client_.SolveBatch(problems_);
    for (int i = 0; i < kProblems; ++i) EXPECT_EQ(Seen(outcomes[i]), expected_[i]);
  }

  void StreamBatch() {
    std::multiset<int> indices;
    const auto streamed = client_.StreamBatch(problems_, {}, [&](int index, const auto& outcome) {
      indices.insert(index);
      EXPECT_EQ(Seen(outcome), expected_[index]);
    });
    EXPECT_TRUE(streamed.has_value()) << streamed.error().message;
    EXPECT_EQ(indices, std::multiset<int>({0, 1, 2, 3, 4, 5}));
  }

  void Session() {
    auto session = client_.OpenSession();
    ASSERT_TRUE(session.has_value()) << session.error().message;
    for (const Problem& problem : problems_) EXPECT_TRUE(session->Send(problem).has_value());
    for (const std::string& step : expected_steps_) EXPECT_EQ(Seen(session->Receive()), step);
    EXPECT_TRUE(session->Close().has_value());
  }

 private:
  static constexpr int kProblems = 6;

  Client client_;
  std::vector<Problem> problems_;
  std::vector<std::string> expected_;
  std::vector<std::string> expected_steps_;
};

TEST_F(FleetTest, NothingIsLostWhileServersDrainAndDieInTurn) {
  Load load(Connect());
  std::atomic<bool> stop{false};
  std::atomic<int> rounds[4] = {};
  void (Load::*const calls[])() = {&Load::Solve, &Load::SolveBatch, &Load::StreamBatch,
                                   &Load::Session};
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    // A subscript within the call reads a wrong index with GCC 12, -fsanitize=bounds without null.
    workers.emplace_back([&, i, call = calls[i]] {
      for (; !stop; ++rounds[i]) (load.*call)();
    });
  }
  const auto await_rounds = [&](int more) {
    for (const std::atomic<int>& count : rounds) {
      const int until = count + more;
      EXPECT_TRUE(Await([&] { return count >= until; }));
    }
  };
  for (int change = 0; change < 12; ++change) {
    Member& member = members_[change % 3];
    change < 6 ? member.Drain() : member.Kill();
    await_rounds(3);
    member.Start();
    await_rounds(3);
  }
  stop = true;
  for (std::thread& worker : workers) worker.join();
}

}  // namespace
}  // namespace sap::test::fleet
