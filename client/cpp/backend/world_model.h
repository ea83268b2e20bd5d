// The files of a model of worlds, and the hash by which servers keep them. Internal.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "client/cpp/worlds.h"

namespace sap::client {

struct WorldModel::Content {
  int mujoco_version;
  ModelKind kind;
  std::vector<ModelFile> files;

  // Computed at the first call of servers.
  mutable std::once_flag hashed{};
  mutable std::string id{};
};

}  // namespace sap::client
