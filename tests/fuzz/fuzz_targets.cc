#include "tests/fuzz/fuzz_targets.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/reflection.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "client/cpp/problem_file.h"
#include "client/cpp/transport/message_conversion.h"
#include "proto/codec/message_bounds.h"
#include "server/auth/bearer_tokens.h"
#include "server/server_config.h"
#include "tests/server/worlds/blocking_worlds.h"
#include "tests/support/blocking_handler.h"

namespace sap::test {
namespace {

// Small enough that no input takes long.
ServerConfig SmallConfig() {
  ServerConfig config;
  config.threads = 1;
  config.max_iterations = 3;
  config.problem.max_trees = 50;
  config.problem.max_tree_dofs = 30;
  config.problem.max_contacts = 200;
  config.problem.max_rows = 200;
  config.problem.max_row_entries = 1000;
  config.problem.max_row_pairs = 200;
  config.max_batch_problems = 8;
  config.max_derivatives = 8;
  return config;
}

BlockingHandler& SmallHandler() {
  static auto* handler = new BlockingHandler(SmallConfig());
  return *handler;
}

void Require(bool holds) {
  if (!holds) std::abort();
}

// An answer has the shape of its problem; a refusal says why.
void CheckAnswer(const ServiceStatus& status, const v1::ContactProblem& problem,
                 const v1::SolveOptions& options, const v1::ContactSolution& solution) {
  if (!status) return Require(!status.error().message.empty());
  if (options.response_mask().paths_size() > 0) return;
  Require(solution.velocity_size() == problem.trees().free_motion_velocity_size() +
                                          problem.bodies().free_motion_velocity_size());
  for (const double v : solution.velocity()) Require(std::isfinite(v));
  for (const double impulse : solution.impulse()) Require(std::isfinite(impulse));
  for (const double impulse : solution.row_impulse()) Require(std::isfinite(impulse));
  Require(solution.island_of_tree_size() ==
          problem.trees().dofs_size() + problem.bodies().mass_size());
  const v1::IslandReports& islands = solution.islands();
  Require(islands.coulomb_defect_size() == 0 ||
          (options.has_coulomb() && islands.coulomb_defect_size() == islands.status_size()));
  for (const double defect : islands.coulomb_defect()) Require(defect >= 0);
  Require(islands.rest_drift_size() == (options.has_rest() ? islands.status_size() : 0));
  for (const double drift : islands.rest_drift()) Require(drift >= 0);
}

// Whether all doubles of the message are finite.
bool IsFinite(const google::protobuf::Message& message) {
  const auto* reflection = message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  return std::ranges::all_of(fields, [&](const auto* field) {
    if (field->message_type() != nullptr) return IsFinite(reflection->GetMessage(message, field));
    if (!field->is_repeated()) return std::isfinite(reflection->GetDouble(message, field));
    const auto array = reflection->GetRepeatedFieldRef<double>(message, field);
    return std::all_of(array.begin(), array.end(), [](double x) { return std::isfinite(x); });
  });
}

std::string Text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Bounds are made once for each type: that takes longer than what most inputs do.
EngineStatus CheckBounds(const google::protobuf::Descriptor* type, Bytes bytes) {
  static auto* const bounds = new std::map<const google::protobuf::Descriptor*, MessageBounds>;
  static const ServerConfig config = SmallConfig();
  const auto entry = bounds->try_emplace(type, type, config).first;
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  return entry->second.Check(&stream);
}

// As the server does: what is not within the bounds is not parsed.
bool Parse(Bytes bytes, google::protobuf::Message* message) {
  return CheckBounds(message->GetDescriptor(), bytes) &&
         message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace

void FuzzSolve(Bytes bytes) {
  v1::SolveRequest request;
  if (!Parse(bytes, &request)) return;
  v1::SolveResponse response;
  const ServiceStatus status = SmallHandler().Solve(request, CallContext(), &response);
  CheckAnswer(status, request.problem(), request.options(), response.solution());
}

void FuzzDifferentiate(Bytes bytes) {
  v1::DifferentiateRequest request;
  if (!Parse(bytes, &request)) return;
  v1::DifferentiateResponse response;
  const ServiceStatus status = SmallHandler().Differentiate(request, CallContext(), &response);
  CheckAnswer(status, request.problem(), request.options(), response.solution());
  if (!status) return;
  Require(response.gradients_size() == request.cotangents_size());
  Require(response.tangents_size() == request.tangents_size());
  for (const v1::Gradient& gradient : response.gradients()) Require(IsFinite(gradient));
  for (const v1::Tangent& tangent : response.tangents()) Require(IsFinite(tangent));
  for (const double margin : response.kink_margin()) Require(margin >= 0 && margin <= 1);
}

void FuzzSession(Bytes bytes) {
  auto session = SmallHandler().NewSession();
  Require(session.has_value());
  bool open = false;
  while (bytes.size() >= 2) {
    const size_t length =
        std::min<size_t>(bytes[0] + 256 * static_cast<size_t>(bytes[1]), bytes.size() - 2);
    v1::SolveSessionRequest request;
    const bool parsed = Parse(bytes.subspan(2, length), &request);
    bytes = bytes.subspan(2 + length);
    if (!parsed) continue;
    if (!open) open = (*session)->Open(request.open()).has_value();
    if (!open) return;
    v1::StepOutcome outcome;
    Step(session->get(), request.step(), CallContext(), &outcome);
    Require(outcome.step_id() == request.step().step_id());
    Require(outcome.outcome().has_solution() != outcome.outcome().has_failure());
  }
}

void FuzzBatch(Bytes bytes) {
  if (bytes.empty()) return;
  if (bytes[0] % 2 == 0) {
    v1::SolveBatchRequest request;
    if (!Parse(bytes.subspan(1), &request)) return;
    v1::SolveBatchResponse response;
    const ServiceStatus status = SmallHandler().SolveBatch(request, CallContext(), &response);
    Require(!status || response.outcomes_size() == request.problems_size());
    for (const v1::Outcome& outcome : response.outcomes()) {
      Require(outcome.has_solution() != outcome.has_failure());
    }
  } else {
    v1::DifferentiateBatchRequest request;
    if (!Parse(bytes.subspan(1), &request)) return;
    v1::DifferentiateBatchResponse response;
    const ServiceStatus status =
        SmallHandler().DifferentiateBatch(request, CallContext(), &response);
    Require(!status || response.outcomes_size() == request.requests_size());
    for (const v1::DifferentiateOutcome& outcome : response.outcomes()) {
      Require(outcome.has_derivatives() != outcome.has_failure());
    }
  }
}

void FuzzMessages(Bytes bytes) {
  if (bytes.empty()) return;
  const auto* service = v1::SolveRequest::descriptor()->file()->service(0);
  const auto* type = service->method(bytes[0] % service->method_count())->input_type();
  bytes = bytes.subspan(1);
  const EngineStatus checked = CheckBounds(type, bytes);
  if (!checked) return Require(!checked.error().message.empty());
  auto* const factory = google::protobuf::MessageFactory::generated_factory();
  const std::unique_ptr<google::protobuf::Message> message(factory->GetPrototype(type)->New());
  if (!message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  // Enumerations of a byte take four, arrays grow by doubling, and a thousand unknown fields 64 kB.
  Require(message->SpaceUsedLong() <= (size_t{65} << 20) + 8 * bytes.size());
  const std::string again = message->SerializeAsString();
  Require(CheckBounds(type, {reinterpret_cast<const uint8_t*>(again.data()), again.size()})
              .has_value());
}

void FuzzWorlds(Bytes bytes) {
  if (bytes.empty()) return;
  static auto* const worlds = new BlockingWorlds(1, SmallConfig());
  if (bytes[0] % 2 == 0) {
    v1::PutModelRequest request;
    if (!Parse(bytes.subspan(1), &request)) return;
    v1::PutModelResponse response;
    const ServiceStatus status = worlds->Put(std::move(request), &response);
    return Require(status ? response.model_id().size() == 32 : !status.error().message.empty());
  }
  v1::AdvanceRequest request;
  if (!Parse(bytes.subspan(1), &request)) return;
  const double steps = static_cast<double>(request.worlds()) * request.steps();
  if (steps > 2000) return;
  request.set_model_id(worlds->Put());
  v1::AdvanceResponse answer;
  const ServiceStatus status = worlds->Advance(request, &answer);
  if (!status) return Require(!status.error().message.empty());
  const uint32_t every = request.has_every() ? request.every() : 1;
  const uint32_t rows = request.worlds() * ((request.steps() + every - 1) / every);
  Require(answer.outcomes_size() == static_cast<int>(request.worlds()));
  Require(answer.sensors_size() ==
          (request.answers_sensors() ? static_cast<int>(rows) * kSensors : 0));
  Require(answer.certificates().bound_size() ==
          (request.answers_certificates() ? static_cast<int>(steps) : 0));
}

void FuzzJson(Bytes bytes) {
  const auto problem = client::ProblemFromJson(Text(bytes));
  if (!problem) return Require(!problem.error().message.empty());
  v1::ContactProblem message;
  client::ToMessage(*problem, &message);
}

void FuzzFlags(Bytes bytes) {
  std::istringstream text(Text(bytes));
  std::vector<std::string> lines{"sap-server"};
  for (std::string line; lines.size() < 20 && std::getline(text, line);) {
    // Texts of help would fill the screen; a file may be a pipe that never ends.
    if (line.starts_with("--help") || line.starts_with("-h") || line == "--version" ||
        line.starts_with("--config")) {
      continue;
    }
    if (line.find('\0') == std::string::npos) lines.push_back(line);
  }
  std::vector<const char*> arguments;
  for (const std::string& line : lines) arguments.push_back(line.c_str());
  ServerConfig config;
  const char* const environment[] = {nullptr};
  if (ReadServerFlags(static_cast<int>(arguments.size()), arguments.data(), environment, &config)) {
    return;
  }
  Require(config.threads >= 1 && config.io_threads >= 1);
}

void FuzzTokens(Bytes bytes) {
  static const std::string path =
      (std::filesystem::temp_directory_path() / ("sap-fuzz-" + std::to_string(getpid()))).string();
  const size_t half = bytes.size() / 2;
  std::ofstream(path, std::ios::binary) << Text(bytes.subspan(half));
  const auto tokens = BearerTokens::Open(path, [](const std::string&) {});
  std::filesystem::remove(path);
  if (!tokens) return Require(!tokens.error().empty());
  if (const auto client = (*tokens)->Find(Text(bytes.first(half)))) Require(!client->name.empty());
}

}  // namespace sap::test
