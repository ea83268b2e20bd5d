#include <list>
#include <utility>

#include "client/c/sap_islands.h"
#include "client/cpp/transport/message_conversion.h"
#include "tests/client/c/c_objects.h"
#include "tests/client/c/c_structs.h"
#include "tests/e2e/clients/tested_client.h"

namespace sap::test {
namespace {

using client::Error;
using client::Problem;

double Seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

Error ErrorIn(const Answer& answer) {
  const sap_error& error = answer.error();
  return {.code = client::FromCode(error.kind),
          .message = error.message,
          .field = error.field,
          .reason = error.reason,
          .request_id = error.request_id,
          .server = error.server,
          .lost_attempts = error.lost_attempts};
}

Outcome OutcomeIn(const Answer& answer) {
  if (answer.solution() == nullptr) return tl::unexpected(ErrorIn(answer));
  v1::ContactSolution message = MessageOf(*answer.solution());
  const sap_doubles& times = answer.solution()->islands->solve_time_s;
  message.mutable_islands()->mutable_solve_time_s()->Add(times.data, times.data + times.length);
  return client::FromMessage(message);
}

tl::expected<void, Error> DoneIn(const Answer& answer) {
  if (answer.error().kind != SAP_OK) return tl::unexpected(ErrorIn(answer));
  return {};
}

// Problems as structs, with what these point to, and an answer for each.
class Structs {
 public:
  explicit Structs(std::span<const Problem> problems) : answers_(problems.size()) {
    for (const Problem& problem : problems) {
      client::ToMessage(problem, &messages_.emplace_back());
      problems_.push_back(structs_.emplace_back(messages_.back()).get());
    }
    for (const Answer& answer : answers_) answer_list_.push_back(answer.get());
  }

  const sap_problem* problem() const { return problems_.front(); }
  const Answer& answer() const { return answers_.front(); }

  int64_t count() const { return static_cast<int64_t>(problems_.size()); }
  const sap_problem* const* problems() const { return problems_.data(); }
  sap_answer* const* answers() const { return answer_list_.data(); }
  Outcome OutcomeOf(int64_t index) const { return OutcomeIn(answers_[index]); }

 private:
  std::list<v1::ContactProblem> messages_;
  std::list<CProblem> structs_;
  std::vector<const sap_problem*> problems_;
  std::vector<Answer> answers_;
  std::vector<sap_answer*> answer_list_;
};

class CSession final : public TestedSession {
 public:
  explicit CSession(sap_session* session) : session_(session) {}

  Outcome Step(const Problem& problem) override {
    const Structs step({&problem, 1});
    sap_session_step(session_.get(), step.problem(), nullptr, nullptr, step.answer().get());
    return step.OutcomeOf(0);
  }
  tl::expected<void, Error> Send(const Problem& problem) override {
    const Structs step({&problem, 1});
    sap_session_send(session_.get(), step.problem(), nullptr, nullptr, step.answer().get());
    return DoneIn(step.answer());
  }
  tl::expected<client::StepOutcome, Error> Receive() override {
    const Answer answer;
    sap_session_take(session_.get(), nullptr, answer.get());
    const uint64_t step_id = sap_answer_step_id(answer.get());
    if (step_id == 0) return tl::unexpected(ErrorIn(answer));
    const bool warm = answer.solution() != nullptr && answer.solution()->warm_started != 0;
    return client::StepOutcome{step_id, warm, OutcomeIn(answer)};
  }
  tl::expected<void, Error> Close() override {
    const Answer answer;
    sap_session_close(session_.get(), nullptr, answer.get());
    return DoneIn(answer);
  }

 private:
  Owned<sap_session, sap_session_free> session_;
};

class CClient final : public TestedClient {
 public:
  CClient(sap_client* client, std::optional<std::chrono::nanoseconds> deadline)
      : client_(client), deadline_s_(deadline ? Seconds(*deadline) : 0) {
    call_.struct_size = sizeof call_;
    if (deadline) call_.deadline_s = &deadline_s_;
  }

  Outcome Solve(const Problem& problem) override {
    const Structs call({&problem, 1});
    sap_solve(client_.get(), call.problem(), nullptr, &call_, call.answer().get());
    return call.OutcomeOf(0);
  }
  std::vector<Outcome> SolveBatch(std::span<const Problem> problems) override {
    const Structs call(problems);
    sap_solve_batch(client_.get(), call.count(), call.problems(), nullptr, &call_, call.answers());
    std::vector<Outcome> outcomes;
    for (int64_t i = 0; i < call.count(); ++i) outcomes.push_back(call.OutcomeOf(i));
    return outcomes;
  }
  tl::expected<void, Error> StreamBatch(std::span<const Problem> problems,
                                        const client::Client::BatchSink& sink) override {
    const Structs call(problems);
    sap_batch* begun = nullptr;
    sap_batch_begin(client_.get(), call.count(), call.problems(), nullptr, &call_, call.answers(),
                    &begun);
    const Owned<sap_batch, sap_batch_free> batch(begun);
    if (batch == nullptr) return DoneIn(call.answer());
    for (int64_t i; (i = sap_batch_next(batch.get(), nullptr)) >= 0;) {
      sink(static_cast<int>(i), call.OutcomeOf(i));
    }
    return {};
  }
  tl::expected<std::unique_ptr<TestedSession>, Error> OpenSession() override {
    sap_session* session = nullptr;
    const Answer answer;
    sap_session_open(client_.get(), nullptr, &call_, &session, answer.get());
    if (session == nullptr) return tl::unexpected(ErrorIn(answer));
    return std::make_unique<CSession>(session);
  }

 private:
  Owned<sap_client, sap_client_free> client_;
  double deadline_s_;
  sap_call call_{};
};

}  // namespace

Connected ConnectC(const std::string& address, const client::ConnectOptions& options,
                   std::optional<std::chrono::nanoseconds> deadline) {
  const client::Credentials& given = options.credentials;
  const double connect_timeout_s = Seconds(options.connect_timeout);
  const double reconnect_within_s = Seconds(options.reconnect_within);
  const auto text = [](const std::string& value) {
    return value.empty() ? nullptr : value.c_str();
  };
  sap_connect_options settings{};
  settings.struct_size = sizeof settings;
  settings.connect_timeout_s = &connect_timeout_s;
  settings.reconnect_within_s = &reconnect_within_s;
  settings.tls = given.tls;
  settings.server_ca_file = text(given.server_ca);
  settings.server_name = text(given.server_name);
  settings.token = text(given.token);
  settings.token_file = text(given.token_file);
  sap_client* client = nullptr;
  const Answer answer;
  sap_connect(address.c_str(), &settings, nullptr, &client, answer.get());
  if (client == nullptr) return tl::unexpected(ErrorIn(answer));
  return std::make_unique<CClient>(client, deadline);
}

}  // namespace sap::test
