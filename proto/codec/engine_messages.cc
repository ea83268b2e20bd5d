#include "proto/codec/engine_messages.h"

#include <optional>
#include <utility>

#include "proto/codec/derivatives_codec.h"
#include "proto/codec/problem_decoder.h"
#include "proto/codec/solution_encoder.h"

namespace sap {
namespace {

// Decodes the request, answers it and passes the answer on, as Engine::Answer does.
template <typename Request, typename Finish>
EngineStatus Answer(Engine* engine, const Request& request, double default_tolerance,
                    std::optional<DerivativesRequest> derivatives, const Finish& finish) {
  if (!request.has_problem()) {
    return RefuseField("problem", "is missing; every request needs one");
  }
  const auto settings = DecodeOptions(request.options(), kInProcessLimits, default_tolerance);
  if (!settings) return tl::unexpected(settings.error());
  const auto view = DecodeProblem(request.problem());
  if (!view) return tl::unexpected(view.error());
  return engine->Answer(
      {*view, *settings, std::move(derivatives)}, CallLimits(),
      [&](const SolveTask& task, SolveAnswer& answer) { finish(task, settings->mask, answer); });
}

}  // namespace

EngineStatus Solve(Engine* engine, const v1::SolveRequest& request, v1::SolveResponse* response) {
  return Answer(engine, request, SolverOptions().relative_tolerance, std::nullopt,
                [&](const SolveTask&, const SolutionMask& mask, const SolveAnswer& answer) {
                  EncodeSolution(answer.solution, mask, response->mutable_solution());
                });
}

EngineStatus Differentiate(Engine* engine, const v1::DifferentiateRequest& request,
                           v1::DifferentiateResponse* response) {
  return Answer(engine, request, kDerivativeTolerance, DecodeDerivatives(request),
                [&](const SolveTask& task, const SolutionMask& mask, SolveAnswer& answer) {
                  EncodeSolution(answer.solution, mask, response->mutable_solution());
                  EncodeDerivatives(task, &answer.derivatives, response);
                });
}

}  // namespace sap
