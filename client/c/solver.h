// The calls of the C interface: structs to the engine, its answers to structs.
#pragma once

#include <atomic>
#include <memory>
#include <span>

#include "client/c/answer.h"
#include "client/c/sap_islands.h"
#include "solver/engine/engine.h"
#include "solver/engine/engine_session.h"

struct sap_stop {
  std::atomic<bool> requested{false};
};

// Sessions share the engine.
struct sap_solver {
  std::shared_ptr<sap::Engine> engine;
};

// A sequence of steps. Not thread-safe.
struct sap_session {
  explicit sap_session(std::shared_ptr<sap::Engine> engine) : session_(std::move(engine)) {}

  void Step(const sap_problem* problem, const sap_options* options, const sap_stop* stop,
            sap_answer* answer);
  void Reset() { session_.Reset(); }

 private:
  sap::EngineSession session_;
  bool stepping_{false};
};

namespace sap::c {

// Each fills the answers, with solutions or errors; none throws. Those of batches return the kind
// of what ended the batch.
void Solve(Engine* engine, const sap_problem* problem, const sap_options* options,
           const sap_stop* stop, sap_answer* answer);
int32_t SolveBatch(Engine* engine, std::span<const sap_problem* const> problems,
                   const sap_options* options, const sap_stop* stop,
                   std::span<sap_answer* const> answers);
void FindIslands(Engine* engine, const sap_problem* problem, sap_answer* answer);
void Differentiate(Engine* engine, const sap_differentiation* request, const sap_stop* stop,
                   sap_answer* answer);
int32_t DifferentiateBatch(Engine* engine, std::span<const sap_differentiation* const> requests,
                           const double* time_budget_s, const sap_stop* stop,
                           std::span<sap_answer* const> answers);

}  // namespace sap::c
