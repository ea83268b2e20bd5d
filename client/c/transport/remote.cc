// Servers behind the C interface, by the client for C++.
#include <string>
#include <utility>
#include <vector>

#include "client/c/backend.h"
#include "client/c/transport/conversions.h"
#include "client/c/transport/remote_session.h"
#include "solver/parallel/forked_threads.h"

namespace sap::c {
namespace {

// Reads the inputs of a batch. One that cannot be read has its error in its answer, and no place
// among those that are sent.
template <typename Input, typename Read>
class ReadInputs {
 public:
  template <typename Reader>
  ReadInputs(std::span<Input const> inputs, std::span<sap_answer* const> answers,
             const Reader& reader) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      auto read = reader(inputs[i]);
      if (read) {
        values.push_back(std::move(*read));
        index.push_back(static_cast<int>(i));
      } else {
        answers[i]->content->SetError(std::move(read.error()));
        refused.push_back(static_cast<int>(i));
      }
    }
  }

  std::vector<Read> values;
  std::vector<int> index;    // of each value among the inputs
  std::vector<int> refused;  // of those that could not be read
};

tl::expected<ContactProblemView, CallError> ViewOf(const sap_problem* problem) {
  const auto read = ReadProblem(problem);
  if (!read) return Fail(read.error());
  return read->view;
}

// Puts an outcome of a batch, or its error, into its answer.
template <typename... Outcome>
void PutInto(sap_answer* answer, Outcome&&... outcome) {
  Status status = Put(std::forward<Outcome>(outcome)..., answer->content.get());
  if (!status) answer->content->SetError(std::move(status.error()));
}

class Remote final : public Backend {
 public:
  explicit Remote(client::Client client) : client_(std::move(client)) {}

  Status Info(const CallSettings& call, AnswerContent* answer) override {
    const auto info = client_.Info(CallOf(call), call.deadline);
    if (!info) return tl::unexpected(FromClient(info.error()));
    Put(*info, answer);
    return {};
  }

  Status Health(const CallSettings& call) override {
    const auto healthy = client_.Health(CallOf(call));
    if (!healthy) return tl::unexpected(FromClient(healthy.error()));
    if (!*healthy) return Fail(SAP_UNAVAILABLE, "the server takes no calls");
    return {};
  }

  Status Solve(const sap_problem* problem, const sap_options* options, const CallSettings& call,
               AnswerContent* answer) override {
    const auto view = ViewOf(problem);
    if (!view) return tl::unexpected(view.error());
    const auto own = OptionsOf(options, call);
    if (!own) return tl::unexpected(own.error());
    const int servers =
        call.servers == SAP_SERVERS_OF_ADDRESS ? client::kServersOfAddress : call.servers;
    return Put(client_.Solve(*view, *own, servers), /*warm_started=*/false, answer);
  }

  Status SolveBatch(std::span<const sap_problem* const> problems, const sap_options* options,
                    const CallSettings& call, std::span<sap_answer* const> answers,
                    const Ended& ended) override;
  Status FindIslands(const sap_problem*, AnswerContent*) override {
    return Fail(SAP_UNIMPLEMENTED, "islands are found in process: connect to \"embedded:\"");
  }
  Status Differentiate(const sap_differentiation* request, const CallSettings& call,
                       AnswerContent* answer) override {
    const auto read = ToClient(request, call);
    if (!read) return tl::unexpected(read.error());
    return Put(client_.Differentiate(read->view), read->wanted, answer);
  }
  Status DifferentiateBatch(std::span<const sap_differentiation* const> requests,
                            const double* time_budget_s, const CallSettings& call,
                            std::span<sap_answer* const> answers) override;
  tl::expected<std::unique_ptr<SessionBackend>, CallError> OpenSession(
      const sap_options* options, const CallSettings& call) override;

  bool of_this_process() const override { return generation_ == ForkGeneration(); }

 private:
  static tl::expected<client::SolveOptions, CallError> OptionsOf(const sap_options* options,
                                                                 const CallSettings& call) {
    const auto given = ReadOptions(options, SolverOptions().relative_tolerance);
    if (!given) return Fail(given.error());
    return ToClient(*given, call);
  }

  client::Client client_;
  const int generation_ = ForkGeneration();
};

