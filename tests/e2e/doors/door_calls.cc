#include "tests/e2e/doors/door_calls.h"

#include <gtest/gtest.h>

#include <chrono>
#include <list>
#include <nlohmann/json.hpp>
#include <utility>

#include "client/cpp/files/message_file.h"
#include "client/cpp/files/problem_message.h"
#include "client/cpp/transport/message_conversion.h"
#include "proto/codec/derivatives_codec.h"
#include "tests/client/c/c_objects.h"
#include "tests/client/c/c_structs.h"
#include "tests/support/problem_set.h"

namespace sap::test {
namespace {

using Json = nlohmann::json;
using Kind = DoorCall::Kind;

Kind KindOf(const std::string& name) {
  if (name == "solve") return Kind::kSolve;
  if (name == "solve_batch") return Kind::kSolveBatch;
  if (name == "differentiate") return Kind::kDifferentiate;
  if (name == "differentiate_batch") return Kind::kDifferentiateBatch;
  EXPECT_EQ(name, "session");
  return Kind::kSession;
}

v1::DifferentiateRequest RequestOf(const Json& json) {
  v1::DifferentiateRequest request;
  const auto read = client::JsonToMessage(json.dump(), &request);
  EXPECT_TRUE(read.has_value()) << read.error().message;
  return request;
}

// One text for each request, or one for all.
std::vector<std::string> TextsOf(const Json& json, size_t count) {
  if (json.is_array()) return json.get<std::vector<std::string>>();
  return std::vector<std::string>(count, json.get<std::string>());
}

DoorCall CallOf(const Json& json, const Json& base) {
  DoorCall call{.name = json.at("name"),
                .kind = KindOf(json.at("call")),
                .requests = {},
                .deadline_s = {},
                .errors = {},
                .errors_of_server = {}};
  if (json.contains("deadline_s")) call.deadline_s = json.at("deadline_s");
  Json changes = json.value("changes", Json::array({json.value("change", Json::object())}));
  for (const Json& change : changes) {
    Json request = base;
    request.merge_patch(change);
    call.requests.push_back(RequestOf(request));
    if (json.contains("file")) {
      *call.requests.back().mutable_problem() =
          *client::LoadProblemMessage(ProblemPath(json.at("file").get<std::string>()));
    }
  }
  if (json.contains("times")) call.requests.resize(json.at("times"), call.requests.front());
  for (int i = 1; i < json.value("cotangents", 1); ++i) {
    *call.requests[0].add_cotangents() = v1::Cotangent(call.requests[0].cotangents(0));
  }
  call.errors = TextsOf(json.value(json.contains("errors") ? "errors" : "error", Json("")),
                        call.requests.size());
  call.errors_of_server = json.contains("error_of_server")
                              ? TextsOf(json.at("error_of_server"), call.requests.size())
                              : call.errors;
  return call;
}

std::string TextOf(const client::Error& error) {
  return std::string(client::Name(error.code)) + " [" + error.field + "] " + error.message;
}

client::SolveOptions OptionsOf(const v1::SolveOptions& message, client::SolveOptions options) {
  SolverOptions& solver = options.solver;
  if (message.has_relative_tolerance()) solver.relative_tolerance = message.relative_tolerance();
  if (message.has_absolute_speed_tolerance()) {
    solver.absolute_speed_tolerance = message.absolute_speed_tolerance();
  }
  if (message.has_max_iterations()) {
    solver.max_iterations = static_cast<int>(message.max_iterations());
  }
  if (message.has_islands()) solver.islands = message.islands();
  if (message.newton() != v1::NEWTON_METHOD_UNSPECIFIED) {
    solver.newton = static_cast<NewtonMethod>(message.newton() - v1::NEWTON_METHOD_PLAIN);
  }
  if (message.has_coulomb()) {
    CoulombFriction& coulomb = solver.coulomb.emplace();
    if (message.coulomb().has_max_rounds()) coulomb.max_rounds = message.coulomb().max_rounds();
    if (message.coulomb().has_tolerance()) coulomb.tolerance = message.coulomb().tolerance();
  }
  if (message.has_rest()) solver.rest = {.horizon = message.rest().horizon()};
  if (message.has_time_budget()) options.time_budget = client::FromMessage(message.time_budget());
  const auto& paths = message.response_mask().paths();
  options.response_mask = {paths.begin(), paths.end()};
  if (message.priority() == v1::PRIORITY_HIGH) options.priority = client::Priority::kHigh;
  return options;
}

client::SolveOptions OptionsOf(const DoorCall& call, const v1::SolveOptions& message,
                               client::SolveOptions options = {}) {
  options = OptionsOf(message, std::move(options));
  if (call.deadline_s) {
    options.deadline = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(*call.deadline_s));
  }
  return options;
}

std::vector<client::Problem> ProblemsOf(const DoorCall& call) {
  std::vector<client::Problem> problems;
  for (const v1::DifferentiateRequest& request : call.requests) {
    problems.push_back(*client::FromMessage(request.problem()));
  }
  return problems;
}

AnswerBits Bits(const client::Derivatives& derivatives) {
  v1::DifferentiateResponse message;
  for (const client::Gradient& gradient : derivatives.gradients) {
    v1::Gradient* added = message.add_gradients();
    client::ToMessage(gradient.problem, added->mutable_gradient());
    added->mutable_applied_impulse()->Assign(gradient.applied_impulse.begin(),
                                             gradient.applied_impulse.end());
    added->mutable_delassus_estimate()->Assign(gradient.delassus_estimate.begin(),
                                               gradient.delassus_estimate.end());
  }
  for (const Tangent& tangent : derivatives.tangents) {
    v1::Tangent* added = message.add_tangents();
#define SAP_OUTPUT(name, ...) \
  added->mutable_##name()->Assign(tangent.name.begin(), tangent.name.end());
#include "solver/problem/solution_fields.inc"
    added->set_cost(tangent.cost);
  }
  message.mutable_kink_margin()->Assign(derivatives.kink_margin.begin(),
                                        derivatives.kink_margin.end());
  for (const AdjointStatus status : derivatives.adjoint_status) {
    message.add_adjoint_status(static_cast<v1::AdjointStatus>(static_cast<int>(status) + 1));
  }
  return {test::Bits(derivatives.solution).bytes + message.SerializeAsString()};
}

Reply ReplyOf(const client::Client::SolveOutcome& outcome) {
  if (!outcome) return {.error = TextOf(outcome.error())};
  return {.bits = test::Bits(*outcome)};
}

Reply ReplyOf(const client::Client::DerivativesOutcome& outcome) {
  if (!outcome) return {.error = TextOf(outcome.error())};
  return {.bits = Bits(*outcome)};
}

template <typename Outcome>
std::vector<Reply> RepliesOf(const std::vector<Outcome>& outcomes) {
  std::vector<Reply> replies;
  for (const Outcome& outcome : outcomes) replies.push_back(ReplyOf(outcome));
  return replies;
}

client::DifferentiateView ViewOf(const DoorCall& call, const v1::DifferentiateRequest& request,
                                 const client::Problem& problem) {
  client::DifferentiateView view{
      .problem = sap::ViewOf(problem),
      .derivatives = DecodeDerivatives(request),
      .solve = OptionsOf(call, request.options(), client::WithTolerance(kDerivativeTolerance)),
      .wanted = {request.wanted().paths().begin(), request.wanted().paths().end()}};
#define SAP_NUMBER(name, input) view.given.name = request.problem().regularization().has_##name();
#include "solver/problem/problem_fields.inc"
  return view;
}

std::vector<Reply> StepCpp(client::Client* client, const DoorCall& call,
                           const std::vector<client::Problem>& problems) {
  auto session = client->OpenSession();
  if (!session) return {problems.size(), Reply{.error = TextOf(session.error())}};
  std::vector<Reply> replies;
  for (size_t i = 0; i < problems.size(); ++i) {
    const v1::DifferentiateRequest& request = call.requests[i];
    std::optional<client::SolveOptions> options;
    if (request.has_options()) options = OptionsOf(call, request.options());
    const auto sent = session->Send(problems[i], options);
    const auto outcome = session->Receive();
    if (!outcome) {
      replies.push_back({.error = TextOf((sent ? outcome.error() : sent.error()))});
      continue;
    }
    replies.push_back(ReplyOf(outcome->solution));
    replies.back().bits.bytes += outcome->warm_started ? " warm" : "";
  }
  return replies;
}

// An answer of the C interface in the types of C++.
client::Error ErrorIn(const Answer& answer) {
  const sap_error& error = answer.error();
  return {.code = client::FromCode(error.kind), .message = error.message, .field = error.field};
}

Reply ReplyIn(const Answer& answer) {
  if (answer.solution() == nullptr) return {.error = TextOf(ErrorIn(answer))};
  const sap_derivatives* derivatives = sap_answer_derivatives(answer.get());
  v1::DifferentiateResponse message;
  if (derivatives != nullptr) message = MessageOf(*derivatives);
  *message.mutable_solution() = MessageOf(*answer.solution());
  message.mutable_solution()->mutable_islands()->mutable_solve_time_s()->Resize(
      message.solution().islands().status_size(), 0);
  if (derivatives == nullptr) return ReplyOf(client::FromMessage(message.solution()));
  return ReplyOf(client::FromMessage(message));
}

// The structs of a call, and an answer for each of its requests.
class CCall {
 public:
  explicit CCall(const DoorCall& call) : answers_(call.requests.size()) {
    for (const v1::DifferentiateRequest& request : call.requests) {
      requests_.push_back(differentiations_.emplace_back(request).get());
      problems_.push_back(requests_.back()->problem);
    }
    for (const Answer& answer : answers_) list_.push_back(answer.get());
    settings_.struct_size = sizeof settings_;
    deadline_s_ = call.deadline_s.value_or(0);
    if (call.deadline_s) settings_.deadline_s = &deadline_s_;
  }

