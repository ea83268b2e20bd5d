#include "client/c/sap_islands.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "client/c/background.h"
#include "client/c/batch.h"
#include "client/c/connection.h"
#include "client/c/files.h"
#include "client/c/run_call.h"
#include "client/c/sap_islands_worlds.h"
#include "client/c/session.h"
#include "client/c/struct_reader.h"
#include "client/cpp/backend/backend.h"
#include "solver/build_info.h"

struct sap_client {
  std::shared_ptr<sap::c::Connection> connection;
};

namespace {

using sap::c::CallSettings;
using sap::c::ContentOf;
using sap::c::Fail;
using sap::c::Finish;
using sap::c::Status;

using Answers = std::span<sap_answer* const>;

// Returns the result of `make`, or null if memory or threads are exhausted.
template <typename Make>
auto OrNull(const Make& make) noexcept -> decltype(make().release()) {
  try {
    return make().release();
  } catch (...) {
    return nullptr;
  }
}

sap::c::Wait WaitOf(const double* wait_s) {
  constexpr double kLongest_s = 366 * 86'400;
  if (wait_s == nullptr || !(*wait_s < kLongest_s)) return std::nullopt;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::max(*wait_s, 0.0)));
}

sap::client::WaitLimit Until(const double* wait_s) {
  sap::client::WaitLimit limit;
  if (const auto wait = WaitOf(wait_s)) limit.until = sap::c::Clock::now() + *wait;
  return limit;
}

// Runs `work(call)` in the background.
template <typename Work>
Status Begin(const CallSettings& call, Answers answers, const Work& work) {
  const std::vector<sap_answer*> own(answers.begin(), answers.end());
  const auto background = std::make_shared<sap::c::BackgroundCall>();
  for (sap_answer* answer : own) answer->SetBackgroundCall(background);
  const auto task = [call, own, background, work] {
    const int32_t kind = Finish([&] { return work(call); }, own);
    if (call.kind != nullptr) *call.kind = kind;
    background->End(call.done, call.context);
  };
  try {
    sap::c::RunInBackground(task);
  } catch (...) {
    for (sap_answer* answer : own) answer->SetBackgroundCall(nullptr);
    return Fail(SAP_RESOURCE_EXHAUSTED, "no thread or no memory for a call in the background");
  }
  return {};
}

// Where a call may run.
enum class Where : uint8_t { kAnywhere, kHere, kHereWithBackground };

// Runs `work(call)`, or begins it in the background.
template <typename Work>
int32_t Run(const sap_call* given, Answers answers, Where where, const Work& work) noexcept {
  const auto run = [&]() -> Status {
    const auto call = sap::c::ReadCall(given);
    if (!call) return tl::unexpected(call.error());
    if (!call->session.background || where == Where::kHereWithBackground) return work(*call);
    if (where == Where::kAnywhere) return Begin(*call, answers, work);
    return Fail(SAP_INVALID_ARGUMENT, "call.background must be 0 for this function",
                "call.background");
  };
  return sap::c::RunHere(answers, run);
}

using ConnectionPointer = std::shared_ptr<sap::c::Connection>;
const ConnectionPointer& ConnectionOf(const sap_client& client) { return client.connection; }
const ConnectionPointer& ConnectionOf(const sap_session& session) { return session.client; }

// Runs `work(connection, call)` on a client or a session. A client may be freed meanwhile.
template <typename Object, typename Work>
int32_t RunOn(Object* object, const sap_call* given, Answers answers, const Work& work,
              Where where = Where::kAnywhere) noexcept {
  for (sap_answer* answer : answers) {
    if (answer == nullptr) return SAP_INVALID_ARGUMENT;
  }
  const auto refused = [&](int32_t kind, const char* message) {
    return Run(nullptr, answers, Where::kHere,
               [&](const CallSettings&) { return Status(Fail(kind, message)); });
  };
  if (object == nullptr) return refused(SAP_INVALID_ARGUMENT, "the client or session is NULL");
  const ConnectionPointer connection = ConnectionOf(*object);
  if (!connection->of_this_process()) {
    return refused(SAP_FAILED_PRECONDITION,
                   "the client was opened before fork(); a child can use clients of \"embedded:\" "
                   "only: start processes by spawn, or connect in the child alone");
  }
  return Run(given, answers, where,
             [connection, work](const CallSettings& call) { return work(connection, call); });
}

