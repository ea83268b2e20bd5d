#include "client/c/connection.h"

#include <utility>
#include <vector>

#include "client/c/struct_reader.h"
#include "client/c/worlds.h"

namespace sap::c {
namespace {

using client::DerivativesOutcome;
using client::Done;
using client::Outcomes;
using client::SolveOutcome;
using client::Where;

// Only steps of sessions start from velocities of earlier ones.
constexpr bool kNotWarmStarted = false;

// The inputs of a batch. One that cannot be read has its error in its answer, and no place among
// those that are solved.
template <typename Value>
class Inputs {
 public:
  template <typename Given, typename Reader>
  Inputs(std::span<Given const> given, std::span<sap_answer* const> answers, const Reader& reader) {
    for (size_t i = 0; i < given.size(); ++i) {
      auto read = reader(given[i]);
      if (read) {
        values.push_back(std::move(*read));
        index.push_back(static_cast<int>(i));
      } else {
        answers[i]->content->SetError(std::move(read.error()));
        refused.push_back(static_cast<int>(i));
      }
    }
  }

  std::vector<Value> values;
  std::vector<int> index;    // of each value among the inputs
  std::vector<int> refused;  // indices of the inputs that could not be read
};

tl::expected<ContactProblemView, Error> ViewOf(const sap_problem* problem) {
  const auto read = ReadProblem(problem);
  if (!read) return Fail(read.error());
  return read->view;
}

Status Put(DerivativesOutcome&& outcome, const InputSelection& wanted, AnswerContent* content) {
  if (!outcome) return tl::unexpected(std::move(outcome.error()));
  content->SetDerivatives(*std::move(outcome), wanted);
  return {};
}

// Puts an outcome of a batch, or its error, into its answer.
template <typename Outcome, typename How>
void PutInto(sap_answer* answer, Outcome&& outcome, const How& how) {
  Status status = Put(std::forward<Outcome>(outcome), how, answer->content.get());
  if (!status) answer->content->SetError(std::move(status.error()));
}

}  // namespace

Status Connection::Check(const client::SolveOptions& options) const {
  if (backend_->in_process()) return {};
  if (options.solver.max_factor_bytes == SolverOptions().max_factor_bytes) return {};
  return Fail(SAP_INVALID_ARGUMENT,
              "options.max_memory_bytes is for solves in this process; a server has its own",
              "options.max_memory_bytes");
}

tl::expected<client::SolveOptions, Error> Connection::Read(const sap_options* options) const {
  auto read = ReadOptions(options);
  if (!read) return Fail(read.error());
  if (Status allowed = Check(*read); !allowed) return tl::unexpected(std::move(allowed.error()));
  return *std::move(read);
}

Status Connection::Info(const CallSettings& call, AnswerContent* answer) {
  auto info = client::InfoOf(backend_.get(), call.options, call.left());
  if (!info) return tl::unexpected(std::move(info.error()));
  answer->SetInfo(*std::move(info));
  return {};
}

Status Connection::Health(const CallSettings& call) {
  using Outcome = tl::expected<bool, Error>;
  const auto healthy = client::Await<Outcome>([&](Where where, Done<Outcome> done) {
    backend_->Health(call.options, where, std::move(done));
  });
  if (!healthy) return tl::unexpected(healthy.error());
  if (!*healthy) return Fail(SAP_UNAVAILABLE, "the server takes no calls");
  return {};
}

Status Connection::Solve(const sap_problem* problem, const sap_options* options,
                         const CallSettings& call, AnswerContent* answer) {
  auto own = Read(options);
  if (!own) return tl::unexpected(std::move(own.error()));
  const auto view = ViewOf(problem);
  if (!view) return tl::unexpected(view.error());
  own->call = call.options;
  auto outcome = client::Await<SolveOutcome>([&](Where where, Done<SolveOutcome> done) {
    backend_->SolveDivided(*view, *own, call.servers, call.left(), where, std::move(done));
  });
  return Put(std::move(outcome), kNotWarmStarted, answer);
}

Status Connection::SolveBatch(Problems problems, const sap_options* options,
                              const CallSettings& call, Answers answers) {
  auto own = Read(options);
  if (!own) return tl::unexpected(std::move(own.error()));
  own->call = call.options;
  const Inputs<ContactProblemView> read(problems, answers, ViewOf);
  using Batch = Outcomes<SolveOutcome>;
  auto outcomes = client::Await<Batch>([&](Where where, Done<Batch> done) {
    backend_->SolveBatch(read.values, *own, call.left(), where, std::move(done));
  });
  if (!outcomes) return tl::unexpected(std::move(outcomes.error()));
  for (size_t i = 0; i < outcomes->size(); ++i) {
    PutInto(answers[read.index[i]], std::move((*outcomes)[i]), kNotWarmStarted);
  }
  return {};
}

Status Connection::StreamBatch(Problems problems, const sap_options* options,
                               const CallSettings& call, Answers answers, const Ended& ended) {
  auto own = Read(options);
  if (!own) return tl::unexpected(std::move(own.error()));
  own->call = call.options;
  const Inputs<ContactProblemView> read(problems, answers, ViewOf);
  for (const int index : read.refused) ended(index);
  const auto sink = [&](int i, SolveOutcome outcome) {
    PutInto(answers[read.index[i]], std::move(outcome), kNotWarmStarted);
    ended(read.index[i]);
  };
  return client::Await<Status>([&](Where where, Done<Status> done) {
    backend_->StreamBatch(read.values, *own, call.left(), sink, where, std::move(done));
  });
}

Status Connection::FindIslands(const sap_problem* problem, AnswerContent* answer) {
  const auto view = ViewOf(problem);
  if (!view) return tl::unexpected(view.error());
  auto forecast = backend_->FindIslands(*view);
  if (!forecast) return tl::unexpected(std::move(forecast.error()));
  answer->SetForecast(*std::move(forecast));
  return {};
}

Status Connection::Differentiate(const sap_differentiation* request, const CallSettings& call,
                                 AnswerContent* answer) {
  auto read = ReadDifferentiation(request);
  if (!read) return Fail(read.error());
  if (Status allowed = Check(read->view.solve); !allowed) return allowed;
  read->view.solve.call = call.options;
  auto outcome = client::Await<DerivativesOutcome>([&](Where where, Done<DerivativesOutcome> done) {
    backend_->Differentiate(read->view, call.left(), where, std::move(done));
  });
  return Put(std::move(outcome), read->wanted, answer);
}

Status Connection::DifferentiateBatch(std::span<const sap_differentiation* const> requests,
                                      const double* time_budget_s, const CallSettings& call,
                                      Answers answers) {
  client::BatchLimits limits{.call = call.options};
  if (time_budget_s != nullptr) {
    const auto budget = ReadTimeBudget(*time_budget_s, "time_budget");
    if (!budget) return Fail(budget.error());
    limits.time_budget = *budget;
  }
  using Asked = tl::expected<GivenDifferentiation, Error>;
  const Inputs<GivenDifferentiation> read(
      requests, answers, [this](const sap_differentiation* request) -> Asked {
        auto asked = ReadDifferentiation(request);
        if (!asked) return Fail(asked.error());
        if (Status allowed = Check(asked->view.solve); !allowed) {
          return tl::unexpected(std::move(allowed.error()));
        }
        return *std::move(asked);
      });
  std::vector<client::DifferentiateView> views;
  for (const GivenDifferentiation& value : read.values) views.push_back(value.view);
  using Batch = Outcomes<DerivativesOutcome>;
  auto outcomes = client::Await<Batch>([&](Where where, Done<Batch> done) {
    backend_->DifferentiateBatch(views, limits, call.left(), where, std::move(done));
  });
  if (!outcomes) return tl::unexpected(std::move(outcomes.error()));
  for (size_t i = 0; i < outcomes->size(); ++i) {
    PutInto(answers[read.index[i]], std::move((*outcomes)[i]), read.values[i].wanted);
  }
  return {};
}

Status Connection::Advance(const sap_worlds* worlds, const CallSettings& call) {
  auto read = ReadWorlds(worlds);
  if (!read) return Fail(read.error());
  if (Status checked = client::CheckWorlds(read->view); !checked) return checked;
  const client::WorldsOptions options{.call = call.options};
  Status advanced = client::Await<Status>([&](Where where, Done<Status> done) {
    backend_->Advance(read->view, options, call.left(), where, std::move(done));
  });
  if (advanced) WriteOutcomes(*read, worlds);
  return advanced;
}

tl::expected<client::Session, Error> Connection::OpenSession(const sap_options* options,
                                                             const CallSettings& call) {
  auto own = Read(options);
  if (!own) return tl::unexpected(std::move(own.error()));
  own->call = call.options;
  auto steps = backend_->OpenSession(*own, call.session, call.left());
  if (!steps) return tl::unexpected(std::move(steps.error()));
  return client::Session(std::move(*steps));
}

}  // namespace sap::c
