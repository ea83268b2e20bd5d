// Requests that are written from arrays have the bytes that protobuf's serializer writes for the
// messages.
#include "client/cpp/transport/request_bytes.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "client/cpp/problem_file.h"
#include "client/cpp/transport/message_conversion.h"
#include "tests/support/golden_problem.h"
#include "tests/support/message_fields.h"

namespace sap::client::request_bytes {
namespace {

// Written by protobuf without any of our code, deterministically.
std::string SerializedBy(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream output(&stream);
  output.SetSerializationDeterministic(true);
  EXPECT_TRUE(message.SerializeToCodedStream(&output));
  output.Trim();
  return bytes;
}

std::string ToString(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

v1::SolveOptions SomeOptions() {
  v1::SolveOptions options;
  options.set_max_iterations(7);
  options.mutable_response_mask()->add_paths("velocity");
  return options;
}

// All requests that carry problems, of these problems.
void ExpectSameBytes(const std::vector<Problem>& problems, const std::string& what) {
  SCOPED_TRACE(what);
  const v1::SolveOptions options = SomeOptions();
  std::vector<ContactProblemView> views;
  v1::SolveBatchRequest batch;
  v1::StreamBatchRequest stream;
  for (const Problem& problem : problems) {
    views.push_back(ViewOf(problem));
    ToMessage(problem, batch.add_problems());
    ToMessage(problem, stream.add_problems());
    v1::SolveRequest request;
    ToMessage(problem, request.mutable_problem());
    EXPECT_EQ(ToString(SolveRequestBytes(views.back(), {})), [&] {
      (void)request.mutable_options();
      return SerializedBy(request);
    }());
    *request.mutable_options() = options;
    EXPECT_EQ(ToString(SolveRequestBytes(views.back(), options)), SerializedBy(request));
    for (const uint64_t step_id : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
      v1::SolveSessionRequest session;
      session.mutable_step()->set_step_id(step_id);
      ToMessage(problem, session.mutable_step()->mutable_problem());
      EXPECT_EQ(ToString(StepRequestBytes(step_id, views.back(), std::nullopt)),
                SerializedBy(session));
      *session.mutable_step()->mutable_options() = options;
      const grpc::ByteBuffer bytes = StepRequestBytes(step_id, views.back(), options);
      EXPECT_EQ(ToString(bytes), SerializedBy(session));
      EXPECT_EQ(SerializedBy(ParseStep(bytes)), SerializedBy(session));
    }
  }
  *batch.mutable_options() = options;
  *stream.mutable_options() = options;
  EXPECT_EQ(ToString(BatchRequestBytes(views, options)), SerializedBy(batch));
  EXPECT_EQ(ToString(BatchRequestBytes(views, options)), SerializedBy(stream));
}

// A problem whose arrays all have so many values.
Problem Filled(int count) {
  v1::ContactProblem message;
  test::FillFields(count, &message);
  return *FromMessage(message);
}

TEST(RequestBytesTest, ProblemsWithCertifiedSolutions) {
  for (const test::GoldenSet set :
       {test::GoldenSet::kFriction, test::GoldenSet::kConstraints, test::GoldenSet::kSoft}) {
    for (const std::string& name : test::GoldenNames("", set)) {
      const auto problem = LoadProblem(test::GoldenPath(name, set));
      ASSERT_TRUE(problem.has_value()) << problem.error().message;
      ExpectSameBytes({*problem}, name);
    }
  }
}

// Lengths on both sides of those where one more byte is needed for them.
TEST(RequestBytesTest, EveryFieldInEveryLength) {
  for (const int count : {0, 1, 3, 15, 16, 127, 128, 2047, 2048, 20000}) {
    ExpectSameBytes({Filled(count)}, std::to_string(count) + " values");
  }
  ExpectSameBytes({}, "no problem");
  ExpectSameBytes({Filled(3), Problem(), Filled(200)}, "three problems");
}

TEST(RequestBytesTest, ValuesThatTheServerRefuses) {
  Problem problem = Filled(3);
  problem.contacts.law.law = {-1, 0, std::numeric_limits<int32_t>::max()};
  problem.body_contacts.law.law = {std::numeric_limits<int32_t>::min(), 1 << 14, 127};
  for (const double time_step : {0.0, -0.0, std::numeric_limits<double>::quiet_NaN()}) {
    problem.time_step = time_step;
    ExpectSameBytes({problem}, std::to_string(time_step));
  }
  for (const DelassusRule rule :
       {DelassusRule::kFull, DelassusRule::kDiagonal, DelassusRule::kLoadPath}) {
    problem.regularization.rule = rule;
    problem.regularization.load_reference_speed = std::numeric_limits<double>::infinity();
    ExpectSameBytes({problem}, "no reference speed");
    problem.regularization.reference_time_step = 0;
    ExpectSameBytes({problem}, "no reference time step");
  }
}

}  // namespace
}  // namespace sap::client::request_bytes
