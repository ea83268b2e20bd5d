// Clients see by trailing metadata whether a server ended a call, and which one.
#include "server/server_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "solver/engine/boot_id.h"
#include "tests/server/rpc/session_streams.h"
#include "tests/support/faulty_link.h"

namespace sap::test::session_streams {
namespace {

constexpr const char* kIdentityKey = "sap-server";

// Empty if the call ended without one.
std::string IdentityOf(const grpc::ClientContext& context) {
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto found = trailers.find(kIdentityKey);
  if (found == trailers.end()) return "";
  return {found->second.data(), found->second.size()};
}

class ServerIdentityTest : public SessionStreamTest {
 protected:
  v1::GetServerInfoResponse Info() {
    grpc::ClientContext context;
    v1::GetServerInfoResponse info;
    EXPECT_TRUE(stub_->GetServerInfo(&context, {}, &info).ok());
    return info;
  }

  std::string Expected() {
    const v1::GetServerInfoResponse info = Info();
    return info.version() + " " + info.instruction_set() + " " + info.boot_id();
  }
};

TEST_F(ServerIdentityTest, TheBootIdIsSixteenHexadecimalDigits) {
  EXPECT_THAT(Info().boot_id(), testing::MatchesRegex("[0-9a-f]{16}"));
  EXPECT_EQ(Info().boot_id(), BootId());
}

TEST_F(ServerIdentityTest, CallsThatSucceedHaveIt) {
  v1::SolveRequest request;
  *request.mutable_problem() = Small();
  v1::SolveResponse response;
  grpc::ClientContext context;
  ASSERT_TRUE(stub_->Solve(&context, request, &response).ok());
  EXPECT_EQ(IdentityOf(context), Expected());
}

TEST_F(ServerIdentityTest, CallsThatAreRefusedHaveIt) {
  v1::SolveResponse response;
  grpc::ClientContext context;
  EXPECT_EQ(stub_->Solve(&context, {}, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(IdentityOf(context), Expected());
}

TEST_F(ServerIdentityTest, StreamsOfBatchesHaveIt) {
  grpc::ClientContext context;
  v1::StreamBatchRequest request;
  *request.add_problems() = Small();
  const auto stream = stub_->StreamBatch(&context, request);
  v1::StreamBatchResponse response;
  while (stream->Read(&response)) {
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(IdentityOf(context), Expected());
}

TEST_F(ServerIdentityTest, ASessionSaysWhoseItIsAndItsEndHasIt) {
  Stream stream(stub_.get());
  ASSERT_TRUE(stream.Open());
  EXPECT_EQ(stream.response().opened().server(), Expected());
  stream.CloseWriting();
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(IdentityOf(stream.context()), Expected());
}

TEST_F(ServerIdentityTest, ALostConnectionHasNone) {
  FaultyLink link(server_->address());
  const auto stub = v1::SolverService::NewStub(
      grpc::CreateChannel(link.address(), grpc::InsecureChannelCredentials()));
  Stream stream(stub.get());
  ASSERT_TRUE(stream.Open());
  link.Cut();
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(IdentityOf(stream.context()), "");
}

TEST_F(ServerIdentityTest, SessionsOfTheConnectionAgeAreAskedToMoveAndAreStillServed) {
  ServerConfig config = Config();
  config.connection.age_s = 1;
  Start(config);
  Stream stream(stub_.get());
  ASSERT_TRUE(stream.Open());
  EXPECT_FALSE(stream.response().draining());
  uint64_t step = 0;
  EXPECT_TRUE(Await([&] {
    stream.Send(++step, Small());
    return stream.Solved(step) && stream.response().draining();
  }));
  stream.Send(++step, Small());
  EXPECT_TRUE(stream.Solved(step));
  Stream next(stub_.get());
  ASSERT_TRUE(next.Open());
  EXPECT_FALSE(next.response().draining());
}

TEST_F(ServerIdentityTest, ConnectionsOfTheConnectionAgeAreReplaced) {
  ServerConfig config = Config();
  config.connection.age_s = 0.5;
  Start(config);
  ASSERT_FALSE(Info().boot_id().empty());
  EXPECT_TRUE(Await([this] { return channel_->GetState(false) != GRPC_CHANNEL_READY; }));
  EXPECT_FALSE(Info().boot_id().empty());
}

}  // namespace
}  // namespace sap::test::session_streams
