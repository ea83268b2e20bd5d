#include "server/worlds/world_messages.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "client/mujoco/sap_mujoco.h"
#include "solver/problem/input_checker.h"

namespace sap {
namespace {

constexpr int kMostFiles = 1000;
constexpr size_t kLongestName = 256;
constexpr uint32_t kMostWorlds = 65536;
constexpr uint32_t kMostSteps = 1'000'000;
// As the schema counts them.
constexpr int64_t kCertificate_bytes = 20;
constexpr int64_t kWorld_bytes = 512;
// Lengths of arrays that models with more memory than a worker has would have.
constexpr int32_t kLongestArray = 1 << 28;

// Why a name is none of a file; empty: it is one.
std::string WhyNoName(const std::string& name) {
  if (name.size() > kLongestName) return "has more than 256 bytes";
  if (std::ranges::any_of(name, [](unsigned char c) { return c < ' ' || c == 0x7f; })) {
    return "has a control character";
  }
  std::string_view rest = name;
  while (true) {
    const size_t end = rest.find('/');
    const std::string_view part = rest.substr(0, end);
    if (part.empty()) return "is '" + name + "', which has an empty part";
    if (part == "..") return "is '" + name + "', which leaves its folder";
    if (end == std::string_view::npos) return "";
    rest.remove_prefix(end + 1);
  }
}

std::string WithoutCase(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

ServiceStatus CheckNames(const v1::PutModelRequest& message) {
  std::set<std::string> names;
  for (int i = 0; i < message.files_size(); ++i) {
    const std::string& name = message.files(i).name();
    const std::string field = "files[" + std::to_string(i) + "].name";
    if (message.kind() == v1::MODEL_KIND_MJB && name.empty()) continue;
    if (const std::string why = WhyNoName(name); !why.empty()) {
      return RefuseField(field, why);
    }
    if (!names.insert(WithoutCase(name)).second) {
      return RefuseField(field, "is '" + name + "', which an earlier file has, but for case");
    }
  }
  return {};
}

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
  }
  void Add(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }
  // Little-endian.
  template <typename Integer>
  void AddNumber(Integer number) {
    std::string bytes;
    for (size_t i = 0; i < sizeof number; ++i) {
      bytes.push_back(static_cast<char>(static_cast<uint64_t>(number) >> (8 * i)));
    }
    Add(bytes);
  }
  ModelId End() {
    ModelId hash;
    EVP_DigestFinal_ex(context_.get(), hash.data(), nullptr);
    return hash;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

template <typename Number>
ServiceStatus CheckRange(const char* field, Number number, Number least, Number most) {
  if (number >= least && number <= most) return {};
  return RefuseField(field, "is " + std::to_string(number) + "; it must be in [" +
                                std::to_string(least) + ", " + std::to_string(most) + "]");
}

tl::unexpected<EngineError> Unknown(const std::string& field, int value) {
  return RefuseField(field, "is " + std::to_string(value) + ", which this version does not know");
}

tl::expected<AnsweredKind, ServiceError> DecodeKind(const char* field, v1::StateKind kind) {
  switch (kind) {
    case v1::STATE_KIND_UNSPECIFIED:
      return AnsweredKind::kAsStates;
    case v1::STATE_KIND_FULL_PHYSICS:
      return AnsweredKind::kFullPhysics;
    case v1::STATE_KIND_INTEGRATION:
      return AnsweredKind::kIntegration;
    default:
      return Unknown(field, kind);
  }
}

ServiceStatus DecodeLaw(const v1::AdvanceRequest& message, WorldSettings* settings) {
  switch (message.law()) {
    case v1::WORLD_LAW_UNSPECIFIED:
    case v1::WORLD_LAW_SAP:
      settings->law = SAP_MUJOCO_SAP;
      return {};
    case v1::WORLD_LAW_MUJOCO:
      settings->law = SAP_MUJOCO_MUJOCO;
      return {};
    case v1::WORLD_LAW_COULOMB:
      settings->law = SAP_MUJOCO_COULOMB;
      return {};
    case v1::WORLD_LAW_RUN:
      settings->law = SAP_MUJOCO_RUN;
      return {};
    default:
      return Unknown("law", message.law());
  }
}

ServiceStatus DecodeMethod(const v1::AdvanceRequest& message, const EngineLimits& limits,
                           WorldSettings* settings) {
  if (ServiceStatus decoded = DecodeLaw(message, settings); !decoded) return decoded;
  const bool is_models = settings->law == SAP_MUJOCO_RUN;
  const auto refuse = [](const char* field, const std::string& why) -> ServiceStatus {
    return RefuseField(field, why);
  };
  if (message.has_relative_tolerance()) {
    const double tolerance = message.relative_tolerance();
    if (is_models) return refuse("relative_tolerance", "is the model's under the law RUN");
    if (!(tolerance > 0 && tolerance < 1)) {
      return refuse("relative_tolerance", "is " + ToText(tolerance) + "; it must be in (0, 1)");
    }
    settings->relative_tolerance = tolerance;
  }
  if (message.has_max_iterations()) {
    const uint32_t iterations = message.max_iterations();
    if (is_models) return refuse("max_iterations", "is the model's under the law RUN");
    ServiceStatus checked = CheckRange<uint32_t>("max_iterations", iterations, 1,
                                                 static_cast<uint32_t>(limits.max_iterations));
    if (!checked) return checked;
    settings->max_iterations = static_cast<int32_t>(iterations);
  }
  return {};
}

ServiceStatus DecodeComponents(const v1::AdvanceRequest& message, WorldSettings* settings) {
  for (int i = 0; i < message.control_components_size(); ++i) {
    const int component = message.control_components(i);
    const std::string field = "control_components[" + std::to_string(i) + "]";
    if (component <= v1::CONTROL_COMPONENT_UNSPECIFIED ||
        component > v1::CONTROL_COMPONENT_USERDATA) {
      return Unknown(field, component);
    }
    const uint32_t bit = 1U << component;
    if ((settings->control_components & bit) != 0) {
      return RefuseField(field, "is " + std::to_string(component) + ", as an earlier one");
    }
    settings->control_components |= bit;
  }
  return {};
}

ServiceStatus DecodeRest(const v1::AdvanceRequest& message, WorldSettings* settings) {
  if (!message.has_until()) return {};
  const auto refuse = [](const char* field, double value, const char* range) -> ServiceStatus {
    return RefuseField(field, "is " + ToText(value) + "; it must be finite and " + range);
  };
  const double speed = message.until().speed();
  const double duration = message.until().duration();
  if (!(std::isfinite(speed) && speed > 0)) return refuse("until.speed", speed, "> 0");
  if (!(std::isfinite(duration) && duration >= 0)) {
    return refuse("until.duration", duration, ">= 0");
  }
  settings->rest_speed = speed;
  settings->rest_duration_s = duration;
  return {};
}

ServiceStatus DecodeCounts(const v1::AdvanceRequest& message, AdvancePlan* plan) {
  const uint32_t every = message.has_every() ? message.every() : 1;
  return CheckRange<uint32_t>("worlds", message.worlds(), 1, kMostWorlds)
      .and_then([&] { return CheckRange<uint32_t>("steps", message.steps(), 1, kMostSteps); })
      .and_then([&] { return CheckRange<uint32_t>("every", every, 1, message.steps()); })
      .map([&] {
        plan->worlds = message.worlds();
        plan->steps = message.steps();
        plan->settings.every = static_cast<int32_t>(every);
      });
}

// The product of lengths can be beyond an integer.
ServiceStatus CheckLength(const char* field, int64_t length, double expected,
                          const std::string& product) {
  if (static_cast<double>(length) == expected) return {};
  const std::string text = ToText(expected);
  return RefuseField(field, "has " + std::to_string(length) + " numbers; " + product + " = " +
                                text + " are needed");
}

ServiceStatus CheckRested(const v1::AdvanceRequest& message) {
  if (message.rested().empty()) return {};
  if (message.rested_size() != static_cast<int64_t>(message.worlds())) {
    return CheckLength("rested", message.rested_size(), message.worlds(), "worlds");
  }
  for (int i = 0; i < message.rested_size(); ++i) {
    const double rested = message.rested(i);
    if (std::isfinite(rested) && rested >= 0) continue;
    return RefuseField("rested[" + std::to_string(i) + "]",
                       "is " + ToText(rested) + "; it must be finite and >= 0");
  }
  return {};
}

}  // namespace

std::string NameOfVersion(int32_t mujoco_version) {
  const bool is_short = mujoco_version < 1000;  // of 3.3.7 and before it: 337
  const int32_t major = is_short ? 100 : 1'000'000;
  const int32_t minor = is_short ? 10 : 1000;
  return std::to_string(mujoco_version / major) + "." +
         std::to_string(mujoco_version % major / minor) + "." +
         std::to_string(mujoco_version % minor);
}

tl::expected<ModelSource, ServiceError> DecodeModel(v1::PutModelRequest* message,
                                                    int32_t mujoco_version) {
  if (message->mujoco_version() != mujoco_version) {
    return tl::unexpected(ServiceError{ServiceCode::kFailedPrecondition,
                                       "the model is of MuJoCo " +
                                           NameOfVersion(message->mujoco_version()) +
                                           "; this server steps " + NameOfVersion(mujoco_version),
                                       "mujoco_version", "MUJOCO_VERSION"});
  }
  const bool is_binary = message->kind() == v1::MODEL_KIND_MJB;
  if (!is_binary && message->kind() != v1::MODEL_KIND_MJCF) {
    return Unknown("kind", message->kind());
  }
  const int files = message->files_size();
  if (files < 1 || files > (is_binary ? 1 : kMostFiles)) {
    return RefuseField("files", "has " + std::to_string(files) + " files; " +
                                    (is_binary ? "a binary model has 1" : "1 to 1000 are needed"));
  }
  if (const ServiceStatus checked = CheckNames(*message); !checked) {
    return tl::unexpected(checked.error());
  }
  ModelSource source{.id = {}, .is_binary = is_binary, .files = {}};
  for (v1::ModelFile& file : *message->mutable_files()) {
    source.files.push_back({std::move(*file.mutable_name()), std::move(*file.mutable_content())});
  }
  message->Clear();
  return source;
}

ModelId HashOf(const ModelSource& model, int32_t mujoco_version) {
  Sha256 hash;
  hash.Add("sap.v1.model");
  hash.AddNumber(mujoco_version);
  hash.AddNumber<int32_t>(model.is_binary ? v1::MODEL_KIND_MJB : v1::MODEL_KIND_MJCF);
  hash.AddNumber(static_cast<int32_t>(model.files.size()));
  for (const ModelSource::File& file : model.files) {
    hash.AddNumber<int64_t>(std::ssize(file.name));
    hash.AddNumber<int64_t>(std::ssize(file.content));
    hash.Add(file.name);
    hash.Add(file.content);
  }
  return hash.End();
}

bool ArePlausible(const ModelSizes& sizes) {
  const auto is_length = [](int32_t length) { return length >= 0 && length <= kLongestArray; };
  for (const int32_t length :
       {sizes.nq, sizes.nv, sizes.nu, sizes.na, sizes.nbody, sizes.neq, sizes.nmocap,
        sizes.nuserdata, sizes.nsensordata, sizes.full_physics, sizes.integration}) {
    if (!is_length(length)) return false;
  }
  return std::ranges::all_of(sizes.control, is_length);
}

void EncodeModel(const ModelId& id, const ModelSizes& sizes, v1::PutModelResponse* message) {
  message->set_model_id(id.data(), id.size());
  v1::ModelSizes* const to = message->mutable_sizes();
  to->set_nq(sizes.nq);
  to->set_nv(sizes.nv);
  to->set_nu(sizes.nu);
  to->set_na(sizes.na);
  to->set_nbody(sizes.nbody);
  to->set_neq(sizes.neq);
  to->set_nmocap(sizes.nmocap);
  to->set_nuserdata(sizes.nuserdata);
  to->set_nsensordata(sizes.nsensordata);
  to->set_full_physics(sizes.full_physics);
  to->set_integration(sizes.integration);
}

tl::expected<AdvancePlan, ServiceError> DecodeAdvance(const v1::AdvanceRequest& message,
                                                      const EngineLimits& limits) {
  AdvancePlan plan;
  const std::string& id = message.model_id();
  if (id.size() != plan.model.size()) {
    return RefuseField("model_id", "has " + std::to_string(id.size()) + " bytes; it has 32");
  }
  std::ranges::copy(id, plan.model.begin());
  WorldSettings* const settings = &plan.settings;
  const auto kind = DecodeKind("state_kind", message.state_kind());
  if (!kind) return tl::unexpected(kind.error());
  settings->full_physics = *kind != AnsweredKind::kIntegration;
  const auto answered = DecodeKind("answered_kind", message.answered_kind());
  if (!answered) return tl::unexpected(answered.error());
  settings->answered_kind = *answered;
  settings->refuses_unsolved = message.refuses_unsolved();
  settings->holds_after_warning = message.holds_after_warning();
  const ServiceStatus decoded =
      DecodeCounts(message, &plan)
          .and_then([&] { return DecodeMethod(message, limits, settings); })
          .and_then([&] { return DecodeComponents(message, settings); })
          .and_then([&] { return DecodeRest(message, settings); });
  if (!decoded) return tl::unexpected(decoded.error());
  return plan;
}

ServiceStatus CheckArrays(const v1::AdvanceRequest& message, const ModelSizes& sizes,
                          int64_t max_answer_bytes, AdvancePlan* plan) {
  const WorldSettings& settings = plan->settings;
  plan->state_size = settings.full_physics ? sizes.full_physics : sizes.integration;
  plan->answered_size = settings.AnswersFullPhysics() ? sizes.full_physics : sizes.integration;
  for (size_t i = 1; i < sizes.control.size(); ++i) {
    if ((settings.control_components >> i & 1) != 0) plan->control_size += sizes.control[i];
  }
  plan->rows = AnsweredSteps(plan->steps, settings.every, plan->steps);
  const auto worlds = static_cast<double>(plan->worlds);
  const auto steps = static_cast<double>(plan->steps);
  ServiceStatus checked =
      CheckLength("states", message.states_size(), worlds * static_cast<double>(plan->state_size),
                  "worlds * size of a state")
          .and_then([&] {
            return CheckLength("controls", message.controls_size(),
                               worlds * steps * static_cast<double>(plan->control_size),
                               "worlds * steps * sizes of the components");
          })
          .and_then([&] { return CheckRested(message); });
  if (!checked) return checked;
  const double of_row = 8.0 * ((message.answers_states() ? plan->answered_size : 0) +
                               (message.answers_sensors() ? sizes.nsensordata : 0));
  const double of_world = kWorld_bytes + of_row * static_cast<double>(plan->rows) +
                          (message.answers_final_states() ? 8.0 * sizes.integration : 0.0) +
                          (message.answers_certificates() ? steps * kCertificate_bytes : 0.0);
  const double bytes = worlds * of_world;
  if (bytes > static_cast<double>(max_answer_bytes)) {
    constexpr double kMebibyte = 1 << 20;
    return tl::unexpected(ServiceError{
        ServiceCode::kResourceExhausted,
        "the answer takes up to " + std::to_string(static_cast<int64_t>(bytes / kMebibyte) + 1) +
            " MiB; it may take " + std::to_string(max_answer_bytes >> 20) +
            " MiB: ask for fewer worlds, steps or answers",
        "", "ANSWER_BYTES"});
  }
  plan->answer_bytes = static_cast<int64_t>(bytes);
  return {};
}

void BeginAnswer(const v1::AdvanceRequest& request, const ModelSizes& sizes,
                 const AdvancePlan& plan, v1::AdvanceResponse* answer) {
  const auto resize = [](bool wanted, int64_t length, auto* array) {
    if (wanted) array->Resize(static_cast<int>(length), 0);
  };
  const int64_t rows = plan.worlds * plan.rows;
  resize(request.answers_states(), rows * plan.answered_size, answer->mutable_states());
  resize(request.answers_sensors(), rows * sizes.nsensordata, answer->mutable_sensors());
  resize(request.answers_final_states(), plan.worlds * sizes.integration,
         answer->mutable_final_states());
  if (request.answers_certificates()) {
    v1::StepCertificates* const certificates = answer->mutable_certificates();
    const int64_t steps = plan.worlds * plan.steps;
    resize(true, steps, certificates->mutable_islands());
    resize(true, steps, certificates->mutable_unsolved());
    resize(true, steps, certificates->mutable_iterations());
    resize(true, steps, certificates->mutable_bound());
  }
  answer->mutable_outcomes()->Reserve(static_cast<int>(plan.worlds));
  for (int64_t i = 0; i < plan.worlds; ++i) answer->add_outcomes();
}

void EncodeOutcome(const WorldProgress& progress, v1::WorldOutcome* message) {
  message->set_end(static_cast<v1::WorldEnd>(progress.end));
  message->set_steps(static_cast<uint32_t>(progress.steps));
  message->set_warnings(progress.warnings);
  message->set_rested(std::isfinite(progress.slow_s) ? progress.slow_s : 0);
  if (progress.end != WorldEnd::kFailure) return;
  message->mutable_failure()->set_code(progress.code);
  // Text from a process that has read the bytes of a stranger.
  std::string text(progress.message.data(),
                   strnlen(progress.message.data(), progress.message.size()));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  message->mutable_failure()->set_message(std::move(text));
}

}  // namespace sap
