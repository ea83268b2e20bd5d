// Outcomes of calls: an answer, or the error in its place.
#pragma once

#include <functional>
#include <tl/expected.hpp>

#include "client/cpp/derivatives.h"
#include "client/cpp/error.h"
#include "client/cpp/solution.h"

namespace sap::client {

using SolveOutcome = tl::expected<Solution, Error>;
using DerivativesOutcome = tl::expected<Derivatives, Error>;

// Takes the outcomes of a batch as they arrive, with the index of their problem.
using BatchSink = std::function<void(int index, SolveOutcome outcome)>;

// Takes the outcome of a call in the background.
template <typename Outcome>
using Done = std::function<void(Outcome outcome)>;

}  // namespace sap::client
