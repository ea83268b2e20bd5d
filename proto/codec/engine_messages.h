// Calls of the engine in messages, for requests that are read from files.
#pragma once

#include "sap/v1/solver_service.pb.h"
#include "solver/engine/engine.h"

namespace sap {

// Without limits of a server, and without deadline.
EngineStatus Solve(Engine* engine, const v1::SolveRequest& request, v1::SolveResponse* response);
EngineStatus Differentiate(Engine* engine, const v1::DifferentiateRequest& request,
                           v1::DifferentiateResponse* response);

}  // namespace sap
