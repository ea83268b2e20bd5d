// WorldService over gRPC: with workers it answers; without the flag its calls are UNIMPLEMENTED.
#include "server/rpc/world_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/ops/metrics_endpoint.h"
#include "tests/server/rpc/rpc_fixture.h"
#include "tests/server/worlds/blocking_worlds.h"

namespace sap::test {
namespace {

using testing::HasSubstr;

std::string ReasonOf(const grpc::Status& status) {
  google::rpc::Status details;
  details.ParseFromString(status.error_details());
  for (const auto& detail : details.details()) {
    google::rpc::ErrorInfo info;
    if (detail.UnpackTo(&info)) return info.reason();
  }
  return "";
}

class WorldServiceTest : public testing::Test {
 protected:
  void Start(bool steps_worlds) {
    ServerConfig config = worlds_.handler()->config();
    config.listen = "127.0.0.1:0";
    auto server = GrpcServer::Start(config, worlds_.handler(), nullptr,
                                    CallObserver(worlds_.metrics(), nullptr), nullptr,
                                    steps_worlds ? worlds_.worlds() : nullptr);
    ASSERT_TRUE(server.has_value()) << server.error();
    server_ = std::move(*server);
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    stub_ = v1::WorldService::NewStub(channel_);
  }

  grpc::Status Put(const v1::PutModelRequest& request, v1::PutModelResponse* response) {
    grpc::ClientContext context;
    return stub_->PutModel(&context, request, response);
  }
  grpc::Status Advance(const v1::AdvanceRequest& request, v1::AdvanceResponse* response) {
    grpc::ClientContext context;
    return stub_->Advance(&context, request, response);
  }
  v1::GetServerInfoResponse Info() {
    grpc::ClientContext context;
    v1::GetServerInfoResponse info;
    const auto solver = v1::SolverService::NewStub(channel_);
    EXPECT_TRUE(solver->GetServerInfo(&context, {}, &info).ok());
    return info;
  }

  BlockingWorlds worlds_;
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::WorldService::Stub> stub_;
};

TEST_F(WorldServiceTest, WithoutTheFlagTheCallsAreUnimplementedAndNameIt) {
  Start(/*steps_worlds=*/false);
  v1::PutModelResponse put;
  v1::AdvanceResponse answer;
  for (const grpc::Status& status : {Put(BlockingWorlds::Model(), &put), Advance({}, &answer)}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
    EXPECT_THAT(status.error_message(), HasSubstr("--mujoco-library"));
  }
  EXPECT_EQ(Info().mujoco_version(), 0);
  EXPECT_TRUE(Info().mujoco_library_sha256().empty());
}

TEST_F(WorldServiceTest, AModelIsPutAndAdvanced) {
  Start(/*steps_worlds=*/true);
  EXPECT_EQ(Info().mujoco_version(), kVersion);
  v1::PutModelResponse put;
  ASSERT_TRUE(Put(BlockingWorlds::Model(), &put).ok());
  const v1::AdvanceRequest request = worlds_.Request(5, 7, 2);
  v1::AdvanceRequest sent = request;
  sent.set_model_id(put.model_id());
  v1::AdvanceResponse answer;
  ASSERT_TRUE(Advance(sent, &answer).ok());
  v1::AdvanceResponse local;
  ASSERT_TRUE(worlds_.Advance(request, &local).has_value());
  answer.clear_step_time();
  local.clear_step_time();
  EXPECT_EQ(answer.SerializeAsString(), local.SerializeAsString());
}

TEST_F(WorldServiceTest, ErrorsHaveTheirReasons) {
  Start(/*steps_worlds=*/true);
  v1::AdvanceRequest request = worlds_.Request(1, 1);
  request.set_model_id(std::string(32, 'x'));
  v1::AdvanceResponse answer;
  grpc::Status status = Advance(request, &answer);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonOf(status), "MODEL");
  v1::PutModelRequest model = BlockingWorlds::Model();
  model.set_mujoco_version(3'017'000);
  v1::PutModelResponse put;
  status = Put(model, &put);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonOf(status), "MUJOCO_VERSION");
  model = BlockingWorlds::Model();
  while (model.files_size() <= 1000) model.add_files();
  status = Put(model, &put);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("files has more than 1000 values"));
}

TEST_F(WorldServiceTest, MetricsCountItsCallsOnlyWhereItIs) {
  Start(/*steps_worlds=*/true);
  v1::PutModelResponse put;
  ASSERT_TRUE(Put(BlockingWorlds::Model("<mine/>"), &put).ok());
  v1::AdvanceRequest request = worlds_.Request(2, 3);
  request.set_model_id(put.model_id());
  v1::AdvanceResponse answer;
  ASSERT_TRUE(Advance(request, &answer).ok());
  const auto names = [&](const WorldHandler* worlds) {
    std::map<std::string, double> values;
    MetricSources sources{.metrics = worlds_.metrics(), .handler = worlds_.handler()};
    sources.worlds = worlds;
    for (const auto& family : CollectMetrics(sources, "")) {
      double& sum = values[family.name];
      for (const auto& metric : family.metric) sum += metric.counter.value + metric.gauge.value;
    }
    return values;
  };
  auto values = names(worlds_.worlds());
  EXPECT_EQ(values["sap_models"], 2);
  EXPECT_EQ(values["sap_world_workers"], 2);
  EXPECT_EQ(values["sap_world_steps_total"], 6);
  EXPECT_GE(values["sap_world_slices_total"], 1);
  EXPECT_FALSE(names(nullptr).contains("sap_models"));
}

}  // namespace
}  // namespace sap::test
