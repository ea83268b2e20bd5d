#include "server/rpc/grpc_server.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <deque>
#include <future>

#include "grpc/health/v1/health.grpc.pb.h"
#include "sap/v1/solver_service.grpc.pb.h"
#include "tests/support/await.h"
#include "tests/support/generic_call.h"
#include "tests/support/half_sent_call.h"
#include "tests/support/scenes.h"

namespace sap {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using test::kLong;

class GrpcServerTest : public testing::Test {
 protected:
  GrpcServerTest() {
    config_.listen = "127.0.0.1:0";
    config_.threads = 2;
    config_.io_threads = 5;  // four queues
    handler_ = std::make_unique<RequestHandler>(config_);
    auto server = GrpcServer::Start(config_, handler_.get());
    EXPECT_TRUE(server.has_value()) << server.error();
    server_ = std::move(*server);
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
  }

  static void Bound(grpc::ClientContext* context) {
    context->set_deadline(std::chrono::system_clock::now() + kLong);
  }

  ServerConfig config_;
  std::unique_ptr<RequestHandler> handler_;
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(GrpcServerTest, HealthIsServingForTheServerAndTheService) {
  const auto stub = Health::NewStub(channel_);
  for (const char* name : {"", "sap.v1.SolverService"}) {
    HealthCheckRequest request;
    request.set_service(name);
    HealthCheckResponse response;
    grpc::ClientContext context;
    Bound(&context);
    ASSERT_TRUE(stub->Check(&context, request, &response).ok());
    EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  }
  HealthCheckRequest request;
  request.set_service("sap.v1.NoService");
  HealthCheckResponse response;
  grpc::ClientContext context;
  Bound(&context);
  EXPECT_EQ(stub->Check(&context, request, &response).error_code(), grpc::StatusCode::NOT_FOUND);
}

// A client whose Watch ended would ask again at once, as long as the server drains.
TEST_F(GrpcServerTest, WatchersAreNotifiedOfTheDrainAndStay) {
  const auto stub = Health::NewStub(channel_);
  HealthCheckRequest request;
  request.set_service("sap.v1.SolverService");
  grpc::ClientContext context;
  Bound(&context);
  const auto stream = stub->Watch(&context, request);
  HealthCheckResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);

