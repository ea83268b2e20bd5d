// The admin service: only operators can call it, on its own address.
#include "server/rpc/admin_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "tests/support/await.h"
#include "tests/support/child_process.h"
#include "tests/support/generic_call.h"

namespace sap {
namespace {

constexpr const char* kToken = "operator-0123456789abcdef";

class AdminServerTest : public testing::Test {
 protected:
  AdminServerTest() {
    log_ = std::move(*CallLog::Open({.file = (directory_ / "log").string()}));
    std::ofstream(directory_ / "tokens") << "op " << kToken << "\n";
    tokens_ =
        std::move(*BearerTokens::Open((directory_ / "tokens").string(), [](const std::string&) {}));
    auto server = AdminServer::Start("127.0.0.1:0", nullptr,
                                     {.drain = [this] { ++drained_; },
                                      .log = log_.get(),
                                      .recorder = &recorder_,
                                      .recording = {},
                                      .tokens = tokens_.get()});
    EXPECT_TRUE(server.has_value()) << server.error();
    server_ = std::move(*server);
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    stub_ = v1::AdminService::NewStub(channel_);
  }

  static void Prepare(grpc::ClientContext* context, const std::string& token) {
    context->set_deadline(std::chrono::system_clock::now() + test::kLong);
    if (!token.empty()) context->AddMetadata("authorization", "Bearer " + token);
  }

  grpc::StatusCode Drain(const std::string& token) {
    grpc::ClientContext context;
    Prepare(&context, token);
    v1::DrainResponse response;
    return stub_->Drain(&context, {}, &response).error_code();
  }

  grpc::StatusCode SetLogLevel(v1::LogLevel level, const std::string& token = kToken) {
    grpc::ClientContext context;
    Prepare(&context, token);
    v1::SetLogLevelRequest request;
    request.set_level(level);
    v1::SetLogLevelResponse response;
    return stub_->SetLogLevel(&context, request, &response).error_code();
  }

  grpc::Status SetRecording(const std::string& directory, std::string* path,
                            const std::string& token = kToken) {
    grpc::ClientContext context;
    Prepare(&context, token);
    v1::SetRecordingRequest request;
    request.set_directory(directory);
    v1::SetRecordingResponse response;
    const grpc::Status status = stub_->SetRecording(&context, request, &response);
    *path = response.path();
    return status;
  }

  test::TemporaryDirectory directory_;
  std::atomic<int> drained_{0};
  std::unique_ptr<CallLog> log_;
  std::unique_ptr<BearerTokens> tokens_;
  RequestRecorder recorder_{[](const std::string&) {}};
  std::unique_ptr<AdminServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::AdminService::Stub> stub_;
};

// Memory that somebody without a token could make the server hold.
TEST_F(AdminServerTest, NothingIsInflatedAndReflectionIsNotOffered) {
  grpc::ClientContext context;
  Prepare(&context, kToken);
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  v1::SetRecordingRequest request;
  request.set_directory(std::string(10'000, 'a'));
  v1::SetRecordingResponse response;
  EXPECT_EQ(stub_->SetRecording(&context, request, &response).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  const grpc::Status reflection = test::CallByName(
      channel_, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "");
  EXPECT_EQ(reflection.error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(AdminServerTest, OnlyAnOperatorMayCall) {
  std::string path;
  for (const char* token : {"", "operator-0123456789abcdee"}) {
    EXPECT_EQ(Drain(token), grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_EQ(SetLogLevel(v1::LOG_LEVEL_DEBUG, token), grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_EQ(SetRecording((directory_ / "r").string(), &path, token).error_code(),
              grpc::StatusCode::UNAUTHENTICATED);
  }
  EXPECT_EQ(drained_, 0);
  EXPECT_FALSE(log_->Wants(0, 0));
  EXPECT_FALSE(recorder_.Wants(true, 1));
  EXPECT_EQ(Drain(kToken), grpc::StatusCode::OK);
  EXPECT_EQ(drained_, 1);
}

TEST_F(AdminServerTest, TheLogLevelIsSetWhileTheServerRuns) {
  EXPECT_EQ(SetLogLevel(v1::LOG_LEVEL_DEBUG), grpc::StatusCode::OK);
  EXPECT_TRUE(log_->Wants(0, 0));
  EXPECT_EQ(SetLogLevel(v1::LOG_LEVEL_ERROR), grpc::StatusCode::OK);
  EXPECT_FALSE(log_->Wants(13, 0));
  EXPECT_EQ(SetLogLevel(v1::LOG_LEVEL_UNSPECIFIED), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(AdminServerTest, ARecordingIsBegunAndEndedWhileTheServerRuns) {
  std::string path, ended;
  EXPECT_TRUE(SetRecording((directory_ / "").string(), &path).ok());
  EXPECT_TRUE(recorder_.Wants(false, 0));
  EXPECT_TRUE(std::filesystem::exists(path)) << path;
  EXPECT_TRUE(SetRecording("", &ended).ok());
  EXPECT_EQ(ended, path);
  EXPECT_FALSE(recorder_.Wants(false, 0));
  EXPECT_TRUE(SetRecording("", &ended).ok());
  EXPECT_EQ(ended, "");
  const grpc::Status failed = SetRecording("/dev/null/r", &path);
  EXPECT_EQ(failed.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(failed.error_message(), testing::HasSubstr("cannot record"));
}

TEST_F(AdminServerTest, TheAddressServesNothingElse) {
  const grpc::Status status = test::CallByName(channel_, "/sap.v1.SolverService/GetServerInfo", "");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(status.error_message(), testing::HasSubstr("--admin-listen"));
}

}  // namespace
}  // namespace sap
