#include "client/cpp/worlds.h"

#include <utility>

#include "client/cpp/backend/world_model.h"

namespace sap::client {
namespace {

tl::unexpected<Error> Refuse(const std::string& field, const std::string& what) {
  return tl::unexpected(Error{ErrorCode::kInvalidArgument, field + " " + what, field});
}

// An error unless an array has `rows` rows of one size, or where it may be is empty.
tl::expected<void, Error> CheckRows(const std::string& field, size_t length, int64_t rows,
                                    bool may_be_empty = true) {
  if (length == 0 && may_be_empty) return {};
  if (length != 0 && length % static_cast<size_t>(rows) == 0) return {};
  return Refuse(field, "has " + std::to_string(length) + " numbers; a multiple of " +
                           std::to_string(rows) + " is needed");
}

tl::expected<void, Error> CheckLength(const std::string& field, size_t length, int64_t needed) {
  if (length == 0 || length == static_cast<size_t>(needed)) return {};
  return Refuse(field, "has the length " + std::to_string(length) + "; it must be " +
                           std::to_string(needed) + " or 0");
}

}  // namespace

tl::expected<WorldModel, Error> WorldModel::Make(int mujoco_version, ModelKind kind,
                                                 std::vector<ModelFile> files) {
  if (files.empty()) return Refuse("files", "is empty; a model has at least one file");
  if (kind == ModelKind::kMjb && files.size() > 1) {
    return Refuse("files", "has " + std::to_string(files.size()) + " files; a binary model is one");
  }
  auto content = std::make_shared<Content>();
  content->mujoco_version = mujoco_version;
  content->kind = kind;
  content->files = std::move(files);
  return WorldModel(std::move(content));
}

tl::expected<void, Error> CheckWorlds(const WorldsView& worlds) {
  const int64_t count = worlds.worlds();
  if (count == 0) return Refuse("models", "is empty; there is one for each world");
  for (const WorldModel* model : worlds.models) {
    if (model == nullptr) return Refuse("models", "has a model that is null");
  }
  if (worlds.steps < 1) {
    return Refuse("steps", "is " + std::to_string(worlds.steps) + "; it must be >= 1");
  }
  if (worlds.every < 1 || worlds.every > worlds.steps) {
    return Refuse("every", "is " + std::to_string(worlds.every) + "; it must be in [1, steps]");
  }
  if (worlds.controls.empty() != worlds.control_components.empty()) {
    return Refuse("controls", "and control_components must both be given, or neither");
  }
  const int64_t rows = count * worlds.rows();
  for (const auto& checked : {
           CheckRows("states", worlds.states.size(), count, /*may_be_empty=*/false),
           CheckRows("controls", worlds.controls.size(), count * worlds.steps),
           CheckRows("answered_states", worlds.answered_states.size(), rows),
           CheckRows("sensors", worlds.sensors.size(), rows),
           CheckRows("final_states", worlds.final_states.size(), count),
           CheckLength("certificates", worlds.certificates.size(), count * worlds.steps),
           CheckLength("outcomes", worlds.outcomes.size(), count),
           CheckLength("rested", worlds.rested.size(), count),
       }) {
    if (!checked) return checked;
  }
  return {};
}

}  // namespace sap::client