  int64_t count() const { return static_cast<int64_t>(list_.size()); }
  const sap_problem* const* problems() const { return problems_.data(); }
  const sap_differentiation* const* requests() const { return requests_.data(); }
  const sap_options* options(size_t i) const {
    return i < requests_.size() ? requests_[i]->options : nullptr;
  }
  const sap_call* settings() const { return &settings_; }
  sap_answer* const* answers() const { return list_.data(); }

  std::vector<Reply> Replies() const {
    std::vector<Reply> replies;
    for (const Answer& answer : answers_) replies.push_back(ReplyIn(answer));
    return replies;
  }

 private:
  std::list<CDifferentiation> differentiations_;
  std::vector<const sap_differentiation*> requests_;
  std::vector<const sap_problem*> problems_;
  std::vector<Answer> answers_;
  std::vector<sap_answer*> list_;
  sap_call settings_{};
  double deadline_s_{0};
};

std::vector<Reply> StepC(sap_client* client, const CCall& call) {
  sap_session* opened = nullptr;
  const Answer opening;
  sap_session_open(client, nullptr, nullptr, &opened, opening.get());
  const Owned<sap_session, sap_session_free> session(opened);
  std::vector<Reply> replies;
  for (int64_t i = 0; i < call.count(); ++i) {
    const Answer answer;
    sap_session_send(session.get(), call.problems()[i], call.options(i), nullptr, answer.get());
    if (sap_answer_error(answer.get())->kind == SAP_OK) {
      sap_session_take(session.get(), nullptr, answer.get());
    }
    replies.push_back(ReplyIn(answer));
    const sap_solution* solution = answer.solution();
    replies.back().bits.bytes += solution != nullptr && solution->warm_started != 0 ? " warm" : "";
  }
  return replies;
}

}  // namespace

