#include "client/cpp/transport/world_messages.h"

#include <openssl/evp.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string_view>
#include <utility>

#include "client/cpp/backend/world_model.h"
#include "client/cpp/transport/message_conversion.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace sap::client {
namespace {

constexpr double kBytesOfNumber = sizeof(double);
// A line of StepCertificates.
constexpr double kBytesOfCertificate = 20;
// A WorldOutcome, with a message.
constexpr double kBytesOfOutcome = 300;

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
  }

  void AddText(std::string_view bytes) {
    EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
  }
  // Little-endian.
  template <typename Integer>
  void AddNumber(Integer number) {
    std::string bytes;
    for (size_t i = 0; i < sizeof number; ++i) {
      bytes.push_back(static_cast<char>(static_cast<uint64_t>(number) >> (8 * i) & 0xff));
    }
    AddText(bytes);
  }

  std::string Hash() {
    std::string hash(EVP_MAX_MD_SIZE, '\0');
    unsigned length = 0;
    EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(hash.data()), &length);
    hash.resize(length);
    return hash;
  }

 private:
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

std::string HashOf(const WorldModel::Content& content) {
  Sha256 hash;
  hash.AddText("sap.v1.model");
  hash.AddNumber(static_cast<int32_t>(content.mujoco_version));
  hash.AddNumber(static_cast<int32_t>(content.kind));
  hash.AddNumber(static_cast<int32_t>(content.files.size()));
  for (const ModelFile& file : content.files) {
    hash.AddNumber(static_cast<int64_t>(file.name.size()));
    hash.AddNumber(static_cast<int64_t>(file.content.size()));
    hash.AddText(file.name);
    hash.AddText(file.content);
  }
  return hash.Hash();
}

size_t SizeOfRow(size_t length, int64_t rows) { return length / static_cast<size_t>(rows); }

Status Malformed(const char* what) {
  return tl::unexpected(Error{ErrorCode::kInternal, std::string("the answer has ") + what, ""});
}

bool HasLength(size_t length, const WorldSlice& slice, int64_t rows, size_t size) {
  return length == static_cast<size_t>(slice.worlds() * rows) * size;
}

// A number in the metadata of a detail; absent: there is none, or it is below 0.
std::optional<int64_t> NumberIn(const google::rpc::ErrorInfo& info, const char* key) {
  const auto found = info.metadata().find(key);
  if (found == info.metadata().end()) return std::nullopt;
  const char* const end = found->second.data() + found->second.size();
  int64_t number = 0;
  const auto [rest, status] = std::from_chars(found->second.data(), end, number);
  if (status != std::errc() || rest != end || number < 0) return std::nullopt;
  return number;
}

}  // namespace

const std::string& IdOf(const WorldModel& model) {
  const WorldModel::Content& content = model.content();
  std::call_once(content.hashed, [&] { content.id = HashOf(content); });
  return content.id;
}

v1::PutModelRequest PutRequestOf(const WorldModel& model) {
  const WorldModel::Content& content = model.content();
  v1::PutModelRequest request;
  request.set_mujoco_version(content.mujoco_version);
  request.set_kind(static_cast<v1::ModelKind>(content.kind));
  for (const ModelFile& file : content.files) {
    v1::ModelFile* to = request.add_files();
    to->set_name(file.name);
    to->set_content(file.content);
  }
  return request;
}

std::optional<WorldStep> WorldStepIn(const grpc::Status& status) {
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return std::nullopt;
  for (const auto& detail : details.details()) {
    google::rpc::ErrorInfo info;
    if (!detail.UnpackTo(&info)) continue;
    const auto world = NumberIn(info, "world");
    const auto step = NumberIn(info, "step");
    if (world && step) return WorldStep{.world = *world, .step = *step};
  }
  return std::nullopt;
}

WorldResults::WorldResults(const WorldsView& worlds)
    : worlds_(worlds),
      count_(worlds.worlds()),
      state_size_(SizeOfRow(worlds.states.size(), count_)),
      control_size_(SizeOfRow(worlds.controls.size(), count_ * worlds.steps)),
      states_{worlds.answered_states,
              SizeOfRow(worlds.answered_states.size(), count_ * worlds.rows())},
      sensors_{worlds.sensors, SizeOfRow(worlds.sensors.size(), count_ * worlds.rows())},
      checkpoints_(worlds.final_states),
      checkpoint_size_(SizeOfRow(worlds.final_states.size(), count_)),
      outcomes_(worlds.outcomes) {
  if (outcomes_.empty()) {
    own_outcomes_.resize(static_cast<size_t>(count_));
    outcomes_ = own_outcomes_;
  }
  std::ranges::fill(outcomes_, WorldOutcome());
  for (size_t i = 0; i < worlds.rested.size(); ++i) outcomes_[i].rested = worlds.rested[i];
  bytes_per_world_ = kBytesOfNumber * static_cast<double>(state_size_ + checkpoint_size_);
  bytes_per_world_ += kBytesOfOutcome;
  bytes_per_step_ = kBytesOfNumber * (static_cast<double>(states_.size + sensors_.size) /
                                          static_cast<double>(worlds.every) +
                                      static_cast<double>(control_size_));
  if (!worlds.certificates.empty()) bytes_per_step_ += kBytesOfCertificate;
  bytes_per_step_ = std::max(bytes_per_step_, 1.0);
}

