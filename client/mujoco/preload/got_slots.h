// Redirects calls between libraries that are loaded already.
#pragma once

#include <span>

namespace sap::mujoco {

struct NamedFunction {
  const char* name;
  void* function;
};

// Writes the functions to the slots through which all other loaded objects call functions of these
// names. False if memory cannot be made writable.
bool WriteSlots(std::span<const NamedFunction> functions);

}  // namespace sap::mujoco
