#include "tests/support/counting_worlds.h"

#include <openssl/sha.h>

#include <chrono>
#include <thread>
#include <utility>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace sap::test {
namespace {

void Append(int64_t number, int bytes, std::string* text) {
  for (int i = 0; i < bytes; ++i) text->push_back(static_cast<char>(number >> (8 * i) & 0xff));
}

// As PutModelResponse.model_id says.
std::string IdOf(const v1::PutModelRequest& request) {
  std::string text = "sap.v1.model";
  Append(request.mujoco_version(), 4, &text);
  Append(request.kind(), 4, &text);
  Append(request.files_size(), 4, &text);
  for (const v1::ModelFile& file : request.files()) {
    Append(static_cast<int64_t>(file.name().size()), 8, &text);
    Append(static_cast<int64_t>(file.content().size()), 8, &text);
    text += file.name() + file.content();
  }
  std::string hash(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(hash.data()));
  return hash;
}

struct World {
  double t, x, h;
};

void Append(const World& world, bool with_speed, google::protobuf::RepeatedField<double>* to) {
  to->Add(world.t);
  to->Add(world.x);
  if (with_speed) to->Add(world.h);
}

// Steps a world; appends its rows to the response.
void Step(const v1::AdvanceRequest& request, World world, const double* controls,
          v1::AdvanceResponse* response) {
  v1::WorldOutcome* outcome = response->add_outcomes();
  outcome->set_end(v1::WORLD_END_STEPS);
  const bool with_speed = request.answered_kind() == v1::STATE_KIND_INTEGRATION;
  const auto steps = static_cast<int>(request.steps());
  for (int step = 0; step < steps; ++step) {
    const double u = controls == nullptr ? 0.0 : controls[step];
    const bool goes_on = outcome->end() == v1::WORLD_END_STEPS;
    if (goes_on && u == CountingWorlds::kFails) {
      outcome->set_end(v1::WORLD_END_FAILURE);
      outcome->mutable_failure()->set_code(grpc::StatusCode::FAILED_PRECONDITION);
      outcome->mutable_failure()->set_message("as the control says");
    } else if (goes_on) {
      world.h = world.h / 4 + u;
      world.x += world.h;
      world.t += 1;
      outcome->set_steps(outcome->steps() + 1);
      if (u == CountingWorlds::kWarns) outcome->set_end(v1::WORLD_END_WARNING);
    }
    v1::StepCertificates* certificates = response->mutable_certificates();
    const bool is_taken = goes_on && outcome->end() != v1::WORLD_END_FAILURE;
    certificates->add_islands(is_taken ? static_cast<uint32_t>(world.t) : 0);
    certificates->add_unsolved(0);
    certificates->add_iterations(1);
    certificates->add_bound(world.x);
    if ((step + 1) % static_cast<int>(request.every()) != 0 && step + 1 != steps) continue;
    if (request.answers_states()) Append(world, with_speed, response->mutable_states());
    if (request.answers_sensors()) response->add_sensors(2 * world.x);
  }
  if (request.answers_final_states()) Append(world, true, response->mutable_final_states());
}

}  // namespace

CountingWorlds::CountingWorlds(std::string identity, std::string library)
    : identity_(std::move(identity)), library_(std::move(library)) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(-1);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  address_ = "127.0.0.1:" + std::to_string(port);
}

CountingWorlds::~CountingWorlds() { server_->Shutdown(std::chrono::system_clock::now()); }

void CountingWorlds::EndNext(const Ending& ending) {
  const std::lock_guard lock(mutex_);
  endings_.push_back(ending);
}

void CountingWorlds::Forget() {
  const std::lock_guard lock(mutex_);
  models_.clear();
}

void CountingWorlds::set_step_s(double step_s) {
  const std::lock_guard lock(mutex_);
  step_s_ = step_s;
}

void CountingWorlds::set_most_numbers(int64_t most) {
  const std::lock_guard lock(mutex_);
  most_numbers_ = most;
}

int CountingWorlds::puts() const {
  const std::lock_guard lock(mutex_);
  return puts_;
}

std::vector<int64_t> CountingWorlds::slices() const {
  const std::lock_guard lock(mutex_);
  return slices_;
}

std::vector<std::string> CountingWorlds::attempts() const {
  const std::lock_guard lock(mutex_);
  return attempts_;
}

grpc::Status CountingWorlds::PutModel(grpc::ServerContext* context,
                                      const v1::PutModelRequest* request,
                                      v1::PutModelResponse* response) {
  context->AddTrailingMetadata("sap-server", identity_);
  const std::lock_guard lock(mutex_);
  ++puts_;
  models_.insert(IdOf(*request));
  response->set_model_id(IdOf(*request));
  return grpc::Status::OK;
}

// Takes what is to happen to a call. False: an ending.
bool CountingWorlds::Begin(const grpc::ServerContext& context, const v1::AdvanceRequest& request,
                           Ending* ending) {
  const std::lock_guard lock(mutex_);
  *ending = {grpc::StatusCode::NOT_FOUND, "it has no such model", "MODEL"};
  if (!models_.contains(request.model_id())) return false;
  const auto attempt = context.client_metadata().find("sap-attempt");
  const bool has_attempt = attempt != context.client_metadata().end();
  attempts_.push_back(has_attempt ? std::string(attempt->second.data(), attempt->second.size())
                                  : "");
  const auto steps = static_cast<int64_t>(request.worlds()) * request.steps();
  slices_.push_back(steps);
  *ending = {grpc::StatusCode::RESOURCE_EXHAUSTED, "the answer is too large", "ANSWER_BYTES"};
  if (3 * steps > most_numbers_) return false;
  if (endings_.empty()) return true;
  *ending = endings_.front();
  endings_.pop_front();
  return false;
}

grpc::Status CountingWorlds::Advance(grpc::ServerContext* context,
                                     const v1::AdvanceRequest* request,
                                     v1::AdvanceResponse* response) {
  Ending ending;
  if (!Begin(*context, *request, &ending)) return End(ending, context);
  const bool with_speed = request->state_kind() == v1::STATE_KIND_INTEGRATION;
  const int size = with_speed ? 3 : 2;
  const bool has_controls = request->controls_size() > 0;
  for (uint32_t i = 0; i < request->worlds(); ++i) {
    const double* state = request->states().data() + i * size;
    const double* controls =
        has_controls ? request->controls().data() + i * request->steps() : nullptr;
    Step(*request, {state[0], state[1], with_speed ? state[2] : 0.0}, controls, response);
  }
  if (!request->answers_certificates()) response->clear_certificates();
  double step_s = 0;
  {
    const std::lock_guard lock(mutex_);
    step_s = step_s_;
  }
  const double time_s = step_s * request->worlds() * request->steps();
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(time_s);
  while (std::chrono::steady_clock::now() < end && !context->IsCancelled()) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  response->set_step_time(time_s);
  response->set_threads(1);
  response->set_mujoco_library_sha256(library_);
  context->AddTrailingMetadata("sap-server", identity_);
  return grpc::Status::OK;
}

grpc::Status CountingWorlds::End(const Ending& ending, grpc::ServerContext* context) const {
  if (ending.with_identity) context->AddTrailingMetadata("sap-server", identity_);
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  info.set_reason(ending.reason);
  info.mutable_metadata()->insert(ending.metadata.begin(), ending.metadata.end());
  details.set_code(ending.code);
  details.set_message(ending.message);
  details.add_details()->PackFrom(info);
  return {ending.code, ending.message, details.SerializeAsString()};
}

}  // namespace sap::test