v1::AdvanceRequest WorldResults::RequestOf(const WorldSlice& slice) const {
  v1::AdvanceRequest request;
  request.set_model_id(IdOf(*worlds_.models[slice.begin]));
  request.set_worlds(static_cast<uint32_t>(slice.worlds()));
  request.set_steps(static_cast<uint32_t>(slice.steps));
  request.set_every(static_cast<uint32_t>(std::min(worlds_.every, slice.steps)));
  const bool is_first = slice.first_step == 0;
  const size_t size = is_first ? state_size_ : checkpoint_size_;
  const StateKind kind = is_first ? worlds_.state_kind : StateKind::kIntegration;
  const double* const states = is_first ? worlds_.states.data() : checkpoints_.data();
  request.set_state_kind(static_cast<v1::StateKind>(kind));
  request.set_answered_kind(static_cast<v1::StateKind>(worlds_.answered_kind));
  request.mutable_states()->Add(states + slice.begin * size, states + slice.end * size);
  for (const ControlComponent component : worlds_.control_components) {
    request.add_control_components(static_cast<v1::ControlComponent>(component));
  }
  const size_t of_steps = control_size_ * slice.steps;
  if (of_steps > 0)
    request.mutable_controls()->Reserve(static_cast<int>(of_steps * slice.worlds()));
  for (int64_t world = slice.begin; world < slice.end && of_steps > 0; ++world) {
    const double* controls =
        worlds_.controls.data() + (world * worlds_.steps + slice.first_step) * control_size_;
    request.mutable_controls()->Add(controls, controls + of_steps);
  }
  request.set_law(static_cast<v1::WorldLaw>(worlds_.law));
  if (worlds_.relative_tolerance) request.set_relative_tolerance(*worlds_.relative_tolerance);
  if (worlds_.max_iterations) request.set_max_iterations(*worlds_.max_iterations);
  request.set_refuses_unsolved(worlds_.refuses_unsolved);
  request.set_holds_after_warning(worlds_.holds_after_warning);
  request.set_answers_states(!states_.values.empty());
  request.set_answers_sensors(!sensors_.values.empty());
  request.set_answers_final_states(!worlds_.final_states.empty() || !is_last(slice));
  request.set_answers_certificates(!worlds_.certificates.empty());
  if (!worlds_.until) return request;
  request.mutable_until()->set_speed(worlds_.until->speed);
  request.mutable_until()->set_duration(worlds_.until->duration);
  for (int64_t world = slice.begin; world < slice.end; ++world) {
    request.add_rested(outcomes_[world].rested);
  }
  return request;
}

Status WorldResults::Take(const WorldSlice& slice, const v1::AdvanceResponse& response) {
  const int64_t rows = RowsBefore(slice.first_step + slice.steps) - RowsBefore(slice.first_step);
  const auto& certificates = response.certificates();
  if (response.outcomes_size() != slice.worlds()) return Malformed("not an outcome per world");
  if (!states_.values.empty() && !HasLength(response.states_size(), slice, rows, states_.size)) {
    return Malformed("states of another size");
  }
  if (!sensors_.values.empty() && !HasLength(response.sensors_size(), slice, rows, sensors_.size)) {
    return Malformed("sensors of another size");
  }
  if (!worlds_.certificates.empty() &&
      (!HasLength(certificates.islands_size(), slice, slice.steps, 1) ||
       !HasLength(certificates.unsolved_size(), slice, slice.steps, 1) ||
       !HasLength(certificates.iterations_size(), slice, slice.steps, 1) ||
       !HasLength(certificates.bound_size(), slice, slice.steps, 1))) {
    return Malformed("not a certificate per step");
  }
  for (const v1::WorldOutcome& outcome : response.outcomes()) {
    if (outcome.steps() > slice.steps) return Malformed("more steps than were asked for");
  }
  if (Status taken = TakeCheckpoints(slice, response); !taken) return taken;
  CopyRows(slice, response.states().data(), states_);
  CopyRows(slice, response.sensors().data(), sensors_);
  if (!worlds_.certificates.empty()) TakeCertificates(slice, certificates);
  for (int64_t i = 0; i < slice.worlds(); ++i) {
    TakeOutcome(slice, slice.begin + i, response.outcomes(static_cast<int>(i)));
  }
  return {};
}

