#include "client/c/worlds.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "client/c/run_call.h"
#include "client/c/struct_checker.h"

namespace sap::c {
namespace {

using client::ControlComponent;
using client::StateKind;
using client::WorldCertificate;
using client::WorldLaw;
using client::WorldOutcome;

static_assert(sizeof(sap_world_certificate) == sizeof(WorldCertificate));
constexpr int64_t kMostWorlds = int64_t{1} << 32;
constexpr int32_t kMostFiles = 1000;

// The enumerator of that number, from 1 to `last`; 0: the default.
template <typename Enum>
Enum Known(int32_t number, Enum otherwise, Enum last, const char* field, StructReader* reader) {
  if (number == 0) return otherwise;
  if (number >= 1 && number <= static_cast<int32_t>(last)) return static_cast<Enum>(number);
  reader->Fail(field, "is " + std::to_string(number) + "; this version knows 1 to " +
                          std::to_string(static_cast<int32_t>(last)));
  return otherwise;
}

// The arrays that are written.
void ReadBuffers(const sap_worlds& taken, StructReader* reader, GivenWorlds* given) {
  client::WorldsView& view = given->view;
  view.answered_states = reader->Span(taken, taken.answered_states, "", "answered_states");
  view.sensors = reader->Span(taken, taken.sensors, "", "sensors");
  view.final_states = reader->Span(taken, taken.final_states, "", "final_states");
  if (taken.certificates != nullptr && taken.worlds > 0 && taken.steps > 0) {
    view.certificates = {reinterpret_cast<WorldCertificate*>(taken.certificates),
                         static_cast<size_t>(taken.worlds * taken.steps)};
  }
  given->outcomes.resize(given->models.size());
  view.outcomes = given->outcomes;
}

void ReadModels(const sap_worlds& taken, StructReader* reader, GivenWorlds* given) {
  if (taken.worlds < 0 || taken.worlds > kMostWorlds ||
      (taken.worlds > 0 && taken.models == nullptr)) {
    return reader->Fail("worlds", "is " + std::to_string(taken.worlds) +
                                      (taken.models == nullptr ? ", and models is NULL" : ""));
  }
  for (int64_t i = 0; i < taken.worlds; ++i) {
    const sap_world_model* const model = taken.models[i];
    given->models.push_back(model == nullptr ? nullptr : &model->model);
  }
  given->view.models = given->models;
}

}  // namespace

Read<GivenWorlds> ReadWorlds(const sap_worlds* worlds) {
  if (worlds == nullptr) return Refuse("worlds", "is missing");
  StructReader reader;
  const sap_worlds taken = reader.Take(worlds, "");
  GivenWorlds given;
  client::WorldsView& view = given.view;
  ReadModels(taken, &reader, &given);
  view.steps = taken.steps;
  view.every = taken.every == 0 ? 1 : taken.every;
  view.state_kind = Known(taken.state_kind, StateKind::kFullPhysics, StateKind::kIntegration,
                          "state_kind", &reader);
  view.answered_kind = Known(taken.answered_kind, StateKind::kFullPhysics, StateKind::kIntegration,
                             "answered_kind", &reader);
  view.states = reader.Span(taken, taken.states, "", "states");
  for (const int32_t component :
       reader.Span(taken, taken.control_components, "", "control_components")) {
    given.control_components.push_back(Known(
        component, ControlComponent{}, ControlComponent::kUserdata, "control_components", &reader));
  }
  view.control_components = given.control_components;
  view.controls = reader.Span(taken, taken.controls, "", "controls");
  view.law = Known(taken.law, WorldLaw::kSap, WorldLaw::kRun, "law", &reader);
  view.refuses_unsolved = taken.refuses_unsolved != 0;
  view.holds_after_warning = taken.holds_after_warning != 0;
  if (taken.relative_tolerance != nullptr) view.relative_tolerance = *taken.relative_tolerance;
  if (taken.max_iterations != nullptr) view.max_iterations = *taken.max_iterations;
  if (taken.until != nullptr) {
    const sap_at_rest until = reader.Take(taken.until, "until.");
    view.until = {.speed = until.speed, .duration = until.duration};
  }
  view.rested = reader.Span(taken, taken.rested, "", "rested");
  ReadBuffers(taken, &reader, &given);
  return reader.Result(std::move(given));
}

void WriteOutcomes(const GivenWorlds& given, const sap_worlds* worlds) {
  StructReader reader;
  const sap_worlds taken = reader.Take(worlds, "");
  for (size_t i = 0; i < given.outcomes.size(); ++i) {
    const WorldOutcome& outcome = given.outcomes[i];
    const bool failed = outcome.failure.has_value();
    if (taken.ends != nullptr) taken.ends[i] = static_cast<int32_t>(outcome.end);
    if (taken.taken != nullptr) taken.taken[i] = outcome.steps;
    if (taken.warnings != nullptr) taken.warnings[i] = outcome.warnings;
    if (taken.rested_after != nullptr) taken.rested_after[i] = outcome.rested;
    if (taken.codes != nullptr) {
      taken.codes[i] = failed ? static_cast<int32_t>(outcome.failure->code) : SAP_OK;
    }
    if (taken.messages == nullptr) continue;
    std::snprintf(taken.messages + i * SAP_WORLD_MESSAGE, SAP_WORLD_MESSAGE, "%s",
                  failed ? outcome.failure->message.c_str() : "");
  }
}

}  // namespace sap::c

int32_t sap_world_model_create(int32_t kind, int32_t mujoco_version, int64_t num_files,
                               const sap_model_file* files, sap_world_model** model,
                               sap_answer* answer) {
  using sap::c::Fail;
  if (model == nullptr) return SAP_INVALID_ARGUMENT;
  *model = nullptr;
  return sap::c::RunOnAnswer(answer, [&](sap::c::AnswerContent*) -> sap::c::Status {
    if (kind != SAP_MODEL_MJB && kind != SAP_MODEL_MJCF) {
      return Fail(SAP_INVALID_ARGUMENT,
                  "kind is " + std::to_string(kind) + "; this version knows 1 and 2", "kind");
    }
    if (num_files < 1 || num_files > sap::c::kMostFiles || files == nullptr) {
      return Fail(SAP_INVALID_ARGUMENT,
                  "num_files is " + std::to_string(num_files) +
                      (files == nullptr ? ", and files is NULL" : "; it must be in [1, 1000]"),
                  "num_files");
    }
    std::vector<sap::client::ModelFile> own;
    for (int64_t i = 0; i < num_files; ++i) {
      const sap_bytes& bytes = files[i].content;
      if (bytes.length < 0 || (bytes.data == nullptr && bytes.length > 0)) {
        return Fail(SAP_INVALID_ARGUMENT, "content is at NULL, or has a negative length",
                    "files[" + std::to_string(i) + "].content");
      }
      own.push_back({.name = files[i].name == nullptr ? "" : files[i].name,
                     .content = std::string(static_cast<const char*>(bytes.data),
                                            static_cast<size_t>(bytes.length))});
    }
    auto made = sap::client::WorldModel::Make(
        mujoco_version, static_cast<sap::client::ModelKind>(kind), std::move(own));
    if (!made) return tl::unexpected(std::move(made.error()));
    *model = new sap_world_model{*std::move(made)};
    return {};
  });
}

void sap_world_model_free(sap_world_model* model) { delete model; }
