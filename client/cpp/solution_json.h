// A solution as JSON text: the JSON mapping of sap.v1.ContactSolution with the names of the schema.
#pragma once

#include <string>

#include "client/cpp/solution.h"

namespace sap::client {

// Every field, also empty ones and zeros.
std::string SolutionToJson(const Solution& solution);

}  // namespace sap::client