Status WorldResults::TakeCheckpoints(const WorldSlice& slice, const v1::AdvanceResponse& response) {
  if (worlds_.final_states.empty() && is_last(slice)) return {};
  const auto length = static_cast<size_t>(response.final_states_size());
  if (checkpoint_size_ == 0) {
    checkpoint_size_ = length / static_cast<size_t>(slice.worlds());
    own_checkpoints_.resize(checkpoint_size_ * static_cast<size_t>(count_));
    checkpoints_ = own_checkpoints_;
  }
  if (checkpoint_size_ == 0 || !HasLength(length, slice, 1, checkpoint_size_)) {
    return Malformed("final states of another size");
  }
  std::copy_n(response.final_states().data(), length,
              checkpoints_.data() + slice.begin * checkpoint_size_);
  return {};
}

void WorldResults::CopyRows(const WorldSlice& slice, const double* from, const Rows& to) {
  if (to.values.empty()) return;
  const int64_t first = RowsBefore(slice.first_step);
  const size_t length = (RowsBefore(slice.first_step + slice.steps) - first) * to.size;
  for (int64_t world = slice.begin; world < slice.end; ++world, from += length) {
    std::copy_n(from, length, to.values.data() + (world * worlds_.rows() + first) * to.size);
  }
}

void WorldResults::TakeCertificates(const WorldSlice& slice, const v1::StepCertificates& from) {
  int place = 0;
  for (int64_t world = slice.begin; world < slice.end; ++world) {
    WorldCertificate* to = worlds_.certificates.data() + world * worlds_.steps + slice.first_step;
    for (int64_t step = 0; step < slice.steps; ++step, ++place) {
      to[step] = {from.islands(place), from.unsolved(place), from.iterations(place),
                  from.bound(place)};
    }
  }
}

void WorldResults::TakeOutcome(const WorldSlice& slice, int64_t world,
                               const v1::WorldOutcome& from) {
  WorldOutcome& outcome = outcomes_[world];
  outcome.steps = slice.first_step + from.steps();
  outcome.warnings |= from.warnings();
  outcome.rested = from.rested();
  if (from.has_failure()) {
    const v1::Failure& failure = from.failure();
    outcome.failure = Error{FromCode(failure.code()), failure.message(), failure.field()};
    outcome.failure->reason = failure.reason();
  }
  outcome.end = static_cast<WorldEnd>(from.end());
  const bool took_all = !outcome.failure && from.steps() == slice.steps;
  const bool is_held = outcome.end == WorldEnd::kWarning || outcome.end == WorldEnd::kRest;
  if (took_all && !is_held) outcome.end = is_last(slice) ? WorldEnd::kSteps : WorldEnd::kNone;
  if (outcome.end != WorldEnd::kNone) End(world, RowsBefore(slice.first_step + slice.steps));
}

void WorldResults::Fail(const WorldSlice& slice, int64_t world, int64_t step, Error error) {
  WorldOutcome& outcome = outcomes_[world];
  outcome.end = WorldEnd::kFailure;
  outcome.steps = std::clamp(step, slice.first_step, slice.first_step + slice.steps - 1);
  outcome.failure = std::move(error);
  End(world, RowsBefore(slice.first_step));
}

// Fills what no slice will: the rows and certificates after the end of a world.
void WorldResults::End(int64_t world, int64_t rows) {
  RepeatRows(world, rows, states_);
  RepeatRows(world, rows, sensors_);
  if (worlds_.certificates.empty()) return;
  const int64_t step = std::min(rows * worlds_.every, worlds_.steps);
  std::fill_n(worlds_.certificates.begin() + world * worlds_.steps + step, worlds_.steps - step,
              WorldCertificate());
}

void WorldResults::RepeatRows(int64_t world, int64_t first_row, const Rows& rows) {
  if (rows.values.empty()) return;
  double* const first = rows.values.data() + world * worlds_.rows() * rows.size;
  if (first_row == 0) std::fill_n(first, rows.size, 0.0);  // no step was taken
  for (int64_t row = std::max(first_row, int64_t{1}); row < worlds_.rows(); ++row) {
    std::copy_n(first + (row - 1) * rows.size, rows.size, first + row * rows.size);
  }
}

}  // namespace sap::client
