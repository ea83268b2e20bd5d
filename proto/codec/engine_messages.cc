#include "proto/codec/engine_messages.h"

#include <utility>

#include "proto/codec/derivatives_codec.h"
#include "proto/codec/problem_decoder.h"
#include "proto/codec/solution_encoder.h"

namespace sap {
namespace {

constexpr EngineLimits kLimits;

// Reads the problem of a request into the task, and returns the options.
template <typename Request>
tl::expected<SolveSettings, EngineError> ReadRequest(const Request& request, SolveTask* task) {
  if (!request.has_problem()) {
    return RefuseField("problem", "is missing; every request needs one");
  }
  auto settings = DecodeOptions(request.options(), kLimits.max_iterations);
  if (!settings) return settings;
  settings->solver.max_factor_bytes = static_cast<size_t>(kLimits.max_solve_memory_mib) << 20;
  const auto view = DecodeProblem(request.problem());
  if (!view) return tl::unexpected(view.error());
  if (const auto read = task->Read(*view, kLimits.problem); !read) {
    return tl::unexpected(read.error());
  }
  return settings;
}

}  // namespace

EngineStatus Solve(Engine* engine, const v1::SolveRequest& request, v1::SolveResponse* response) {
  const CallLimits call;
  return engine->Run([&](Workspace& workspace) -> EngineStatus {
    const auto settings = ReadRequest(request, &workspace.task);
    if (!settings) return tl::unexpected(settings.error());
    ContactSolution solution;
    EngineStatus solved = engine->Solve(&workspace, settings->solver, call,
                                        {.time_budget = settings->time_budget}, &solution);
    if (solved) EncodeSolution(solution, settings->response_mask, response->mutable_solution());
    return solved;
  });
}

EngineStatus Differentiate(Engine* engine, const v1::DifferentiateRequest& request,
                           v1::DifferentiateResponse* response) {
  const CallLimits call;
  return engine->Run([&](Workspace& workspace) -> EngineStatus {
    SolveTask& task = workspace.task;
    auto settings = ReadRequest(request, &task);
    if (!settings) return tl::unexpected(settings.error());
    if (!request.options().has_relative_tolerance()) {
      settings->solver.relative_tolerance = kDerivativeTolerance;
    }
    const auto wanted = WantedInputs::Decode(request.wanted(), request.problem());
    if (!wanted) return tl::unexpected(wanted.error());
    DerivativesRequest derivatives = DecodeDerivatives(request);
    const size_t gradients = derivatives.cotangents.size(),
                 tangents = derivatives.directions.size();
    if (EngineStatus checked = CheckNumber(gradients, tangents, kLimits); !checked) return checked;
    EngineStatus checked = CheckMemory(gradients, tangents, task.view(), kLimits);
    if (!checked) return checked;
    if (EngineStatus read = task.Read(std::move(derivatives)); !read) return read;
    ContactSolution solution;
    Derivatives computed;
    EngineStatus solved =
        engine->Solve(&workspace, settings->solver, call, {.time_budget = settings->time_budget},
                      &solution, &computed);
    if (!solved) return solved;
    EncodeSolution(solution, settings->response_mask, response->mutable_solution());
    EncodeDerivatives(task.view(), task.problem(), *wanted, &computed, response);
    return {};
  });
}

}  // namespace sap
