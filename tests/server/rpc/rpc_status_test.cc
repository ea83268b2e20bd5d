#include "server/rpc/rpc_status.h"

#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace sap {
namespace {

TEST(RpcStatusTest, EachCodeOfOursHasItsOwnOfGrpc) {
  const std::vector<std::pair<ServiceCode, grpc::StatusCode>> codes = {
      {ServiceCode::kInvalidArgument, grpc::StatusCode::INVALID_ARGUMENT},
      {ServiceCode::kResourceExhausted, grpc::StatusCode::RESOURCE_EXHAUSTED},
      {ServiceCode::kDeadlineExceeded, grpc::StatusCode::DEADLINE_EXCEEDED},
      {ServiceCode::kCancelled, grpc::StatusCode::CANCELLED},
      {ServiceCode::kInternal, grpc::StatusCode::INTERNAL}};
  for (const auto& [code, expected] : codes) {
    const grpc::Status status = ToRpcStatus(tl::unexpected(ServiceError{code, "why", ""}));
    EXPECT_EQ(status.error_code(), expected);
    EXPECT_EQ(status.error_message(), "why");
    EXPECT_EQ(status.error_details(), "");
  }
  EXPECT_TRUE(ToRpcStatus({}).ok());
}

TEST(RpcStatusTest, AFieldAtFaultTravelsAsBadRequest) {
  const grpc::Status status =
      ToRpcStatus(RefuseField("contacts.friction[17]", "is NaN; it must be finite and >= 0"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "contacts.friction[17] is NaN; it must be finite and >= 0");

  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), status.error_code());
  EXPECT_EQ(details.message(), status.error_message());
  google::rpc::BadRequest bad_request;
  ASSERT_EQ(details.details_size(), 1);
  ASSERT_TRUE(details.details(0).UnpackTo(&bad_request));
  ASSERT_EQ(bad_request.field_violations_size(), 1);
  EXPECT_EQ(bad_request.field_violations(0).field(), "contacts.friction[17]");
}

TEST(RpcStatusTest, TheStepOfAWorldTravelsAsMetadataOfItsReason) {
  ServiceError error(ServiceCode::kResourceExhausted, "why", "", "WORLD_LOST");
  error.world_step = WorldStep{.world = 3, .step = 0};
  const grpc::Status status = ToRpcStatus(tl::unexpected(error));
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  google::rpc::ErrorInfo info;
  ASSERT_EQ(details.details_size(), 1);
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "WORLD_LOST");
  EXPECT_EQ(info.metadata().size(), 2u);
  EXPECT_EQ(info.metadata().at("world"), "3");
  EXPECT_EQ(info.metadata().at("step"), "0");
}

}  // namespace
}  // namespace sap