std::vector<DoorCall> DoorCalls() {
  const Json json = Json::parse(*client::ReadFile(SAP_DOOR_CALLS));
  std::vector<DoorCall> calls;
  for (const Json& call : json.at("calls")) calls.push_back(CallOf(call, json.at("request")));
  return calls;
}

std::vector<Reply> CallCpp(client::Client* client, const DoorCall& call) {
  const std::vector<client::Problem> problems = ProblemsOf(call);
  std::vector<client::DifferentiateView> views;
  for (size_t i = 0; i < problems.size(); ++i) {
    views.push_back(ViewOf(call, call.requests[i], problems[i]));
  }
  const client::SolveOptions options =
      OptionsOf(call, call.requests.empty() ? v1::SolveOptions() : call.requests.front().options());
  switch (call.kind) {
    case Kind::kSolve:
      return {ReplyOf(client->Solve(problems[0], options))};
    case Kind::kSolveBatch:
      return RepliesOf(client->SolveBatch(problems, options));
    case Kind::kDifferentiate:
      return {ReplyOf(client->Differentiate(views[0]))};
    case Kind::kDifferentiateBatch:
      return RepliesOf(client->DifferentiateBatch(views));
    case Kind::kSession:
      return StepCpp(client, call, problems);
  }
  return {};
}

std::vector<Reply> CallC(sap_client* client, const DoorCall& call) {
  const CCall c(call);
  switch (call.kind) {
    case Kind::kSolve:
      sap_solve(client, c.problems()[0], c.options(0), c.settings(), c.answers()[0]);
      break;
    case Kind::kSolveBatch:
      sap_solve_batch(client, c.count(), c.problems(), c.options(0), c.settings(), c.answers());
      break;
    case Kind::kDifferentiate:
      sap_differentiate(client, c.requests()[0], c.settings(), c.answers()[0]);
      break;
    case Kind::kDifferentiateBatch:
      sap_differentiate_batch(client, c.count(), c.requests(), nullptr, c.settings(), c.answers());
      break;
    case Kind::kSession:
      return StepC(client, c);
  }
  return c.Replies();
}

v1::RecordedSolve RecordOf(sap_client* client, const DoorCall& call) {
  const CCall c(call);
  const Answer answer;
  sap_solve(client, c.problems()[0], c.options(0), c.settings(), answer.get());
  v1::RecordedSolve record;
  record.set_version(sap_version());
  record.set_instruction_set(sap_instruction_set());
  *record.mutable_problem() = call.requests[0].problem();
  *record.mutable_options() = call.requests[0].options();
  if (answer.solution() == nullptr) {
    client::ToMessage(ErrorIn(answer), record.mutable_outcome()->mutable_failure());
    return record;
  }
  v1::ContactSolution* solution = record.mutable_outcome()->mutable_solution();
  *solution = MessageOf(*answer.solution());
  solution->mutable_islands()->mutable_solve_time_s()->Resize(solution->islands().status_size(), 0);
  return record;
}

}  // namespace sap::test
