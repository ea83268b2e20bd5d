// The calls of a client of the C interface: structs to a backend of client/cpp, its outcomes to
// answers.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <tl/expected.hpp>

#include "client/c/answer.h"
#include "client/c/call.h"
#include "client/c/sap_islands.h"
#include "client/c/sap_islands_worlds.h"
#include "client/cpp/backend/backend.h"
#include "solver/parallel/forked_threads.h"
#include "solver/problem/solver_options.h"

namespace sap::c {

// Thread-safe. Each call fills its answers unless it returns an error, and may throw
// std::bad_alloc.
class Connection {
 public:
  // Called when the answer of a problem of a batch is complete, one at a time.
  using Ended = std::function<void(int index)>;
  using Problems = std::span<const sap_problem* const>;
  using Answers = std::span<sap_answer* const>;

  explicit Connection(std::unique_ptr<client::Backend> backend) : backend_(std::move(backend)) {}

  Status Info(const CallSettings& call, AnswerContent* answer);
  Status Health(const CallSettings& call);
  Status Solve(const sap_problem* problem, const sap_options* options, const CallSettings& call,
               AnswerContent* answer);
  // The lists have one length. Fills each answer, with an error of its own where it has one. An
  // error that is returned is that of all answers.
  Status SolveBatch(Problems problems, const sap_options* options, const CallSettings& call,
                    Answers answers);
  Status StreamBatch(Problems problems, const sap_options* options, const CallSettings& call,
                     Answers answers, const Ended& ended);
  Status FindIslands(const sap_problem* problem, AnswerContent* answer);
  Status Differentiate(const sap_differentiation* request, const CallSettings& call,
                       AnswerContent* answer);
  Status DifferentiateBatch(std::span<const sap_differentiation* const> requests,
                            const double* time_budget_s, const CallSettings& call, Answers answers);
  Status Advance(const sap_worlds* worlds, const CallSettings& call);
  tl::expected<client::Session, Error> OpenSession(const sap_options* options,
                                                   const CallSettings& call);

  // With the rules of those who answer.
  tl::expected<client::SolveOptions, Error> Read(const sap_options* options) const;

  // False in a child of fork() that can neither use it nor free it.
  bool of_this_process() const { return backend_->in_process() || generation_ == ForkGeneration(); }

 private:
  Status Check(const client::SolveOptions& options) const;

  const std::unique_ptr<client::Backend> backend_;
  const int generation_{ForkGeneration()};
};

}  // namespace sap::c