template <typename Work>
int32_t RunBatch(sap_client* client, int64_t count, const void* const* inputs, const char* field,
                 const sap_call* call, sap_answer* const* answers, const Work& work,
                 Where where = Where::kAnywhere) noexcept {
  if (answers == nullptr && count != 0) return SAP_INVALID_ARGUMENT;
  const Answers list(answers, static_cast<size_t>(std::max(count, int64_t{0})));
  return RunOn(
      client, call, list,
      [=](const ConnectionPointer& connection, const CallSettings& settings) -> Status {
        if (Status valid = sap::c::CheckBatch(count, inputs, field, answers); !valid) return valid;
        return work(connection, settings, list);
      },
      where);
}

template <typename Value>
std::span<Value const> List(Value const* values, int64_t count) {
  return {values, static_cast<size_t>(count)};
}

// A call of a session while no other is in it.
template <typename Work>
int32_t RunStep(sap_session* session, const sap_call* call, sap_answer* answer, const Work& work,
                Where where = Where::kAnywhere) noexcept {
  return RunOn(
      session, call, Answers(&answer, 1),
      [=](const ConnectionPointer&, const CallSettings& settings) -> Status {
        if (settings.has_deadline()) {
          return Fail(SAP_INVALID_ARGUMENT,
                      "call.deadline is that of the session; give a step a time budget",
                      "call.deadline");
        }
        return session->Run([&] { return work(settings); });
      },
      where);
}

}  // namespace

int32_t sap_abi_version(void) { return SAP_ABI_VERSION; }
const char* sap_version(void) { return SAP_VERSION; }
const char* sap_instruction_set(void) { return sap::InstructionSet(); }
int32_t sap_has_transport(void) { return sap::c::HasTransport(); }

sap_answer* sap_answer_new(void) {
  return OrNull([] { return std::make_unique<sap_answer>(); });
}

void sap_answer_free(sap_answer* answer) { delete answer; }

int32_t sap_answer_await(const sap_answer* answer, const double* wait_s) {
  if (answer == nullptr) return 1;
  const auto call = answer->background_call();
  return call == nullptr || call->Await(WaitOf(wait_s));
}

const sap_error* sap_answer_error(const sap_answer* answer) { return ContentOf(answer).error(); }

const sap_solution* sap_answer_solution(const sap_answer* answer) {
  return ContentOf(answer).solution_struct();
}

const sap_derivatives* sap_answer_derivatives(const sap_answer* answer) {
  return ContentOf(answer).derivatives_struct();
}

const sap_forecast* sap_answer_forecast(const sap_answer* answer) {
  return ContentOf(answer).forecast_struct();
}

const sap_server_info* sap_answer_info(const sap_answer* answer) {
  return ContentOf(answer).info_struct();
}

uint64_t sap_answer_step_id(const sap_answer* answer) { return ContentOf(answer).step_id(); }

sap_stop* sap_stop_new(void) {
  return OrNull([] { return std::make_unique<sap_stop>(); });
}

void sap_stop_free(sap_stop* stop) { delete stop; }

void sap_stop_request(sap_stop* stop) {
  if (stop != nullptr) stop->requested.store(true);
}

void sap_stop_reset(sap_stop* stop) {
  if (stop != nullptr) stop->requested.store(false);
}

void sap_notify_eventfd(void* context) {
  eventfd_write(static_cast<int>(reinterpret_cast<intptr_t>(context)), 1);
}

void sap_notify_event(void* context) {
  const sap_event event = *static_cast<const sap_event*>(context);
  std::atomic_ref(*event.flag).store(1, std::memory_order_release);
  eventfd_write(event.eventfd, 1);
}

