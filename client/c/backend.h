// Where the calls of a client are answered: by the engine in this process, or by servers.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <tl/expected.hpp>

#include "client/c/answer.h"
#include "client/c/call.h"
#include "client/c/sap_islands.h"

namespace sap::c {

// Not thread-safe. Each function fills the answer unless it returns an error. May throw
// std::bad_alloc, as those of a backend may.
class SessionBackend {
 public:
  virtual ~SessionBackend() = default;

  virtual Status Step(const sap_problem* problem, const sap_options* options,
                      const CallSettings& call, AnswerContent* answer) = 0;
  // Sets the number of the step alone.
  virtual Status Send(const sap_problem* problem, const sap_options* options,
                      const CallSettings& call, AnswerContent* answer) = 0;
  virtual bool AwaitOpen(const Wait& wait) = 0;
  virtual bool AwaitOutcome(const Wait& wait) = 0;
  virtual bool AwaitRoom(const Wait& wait) = 0;
  // May replace the content.
  virtual Status Take(const CallSettings& call, std::unique_ptr<AnswerContent>* answer) = 0;
  virtual Status Notify(sap_callback changed, void* context) = 0;
  virtual Status Withdraw(uint64_t step_id) = 0;
  virtual Status Reset() = 0;
  virtual Status Close(const CallSettings& call) = 0;
  virtual int in_flight() const = 0;
  virtual bool draining() const = 0;
  virtual bool open() const = 0;
};

// Thread-safe.
class Backend {
 public:
  // Called when the answer of a problem of a batch is complete; several at a time.
  using Ended = std::function<void(int index)>;

  virtual ~Backend() = default;

  virtual Status Info(const CallSettings& call, AnswerContent* answer) = 0;
  virtual Status Health(const CallSettings& call) = 0;
  virtual Status Solve(const sap_problem* problem, const sap_options* options,
                       const CallSettings& call, AnswerContent* answer) = 0;
  // The lists have one length. Fills each answer, with an error of its own where it has one. An
  // error that is returned is that of all answers.
  virtual Status SolveBatch(std::span<const sap_problem* const> problems,
                            const sap_options* options, const CallSettings& call,
                            std::span<sap_answer* const> answers, const Ended& ended) = 0;
  virtual Status FindIslands(const sap_problem* problem, AnswerContent* answer) = 0;
  virtual Status Differentiate(const sap_differentiation* request, const CallSettings& call,
                               AnswerContent* answer) = 0;
  virtual Status DifferentiateBatch(std::span<const sap_differentiation* const> requests,
                                    const double* time_budget_s, const CallSettings& call,
                                    std::span<sap_answer* const> answers) = 0;
  // In the background: it is served by a thread of the library.
  virtual tl::expected<std::unique_ptr<SessionBackend>, CallError> OpenSession(
      const sap_options* options, const CallSettings& call) = 0;

  // False in a child of fork() that can neither use it nor free it.
  virtual bool of_this_process() const { return true; }
};

using BackendOrError = tl::expected<std::shared_ptr<Backend>, CallError>;

// The engine in this process; 0 threads: all that the process may use.
BackendOrError ConnectInProcess(int threads);

// Servers. Of the two definitions, transport/ has that of libsap_islands_client, no_transport.cc
// that of libsap_islands.
BackendOrError ConnectRemote(const char* address, const sap_connect_options& given,
                             const CallSettings& call);
bool HasTransport();

}  // namespace sap::c
