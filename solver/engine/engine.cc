#include "solver/engine/engine.h"

#include <algorithm>
#include <numeric>

#include "solver/parallel/forked_threads.h"

namespace sap {

std::vector<int> LargestFirst(const std::vector<int64_t>& sizes) {
  std::vector<int> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](int i) { return sizes[i]; });
  return order;
}

int64_t SizeOf(const ContactProblemView& problem) {
  return CountContacts(problem.contacts) +
         static_cast<int64_t>(problem.body_contacts.body_a.size() + problem.rows.entries.size());
}

Engine::Process::Process(int threads)
    : generation(ForkGeneration()), arena(threads), idle(static_cast<size_t>(threads)) {}

Engine::Engine(int threads)
    : threads_(threads), process_(std::make_unique<Process>(threads).release()) {}

// The destructor of a parent's state would wait for threads that this process does not have.
Engine::~Engine() {
  Process* const process = process_.load();
  if (process->generation == ForkGeneration()) delete process;
}

Engine::Process& Engine::Current() {
  Process* process = process_.load();
  if (process->generation == ForkGeneration()) return *process;
  // The state of the parent is left as it is: its locks may be held for ever.
  auto own = std::make_unique<Process>(threads_);
  if (process_.compare_exchange_strong(process, own.get())) return *own.release();
  return *process;
}

EngineStatus Engine::AnswerIn(Workspace* workspace, const SolveRequest& request,
                              const CallLimits& call, SolveAnswer* answer) {
  if (EngineStatus live = CheckLive(call); !live) return live;
  SolveTask& task = workspace->task;
  if (EngineStatus read = task.Read(request, kInProcessLimits, threads_); !read) return read;
  answer->check_s = SecondsSince(call.arrival);
  return Solve(workspace, request.settings.solver, call,
               {.time_budget = request.settings.time_budget}, &answer->solution,
               request.derivatives ? &answer->derivatives : nullptr);
}

EngineStatus Engine::Solve(Workspace* workspace, const SolverOptions& options,
                           const CallLimits& call, const SolveLimits& limits,
                           ContactSolution* solution, Derivatives* derivatives) {
  SolveTask& task = workspace->task;
  workspace->solver.UseArena(task.IsSmall(options) ? nullptr : &Current().arena);
  return task.Solve(&workspace->solver, options, call, limits, solution, derivatives);
}

void Engine::ForLargestFirst(const std::vector<int64_t>& sizes,
                             const std::function<void(int i)>& body) {
  const std::vector<int> order = LargestFirst(sizes);
  Current().arena.ParallelFor(static_cast<int>(order.size()), [&](int i) { body(order[i]); });
}

}  // namespace sap