int32_t sap_connect(const char* address, const sap_connect_options* options, const sap_call* call,
                    sap_client** client, sap_answer* answer) {
  if (answer == nullptr || client == nullptr) return SAP_INVALID_ARGUMENT;
  *client = nullptr;
  return Run(call, Answers(&answer, 1), Where::kAnywhere,
             [=](const CallSettings& settings) -> Status {
               if (address == nullptr)
                 return Fail(SAP_INVALID_ARGUMENT, "address is NULL", "address");
               auto given = sap::c::ReadConnectOptions(options);
               if (!given) return Fail(given.error());
               given->cancelled = settings.options.cancelled;
               auto backend = sap::client::Connect(address, *given);
               if (!backend) return tl::unexpected(std::move(backend.error()));
               auto made = std::make_unique<sap_client>();
               made->connection = std::make_shared<sap::c::Connection>(std::move(*backend));
               *client = made.release();
               return {};
             });
}

void sap_client_free(sap_client* client) {
  if (client != nullptr && client->connection->of_this_process()) delete client;
}

int32_t sap_info(sap_client* client, const sap_call* call, sap_answer* answer) {
  return RunOn(client, call, Answers(&answer, 1),
               [=](const auto& connection, const auto& settings) {
                 return connection->Info(settings, answer->content.get());
               });
}

int32_t sap_health(sap_client* client, const sap_call* call, sap_answer* answer) {
  return RunOn(
      client, call, Answers(&answer, 1),
      [=](const auto& connection, const auto& settings) { return connection->Health(settings); });
}

int32_t sap_solve(sap_client* client, const sap_problem* problem, const sap_options* options,
                  const sap_call* call, sap_answer* answer) {
  return RunOn(client, call, Answers(&answer, 1),
               [=](const auto& connection, const auto& settings) {
                 return connection->Solve(problem, options, settings, answer->content.get());
               });
}

int32_t sap_solve_batch(sap_client* client, int64_t count, const sap_problem* const* problems,
                        const sap_options* options, const sap_call* call,
                        sap_answer* const* answers) {
  const auto* inputs = reinterpret_cast<const void* const*>(problems);
  return RunBatch(client, count, inputs, "problems", call, answers,
                  [=](const auto& connection, const CallSettings& settings, Answers list) {
                    return connection->SolveBatch(List(problems, count), options, settings, list);
                  });
}

int32_t sap_batch_begin(sap_client* client, int64_t count, const sap_problem* const* problems,
                        const sap_options* options, const sap_call* call,
                        sap_answer* const* answers, sap_batch** batch) {
  if (batch == nullptr) return SAP_INVALID_ARGUMENT;
  *batch = nullptr;
  const auto* inputs = reinterpret_cast<const void* const*>(problems);
  const auto begin = [=](const auto& connection, const auto& settings, Answers list) -> Status {
    if (settings.options.cancelled != nullptr) {
      return Fail(SAP_INVALID_ARGUMENT, "call.stop must be NULL: sap_batch_free ends a batch",
                  "call.stop");
    }
    auto begun = std::make_unique<sap_batch>();
    begun->running = std::make_shared<sap::c::RunningBatch>(connection, List(problems, count),
                                                            options, settings, list);
    sap::c::RunInBackground([running = begun->running] { running->Run(); });
    *batch = begun.release();
    return {};
  };
  return RunBatch(client, count, inputs, "problems", call, answers, begin, Where::kHere);
}

int64_t sap_batch_next(sap_batch* batch, const double* wait_s) {
  if (batch == nullptr || !batch->running->of_this_process()) return SAP_BATCH_ENDED;
  return batch->running->Next(WaitOf(wait_s));
}

void sap_batch_free(sap_batch* batch) {
  if (batch == nullptr || !batch->running->of_this_process()) return;
  batch->running->Cancel();
  delete batch;
}

int32_t sap_find_islands(sap_client* client, const sap_problem* problem, sap_answer* answer) {
  return RunOn(client, nullptr, Answers(&answer, 1), [=](const auto& connection, const auto&) {
    return connection->FindIslands(problem, answer->content.get());
  });
}

int32_t sap_differentiate(sap_client* client, const sap_differentiation* request,
                          const sap_call* call, sap_answer* answer) {
  return RunOn(client, call, Answers(&answer, 1),
               [=](const auto& connection, const auto& settings) {
                 return connection->Differentiate(request, settings, answer->content.get());
               });
}

