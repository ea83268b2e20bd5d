// The arrays of a problem as the solver takes them.
#pragma once

#include "client/cpp/problem.h"

namespace sap::client {

// The problem must outlive the view.
ContactProblemView ViewOf(const Problem& problem);

}  // namespace sap::client
