#include "client/mujoco/released_versions.h"

#include "client/mujoco/fields.h"

namespace sap::mujoco {
namespace {

struct ReleasedVersion {
  int version;
  sap_mujoco_field fields[row::kCount];
};

constexpr ReleasedVersion kVersions[] = {
#include "client/mujoco/released_versions.inc"
};

}  // namespace

const sap_mujoco_field* FieldsOfVersion(int version) {
  for (const ReleasedVersion& released : kVersions) {
    if (released.version == version) return released.fields;
  }
  return nullptr;
}

}  // namespace sap::mujoco
