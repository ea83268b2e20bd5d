// A solution as JSON text: the JSON mapping of sap.v1.ContactSolution with the field names of the
// schema.
#pragma once

#include <string>

#include "client/cpp/solution.h"

namespace sap::client {

// Includes empty and zero fields.
std::string SolutionToJson(const Solution& solution);

}  // namespace sap::client
