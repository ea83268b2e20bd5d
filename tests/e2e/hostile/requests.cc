#include "tests/e2e/hostile/requests.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include "client/cpp/transport/message_conversion.h"
#include "tests/support/scenes.h"

namespace sap::test::hostile {
namespace {

// Mass, inertia, center and velocity of a body, each number of 8 bytes.
constexpr size_t kBodyBytes = 8 * (1 + 6 + 3 + 6);

std::string Field(int number, const std::string& content) {
  using google::protobuf::internal::WireFormatLite;
  std::string field;
  {
    google::protobuf::io::StringOutputStream stream(&field);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.WriteTag(WireFormatLite::MakeTag(number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED));
    out.WriteVarint32(static_cast<uint32_t>(content.size()));
    out.WriteString(content);
  }
  return field;
}

}  // namespace

client::Problem SmallProblem() { return *client::FromMessage(MixedProblem()); }

client::Problem LargeProblem(size_t bytes) {
  const size_t bodies = bytes / kBodyBytes;
  client::Problem problem;
  problem.time_step = 0.01;
  problem.bodies.mass.assign(bodies, 1);
  problem.bodies.center_of_mass.assign(3 * bodies, 0);
  problem.bodies.free_motion_velocity.assign(6 * bodies, 1);
  for (size_t i = 0; i < bodies; ++i) {
    problem.bodies.inertia.insert(problem.bodies.inertia.end(), {1, 1, 1, 0, 0, 0});
  }
  return problem;
}

v1::SolveOptions ManyIterations() {
  v1::SolveOptions options;
  options.set_relative_tolerance(0);
  options.set_absolute_speed_tolerance(0);
  options.set_max_iterations(10'000);
  options.set_newton(v1::NEWTON_METHOD_GAUSS_SEIDEL);
  return options;
}

std::string EndlessRequest() { return SolveRequest(SphereBlock(kEndlessBlock), ManyIterations()); }

std::string SolveRequest(const client::Problem& problem, const v1::SolveOptions& options) {
  v1::SolveRequest request;
  client::ToMessage(problem, request.mutable_problem());
  *request.mutable_options() = options;
  return request.SerializeAsString();
}

std::string BatchRequest(const client::Problem& problem, int count,
                         const v1::SolveOptions& options) {
  v1::SolveBatchRequest request;
  *request.mutable_options() = options;
  for (int i = 0; i < count; ++i) client::ToMessage(problem, request.add_problems());
  return request.SerializeAsString();
}

std::string DifferentiateRequest(const client::Problem& problem, int cotangents) {
  v1::DifferentiateRequest request;
  client::ToMessage(problem, request.mutable_problem());
  for (int i = 0; i < cotangents; ++i) request.add_cotangents()->set_cost(1);
  return request.SerializeAsString();
}

std::string RepeatedField(int number, const std::string& content, size_t bytes,
                          const std::vector<int>& within) {
  const std::string field = Field(number, content);
  std::string request;
  while (request.size() < bytes) request += field;
  for (auto outer = within.rbegin(); outer != within.rend(); ++outer) {
    request = Field(*outer, request);
  }
  return request;
}

std::string OpenRequest() {
  v1::SolveSessionRequest request;
  request.mutable_open();
  return request.SerializeAsString();
}

std::string StepRequest(uint64_t step_id, const client::Problem& problem,
                        const v1::SolveOptions& options) {
  v1::SolveSessionRequest request;
  request.mutable_step()->set_step_id(step_id);
  client::ToMessage(problem, request.mutable_step()->mutable_problem());
  *request.mutable_step()->mutable_options() = options;
  return request.SerializeAsString();
}

}  // namespace sap::test::hostile
