// Messages that run out of memory while they are parsed.
#include "server/rpc/message_bytes.h"

#include <grpcpp/impl/codegen/proto_utils.h>
#include <gtest/gtest.h>

#include "sap/v1/solver_service.pb.h"
#include "tests/support/allocation_counter.h"

namespace sap::test {
namespace {

v1::SolveBatchRequest ManyProblems() {
  v1::SolveBatchRequest request;
  for (int i = 0; i < 100; ++i) {
    v1::ContactProblem* problem = request.add_problems();
    for (int tree = 0; tree < 50; ++tree) problem->mutable_trees()->add_dofs(1 + tree);
  }
  return request;
}

TEST(MessageBytesTest, AMessageThatMemoryIsShortForIsAnErrorAndTheNextOneIsParsed) {
  const v1::SolveBatchRequest request = ManyProblems();
  const std::string text = request.SerializeAsString();
  const MessageBounds bounds(v1::SolveBatchRequest::descriptor(), EngineLimits{});
  const auto parse = [&](v1::SolveBatchRequest* message) {
    grpc::ByteBuffer bytes = Serialize(request);
    return ParseMessage(bounds, &bytes, message);
  };
  int64_t allocations = AllocationCount();
  {
    v1::SolveBatchRequest message;
    ASSERT_TRUE(parse(&message));
  }
  allocations = AllocationCount() - allocations;
  ASSERT_GT(allocations, 100);
  int failures = 0;
  for (int64_t nth = 1; nth <= allocations; ++nth) {
    grpc::ByteBuffer bytes = Serialize(request);
    {
      v1::SolveBatchRequest message;
      FailAllocation(nth);
      const ServiceStatus parsed = ParseMessage(bounds, &bytes, &message);
      FailAllocation(0);
      if (!parsed) {
        ++failures;
        EXPECT_EQ(parsed.error().code, ServiceCode::kResourceExhausted) << nth;
        // What was parsed of it does not stay while the error is sent.
        EXPECT_EQ(message.problems_size(), 0) << nth;
        EXPECT_EQ(bytes.Length(), 0u) << nth;
      }
    }
    v1::SolveBatchRequest message;
    ASSERT_TRUE(parse(&message));
    ASSERT_EQ(message.SerializeAsString(), text) << nth;
  }
  EXPECT_GT(failures, 100);
}

}  // namespace
}  // namespace sap::test