int32_t sap_differentiate_batch(sap_client* client, int64_t count,
                                const sap_differentiation* const* requests,
                                const double* time_budget_s, const sap_call* call,
                                sap_answer* const* answers) {
  const auto* inputs = reinterpret_cast<const void* const*>(requests);
  return RunBatch(client, count, inputs, "requests", call, answers,
                  [=](const auto& connection, const CallSettings& settings, Answers list) {
                    return connection->DifferentiateBatch(List(requests, count), time_budget_s,
                                                          settings, list);
                  });
}

int32_t sap_worlds_advance(sap_client* client, const sap_worlds* worlds, const sap_call* call,
                           sap_answer* answer) {
  return RunOn(client, call, Answers(&answer, 1),
               [=](const auto& connection, const auto& settings) {
                 return connection->Advance(worlds, settings);
               });
}

int32_t sap_session_open(sap_client* client, const sap_options* options, const sap_call* call,
                         sap_session** session, sap_answer* answer) {
  if (session == nullptr) return SAP_INVALID_ARGUMENT;
  *session = nullptr;
  const auto open = [=](const auto& connection, const CallSettings& settings) -> Status {
    auto opened = connection->OpenSession(options, settings);
    if (!opened) return tl::unexpected(std::move(opened.error()));
    *session = std::make_unique<sap_session>(connection, std::move(*opened)).release();
    return {};
  };
  return RunOn(client, call, Answers(&answer, 1), open, Where::kHereWithBackground);
}

void sap_session_free(sap_session* session) {
  if (session != nullptr && session->client->of_this_process()) delete session;
}

int32_t sap_session_step(sap_session* session, const sap_problem* problem,
                         const sap_options* options, const sap_call* call, sap_answer* answer) {
  return RunStep(session, call, answer, [=](const CallSettings& settings) {
    return session->Step(problem, options, settings, answer->content.get());
  });
}

int32_t sap_session_send(sap_session* session, const sap_problem* problem,
                         const sap_options* options, const sap_call* call, sap_answer* answer) {
  return RunStep(session, call, answer, [=](const CallSettings& settings) {
    return session->Send(problem, options, settings, answer->content.get());
  });
}

int32_t sap_session_await_open(sap_session* session, const double* wait_s) {
  return session == nullptr || session->steps.AwaitOpen(Until(wait_s));
}

int32_t sap_session_await_outcome(sap_session* session, const double* wait_s) {
  return session == nullptr || session->steps.AwaitOutcome(Until(wait_s));
}

int32_t sap_session_await_room(sap_session* session, const double* wait_s) {
  return session == nullptr || session->steps.AwaitRoom(Until(wait_s));
}

int32_t sap_session_take(sap_session* session, const sap_call* call, sap_answer* answer) {
  return RunStep(
      session, call, answer,
      [=](const CallSettings& settings) { return session->Take(settings, answer->content.get()); },
      Where::kHere);
}

int32_t sap_session_notify(sap_session* session, sap_callback changed, void* context,
                           sap_answer* answer) {
  return RunStep(session, nullptr, answer, [=](const CallSettings&) -> Status {
    session->steps.Notify(changed == nullptr ? std::function<void()>() : [=] { changed(context); });
    return {};
  });
}

int32_t sap_session_withdraw(sap_session* session, uint64_t step_id, sap_answer* answer) {
  return RunStep(session, nullptr, answer,
                 [=](const CallSettings&) { return session->steps.Withdraw(step_id); });
}

int32_t sap_session_reset(sap_session* session, sap_answer* answer) {
  return RunStep(session, nullptr, answer,
                 [=](const CallSettings&) { return session->steps.Reset(); });
}

int32_t sap_session_close(sap_session* session, const sap_call* call, sap_answer* answer) {
  return RunStep(session, call, answer,
                 [=](const CallSettings&) { return session->steps.Close(); });
}

int32_t sap_session_in_flight(const sap_session* session) {
  return session == nullptr ? 0 : session->steps.in_flight();
}

int32_t sap_session_draining(const sap_session* session) {
  return session != nullptr && session->steps.draining();
}

int32_t sap_session_is_open(const sap_session* session) {
  return session != nullptr && session->steps.open();
}