Status Remote::SolveBatch(std::span<const sap_problem* const> problems, const sap_options* options,
                          const CallSettings& call, std::span<sap_answer* const> answers,
                          const Ended& ended) {
  const auto own = OptionsOf(options, call);
  if (!own) return tl::unexpected(own.error());
  const ReadInputs<const sap_problem*, ContactProblemView> read(problems, answers, ViewOf);
  if (!ended) {
    auto outcomes = client_.SolveBatch(read.values, *own);
    for (size_t i = 0; i < outcomes.size(); ++i) {
      PutInto(answers[read.index[i]], std::move(outcomes[i]), /*warm_started=*/false);
    }
    return {};
  }
  for (const int index : read.refused) ended(index);
  const auto sink = [&](int i, client::Client::SolveOutcome outcome) {
    PutInto(answers[read.index[i]], std::move(outcome), /*warm_started=*/false);
    ended(read.index[i]);
  };
  return FromClient(client_.StreamBatch(read.values, *own, sink));
}

Status Remote::DifferentiateBatch(std::span<const sap_differentiation* const> requests,
                                  const double* time_budget_s, const CallSettings& call,
                                  std::span<sap_answer* const> answers) {
  client::BatchLimits limits{.deadline = call.deadline, .call = CallOf(call)};
  if (time_budget_s != nullptr) {
    const auto budget = ReadTimeBudget(*time_budget_s, "time_budget");
    if (!budget) return Fail(budget.error());
    limits.time_budget = *budget;
  }
  CallSettings of_one = call;
  of_one.deadline.reset();
  const auto reader = [&](const sap_differentiation* request) { return ToClient(request, of_one); };
  const ReadInputs<const sap_differentiation*, ClientDifferentiation> read(requests, answers,
                                                                           reader);
  std::vector<client::DifferentiateView> views;
  for (const ClientDifferentiation& value : read.values) views.push_back(value.view);
  auto outcomes = client_.DifferentiateBatch(views, limits);
  for (size_t i = 0; i < outcomes.size(); ++i) {
    PutInto(answers[read.index[i]], std::move(outcomes[i]), read.values[i].wanted);
  }
  return {};
}

tl::expected<std::unique_ptr<SessionBackend>, CallError> Remote::OpenSession(
    const sap_options* options, const CallSettings& call) {
  const auto own = OptionsOf(options, call);
  if (!own) return tl::unexpected(own.error());
  auto session = client_.OpenSession(*own, {.reconnect_within = call.reconnect_within,
                                            .background = call.background,
                                            .opens_later = call.opens_later,
                                            .low_latency = call.low_latency});
  if (!session) return tl::unexpected(FromClient(session.error()));
  return std::make_unique<RemoteSession>(std::move(*session));
}

// The text, or the path of a file with it.
std::string TextOr(const char* text, const char* file) {
  return text != nullptr ? text : file != nullptr ? file : "";
}

}  // namespace

BackendOrError ConnectRemote(const char* address, const sap_connect_options& given,
                             const CallSettings& call) {
  const auto connect_timeout = ReadTime(given.connect_timeout_s, "connect_timeout");
  if (!connect_timeout) return Fail(connect_timeout.error());
  const auto reconnect_within = ReadTime(given.reconnect_within_s, "reconnect_within");
  if (!reconnect_within) return Fail(reconnect_within.error());
  client::ConnectOptions options;
  if (*connect_timeout) options.connect_timeout = **connect_timeout;
  if (*reconnect_within) options.reconnect_within = **reconnect_within;
  options.low_latency = given.low_latency != 0;
  options.allow_mixed_servers = given.allow_mixed_servers != 0;
  options.in_order = given.in_order != 0;
  if (given.scene_connections != 0) options.scene_connections = given.scene_connections;
  options.cancelled = call.limits.cancelled;
  options.credentials = {.tls = given.tls != 0,
                         .server_ca = TextOr(given.server_ca, given.server_ca_file),
                         .certificate = TextOr(given.certificate, given.certificate_file),
                         .key = TextOr(given.key, given.key_file),
                         .server_name = TextOr(given.server_name, nullptr),
                         .token = TextOr(given.token, nullptr),
                         .token_file = TextOr(given.token_file, nullptr)};
  auto client = client::Client::Connect(address, options);
  if (!client) return tl::unexpected(FromClient(client.error()));
  return std::make_shared<Remote>(std::move(*client));
}

bool HasTransport() { return true; }

}  // namespace sap::c
