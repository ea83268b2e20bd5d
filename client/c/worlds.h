// Worlds of the C interface: structs to those of client/cpp, outcomes to arrays.
#pragma once

#include <vector>

#include "client/c/sap_islands_worlds.h"
#include "client/c/struct_reader.h"
#include "client/cpp/worlds.h"

struct sap_world_model {
  sap::client::WorldModel model;
};

namespace sap::c {

// A call as given: valid while the arrays of the caller are. Not to be copied.
struct GivenWorlds {
  std::vector<const client::WorldModel*> models;
  std::vector<client::ControlComponent> control_components;
  std::vector<client::WorldOutcome> outcomes;
  client::WorldsView view;
};

// Null is an error. Lengths are not checked.
Read<GivenWorlds> ReadWorlds(const sap_worlds* worlds);

// Writes how the worlds of a call have ended.
void WriteOutcomes(const GivenWorlds& given, const sap_worlds* worlds);

}  // namespace sap::c
