#include "client/c/sap_islands.h"

#include <algorithm>
#include <memory>
#include <span>
#include <thread>

#include "client/c/solver.h"
#include "solver/build_info.h"

namespace {

constexpr int32_t kMostThreads = 1024;

int32_t ThreadsOfProcess() {
  const unsigned threads = std::max(std::thread::hardware_concurrency(), 1U);
  return std::min(static_cast<int32_t>(threads), kMostThreads);
}

// What `make` returns, or null if memory or threads are exhausted.
template <typename Make>
auto OrNull(const Make& make) -> decltype(make().release()) {
  try {
    return make().release();
  } catch (...) {
    return nullptr;
  }
}

template <typename Value>
std::span<Value const> List(Value const* values, int64_t count) {
  return {values, static_cast<size_t>(std::max(count, int64_t{0}))};
}

}  // namespace

int32_t sap_abi_version(void) { return SAP_ABI_VERSION; }
const char* sap_version(void) { return SAP_VERSION; }
const char* sap_instruction_set(void) { return sap::InstructionSet(); }

sap_solver* sap_solver_new(int32_t threads) {
  if (threads < 0 || threads > kMostThreads) return nullptr;
  if (threads == 0) threads = ThreadsOfProcess();
  return OrNull([&] {
    auto solver = std::make_unique<sap_solver>();
    solver->engine = std::make_shared<sap::Engine>(threads);
    return solver;
  });
}

void sap_solver_free(sap_solver* solver) { delete solver; }

int32_t sap_solver_threads(const sap_solver* solver) { return solver->engine->threads(); }

sap_answer* sap_answer_new(void) {
  return OrNull([] { return std::make_unique<sap_answer>(); });
}

void sap_answer_free(sap_answer* answer) { delete answer; }

const sap_error* sap_answer_error(const sap_answer* answer) { return answer->error(); }

const sap_solution* sap_answer_solution(const sap_answer* answer) {
  return answer->solution_struct();
}

const sap_derivatives* sap_answer_derivatives(const sap_answer* answer) {
  return answer->derivatives_struct();
}

const sap_forecast* sap_answer_forecast(const sap_answer* answer) {
  return answer->forecast_struct();
}

sap_stop* sap_stop_new(void) {
  return OrNull([] { return std::make_unique<sap_stop>(); });
}

void sap_stop_free(sap_stop* stop) { delete stop; }

void sap_stop_request(sap_stop* stop) { stop->requested.store(true); }

void sap_stop_reset(sap_stop* stop) { stop->requested.store(false); }

int32_t sap_solve(sap_solver* solver, const sap_problem* problem, const sap_options* options,
                  const sap_stop* stop, sap_answer* answer) {
  sap::c::Solve(solver->engine.get(), problem, options, stop, answer);
  return answer->error()->kind;
}

int32_t sap_solve_batch(sap_solver* solver, int64_t count, const sap_problem* const* problems,
                        const sap_options* options, const sap_stop* stop,
                        sap_answer* const* answers) {
  return sap::c::SolveBatch(solver->engine.get(), List(problems, count), options, stop,
                            List(answers, count));
}

int32_t sap_find_islands(sap_solver* solver, const sap_problem* problem, sap_answer* answer) {
  sap::c::FindIslands(solver->engine.get(), problem, answer);
  return answer->error()->kind;
}

sap_session* sap_session_new(sap_solver* solver) {
  return OrNull([&] { return std::make_unique<sap_session>(solver->engine); });
}

void sap_session_free(sap_session* session) { delete session; }

int32_t sap_session_step(sap_session* session, const sap_problem* problem,
                         const sap_options* options, const sap_stop* stop, sap_answer* answer) {
  session->Step(problem, options, stop, answer);
  return answer->error()->kind;
}

void sap_session_reset(sap_session* session) { session->Reset(); }

int32_t sap_differentiate(sap_solver* solver, const sap_differentiation* request,
                          const sap_stop* stop, sap_answer* answer) {
  sap::c::Differentiate(solver->engine.get(), request, stop, answer);
  return answer->error()->kind;
}

int32_t sap_differentiate_batch(sap_solver* solver, int64_t count,
                                const sap_differentiation* const* requests,
                                const double* time_budget_s, const sap_stop* stop,
                                sap_answer* const* answers) {
  return sap::c::DifferentiateBatch(solver->engine.get(), List(requests, count), time_budget_s,
                                    stop, List(answers, count));
}