  server_->AnnounceDrain();
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  auto more = std::async(std::launch::async, [&] { return stream->Read(&response); });
  for (int i = 0; i < 10; ++i) {
    grpc::ClientContext check;
    Bound(&check);
    HealthCheckResponse checked;
    EXPECT_TRUE(stub->Check(&check, request, &checked).ok());
    EXPECT_EQ(checked.status(), HealthCheckResponse::NOT_SERVING);
  }
  EXPECT_EQ(more.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  server_->Drain(kLong);
  EXPECT_FALSE(more.get());
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// Clients are told to connect elsewhere as soon as the drain begins, while calls in flight, also
// one whose message is still being sent, are served.
TEST_F(GrpcServerTest, TheDrainSendsClientsAwayAndServesWhatIsInFlight) {
  grpc::GenericStub stub(channel_);
  grpc::CompletionQueue queue;
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  grpc::ClientContext context;
  Bound(&context);
  const auto call = stub.PrepareCall(&context, "/sap.v1.SolverService/Solve", &queue);
  call->StartCall(nullptr);
  ASSERT_TRUE(next());
  v1::SolveRequest request;
  *request.mutable_problem() = test::MixedProblem();
  const std::string bytes = request.SerializeAsString();
  // The call has been accepted when the server has answered a later one on the same connection.
  EXPECT_TRUE(test::CallByName(channel_, "/sap.v1.SolverService/GetServerInfo", "").ok());

  auto drained = std::async(std::launch::async, [this] { server_->Drain(10 * kLong); });
  // The client has no connection for new calls any more.
  EXPECT_TRUE(test::Await([this] { return channel_->GetState(false) != GRPC_CHANNEL_READY; }));
  const grpc::Slice slice(bytes);
  call->WriteLast(grpc::ByteBuffer(&slice, 1), {}, nullptr);
  EXPECT_TRUE(next());
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  EXPECT_TRUE(next());
  grpc::Status status;
  call->Finish(&status, nullptr);
  EXPECT_TRUE(next());
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(drained.wait_for(kLong), std::future_status::ready);
}

// Anybody may call, so messages that do not end must not gather, nor keep others from answers.
TEST_F(GrpcServerTest, HealthMessagesThatDoNotEndAreGivenUp) {
  constexpr uint32_t kAnnounced = 100 << 20;
  std::deque<test::HalfSentCall> calls;
  for (int i = 0; i < 20; ++i) {
    const std::string method = i % 2 == 0 ? "Check" : "Watch";
    calls.emplace_back(server_->address(), "/grpc.health.v1.Health/" + method, kAnnounced);
  }
  const auto stub = Health::NewStub(channel_);
  grpc::ClientContext context;
  Bound(&context);
  HealthCheckResponse response;
  EXPECT_TRUE(stub->Check(&context, HealthCheckRequest(), &response).ok());
  for (test::HalfSentCall& call : calls) EXPECT_TRUE(test::Await([&] { return call.Ended(); }));
}

TEST_F(GrpcServerTest, ALongNameIsUnknownAndNotKept) {
  const auto stub = Health::NewStub(channel_);
  HealthCheckRequest request;
  request.set_service(std::string(1 << 20, 'a'));
  HealthCheckResponse response;
  grpc::ClientContext check;
  Bound(&check);
  EXPECT_EQ(stub->Check(&check, request, &response).error_code(), grpc::StatusCode::NOT_FOUND);
  grpc::ClientContext watch;
  Bound(&watch);
  const auto stream = stub->Watch(&watch, request);
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVICE_UNKNOWN);
  watch.TryCancel();
}

TEST_F(GrpcServerTest, AWatcherThatLeavesIsForgotten) {
  const auto stub = Health::NewStub(channel_);
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext context;
    Bound(&context);
    const auto stream = stub->Watch(&context, HealthCheckRequest());
    HealthCheckResponse response;
    ASSERT_TRUE(stream->Read(&response));
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  server_->Drain(kLong);
}

TEST_F(GrpcServerTest, WatchingAServiceThatIsNotThereSaysSo) {
  const auto stub = Health::NewStub(channel_);
  HealthCheckRequest request;
  request.set_service("sap.v1.NoService");
  grpc::ClientContext context;
  Bound(&context);
  const auto stream = stub->Watch(&context, request);
  HealthCheckResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVICE_UNKNOWN);
  context.TryCancel();
}

TEST_F(GrpcServerTest, AMethodThatIsNotThereIsUnimplemented) {
  EXPECT_EQ(test::CallByName(channel_, "/sap.v1.SolverService/Guess", "").error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(test::CallByName(channel_, "/sap.v9.SolverService/Solve", "").error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(GrpcServerTest, BytesThatAreNoMessageAreRefusedAndTheServerLives) {
  for (int i = 0; i < 40; ++i) {  // more than are awaited on a queue
    EXPECT_EQ(test::CallByName(channel_, "/sap.v1.SolverService/Solve",
                               std::string("\x0a\xff\xff garbage"))
                  .error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
  EXPECT_TRUE(test::CallByName(channel_, "/sap.v1.SolverService/GetServerInfo", "").ok());
}

// Kilobytes could inflate to gigabytes, which no limit would see.
TEST_F(GrpcServerTest, ACompressedMessageIsRefusedByEveryMethod) {
  const auto compress = [](grpc::ClientContext* context) {
    Bound(context);
    context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
  };
  const auto health = Health::NewStub(channel_);
  const auto solver = v1::SolverService::NewStub(channel_);
  HealthCheckRequest name;
  name.set_service(std::string(1 << 20, 'a'));
  HealthCheckResponse status;
  {
    grpc::ClientContext context;
    compress(&context);
    EXPECT_EQ(health->Check(&context, name, &status).error_code(), grpc::StatusCode::UNIMPLEMENTED);
  }
  {
    grpc::ClientContext context;
    compress(&context);
    v1::SolveRequest request;
    *request.mutable_problem() = test::MixedProblem();
    v1::SolveResponse response;
    EXPECT_EQ(solver->Solve(&context, request, &response).error_code(),
              grpc::StatusCode::UNIMPLEMENTED);
  }
  {
    grpc::ClientContext context;
    compress(&context);
    v1::StreamBatchRequest request;
    *request.add_problems() = test::MixedProblem();
    EXPECT_EQ(solver->StreamBatch(&context, request)->Finish().error_code(),
              grpc::StatusCode::UNIMPLEMENTED);
  }
  grpc::ClientContext context;
  compress(&context);
  const auto session = solver->SolveSession(&context);
  v1::SolveSessionRequest open;
  open.mutable_open();
  session->Write(open);
  EXPECT_EQ(session->Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

// Reflection is what lets grpcurl and the like call a server whose schema they do not have.
TEST_F(GrpcServerTest, ReflectionListsTheServices) {
  grpc::GenericStub stub(channel_);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  Bound(&context);
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto call = stub.PrepareCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  call->StartCall(nullptr);
  ASSERT_TRUE(next());
  const grpc::Slice list_services("\x3a\x01*");  // field 7, list_services, "*"
  call->Write(grpc::ByteBuffer(&list_services, 1), nullptr);
  ASSERT_TRUE(next());
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  ASSERT_TRUE(next());
  grpc::Slice bytes;
  ASSERT_TRUE(answer.DumpToSingleSlice(&bytes).ok());
  const std::string text(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
  EXPECT_THAT(text, testing::HasSubstr("sap.v1.SolverService"));
  EXPECT_THAT(text, testing::HasSubstr("grpc.health.v1.Health"));
  context.TryCancel();
}

// More calls at once than are awaited on the queues, from several threads.
TEST_F(GrpcServerTest, ManyClientsAreAnsweredAtOnce) {
  constexpr int kClients = 8;
  constexpr int kCalls = 50;
  std::vector<std::future<int>> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(std::async(std::launch::async, [this] {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      const auto stub = v1::SolverService::NewStub(grpc::CreateCustomChannel(
          server_->address(), grpc::InsecureChannelCredentials(), arguments));
      v1::SolveRequest request;
      *request.mutable_problem() = test::MixedProblem();
      int answered = 0;
      for (int call = 0; call < kCalls; ++call) {
        grpc::ClientContext context;
        Bound(&context);
        v1::SolveResponse response;
        answered += stub->Solve(&context, request, &response).ok() &&
                    response.solution().velocity_size() == 17;
      }
      return answered;
    }));
  }
  for (auto& client : clients) EXPECT_EQ(client.get(), kCalls);
}

// Connections are assigned to the queues in turn.
TEST_F(GrpcServerTest, SessionsOnEveryQueueAreServedAndEndWithTheDrain) {
  struct Session {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<v1::SolveSessionRequest, v1::SolveSessionResponse>>
        stream;
  };
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  std::deque<Session> sessions(8);
  v1::SolveSessionResponse response;
  for (Session& session : sessions) {
    Bound(&session.context);
    session.stream = v1::SolverService::NewStub(
                         grpc::CreateCustomChannel(server_->address(),
                                                   grpc::InsecureChannelCredentials(), arguments))
                         ->SolveSession(&session.context);
    v1::SolveSessionRequest request;
    request.mutable_open();
    session.stream->Write(request);
    ASSERT_TRUE(session.stream->Read(&response));
  }
  for (int step = 1; step <= 3; ++step) {
    v1::SolveSessionRequest request;
    request.mutable_step()->set_step_id(step);
    *request.mutable_step()->mutable_problem() = test::MixedProblem();
    for (Session& session : sessions) ASSERT_TRUE(session.stream->Write(request));
    for (Session& session : sessions) {
      ASSERT_TRUE(session.stream->Read(&response));
      EXPECT_TRUE(response.step().outcome().has_solution());
    }
  }
  server_->Drain(kLong);
  for (Session& session : sessions) {
    EXPECT_FALSE(session.stream->Read(&response));
    EXPECT_EQ(session.stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  }
  EXPECT_EQ(handler_->num_sessions(), 0);
}

TEST_F(GrpcServerTest, ASecondServerOnTheAddressIsRefused) {
  ServerConfig config = config_;
  config.listen = server_->address();
  const auto second = GrpcServer::Start(config, handler_.get());
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error(), testing::HasSubstr(server_->address()));
}

TEST_F(GrpcServerTest, AServerThatIsNotDrainedStopsWhenItGoes) { server_.reset(); }

}  // namespace
}  // namespace sap
