#include "client/c/transport/struct_messages.h"

#include <google/protobuf/util/time_util.h>

#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/c/struct_reader.h"
#include "client/cpp/transport/message_conversion.h"
#include "proto/codec/wanted_inputs.h"

namespace sap::c {
namespace {

using google::protobuf::util::TimeUtil;

// Appends an array that ReadSolution has checked.
template <typename Array, typename Values>
void Copy(const Array& array, Values* values) {
  values->Add(array.data, array.data + array.length);
}

google::protobuf::Duration DurationOf(double seconds) {
  return TimeUtil::NanosecondsToDuration(std::llround(seconds * 1e9));
}

void CopyIslands(const sap_island_reports& from, v1::IslandReports* to) {
  for (int64_t i = 0; i < from.status.length; ++i) {
    to->add_status(static_cast<v1::IslandStatus>(from.status.data[i]));
  }
  Copy(from.swept, to->mutable_swept());
#define SAP_REPORT(type, name, ...) Copy(from.name, to->mutable_##name());
#include "solver/problem/solution_fields.inc"
}

void SetCoulomb(const v1::CoulombFriction& from, RecordStructs* to) {
  to->coulomb = {.struct_size = sizeof to->coulomb, .max_rounds = nullptr, .tolerance = nullptr};
  if (from.has_max_rounds()) {
    to->max_rounds = from.max_rounds();
    to->coulomb.max_rounds = &to->max_rounds;
  }
  if (from.has_tolerance()) {
    to->coulomb_tolerance = from.tolerance();
    to->coulomb.tolerance = &to->coulomb_tolerance;
  }
  to->options.coulomb = &to->coulomb;
}

void SetRest(const v1::Rest& from, RecordStructs* to) {
  to->rest = {.struct_size = sizeof to->rest, .horizon = nullptr};
  if (from.has_horizon()) {
    to->horizon = from.horizon();
    to->rest.horizon = &to->horizon;
  }
  to->options.rest = &to->rest;
}

// Sets the structs of options that were recorded.
void SetOptions(const v1::SolveOptions& from, RecordStructs* to) {
  sap_options& options = to->options = {};
  options.struct_size = sizeof options;
  if (from.has_relative_tolerance()) {
    to->relative_tolerance = from.relative_tolerance();
    options.relative_tolerance = &to->relative_tolerance;
  }
  if (from.has_absolute_speed_tolerance()) {
    to->absolute_speed_tolerance = from.absolute_speed_tolerance();
    options.absolute_speed_tolerance = &to->absolute_speed_tolerance;
  }
  if (from.has_max_iterations()) {
    to->max_iterations = from.max_iterations();
    options.max_iterations = &to->max_iterations;
  }
  if (from.has_time_budget()) {
    to->time_budget_s =
        1e-9 * static_cast<double>(TimeUtil::DurationToNanoseconds(from.time_budget()));
    options.time_budget_s = &to->time_budget_s;
  }
  options.newton = from.newton();
  options.one_island = from.has_islands() && !from.islands();
  to->mask_texts.assign(from.response_mask().paths().begin(), from.response_mask().paths().end());
  for (const std::string& text : to->mask_texts) to->response_mask.push_back(text.c_str());
  options.num_response_mask = static_cast<int64_t>(to->response_mask.size());
  options.response_mask = to->response_mask.data();
  options.priority = from.priority();
  options.interior_point = from.interior_point();
  if (from.has_coulomb()) SetCoulomb(from.coulomb(), to);
  if (from.has_rest()) SetRest(from.rest(), to);
}

// As they were given: what is absent stays so.
Status CopyOptions(const sap_options& from, v1::SolveOptions* to) {
  if (from.relative_tolerance != nullptr) to->set_relative_tolerance(*from.relative_tolerance);
  if (from.absolute_speed_tolerance != nullptr) {
    to->set_absolute_speed_tolerance(*from.absolute_speed_tolerance);
  }
  if (from.max_iterations != nullptr) to->set_max_iterations(*from.max_iterations);
  if (from.time_budget_s != nullptr) *to->mutable_time_budget() = DurationOf(*from.time_budget_s);
  if (from.one_island != 0) to->set_islands(false);
  to->set_newton(static_cast<v1::NewtonMethod>(from.newton));
  to->set_interior_point(static_cast<v1::InteriorPoint>(from.interior_point));
  to->set_priority(static_cast<v1::Priority>(from.priority));
  for (int64_t i = 0; i < from.num_response_mask; ++i) {
    to->mutable_response_mask()->add_paths(from.response_mask[i]);
  }
  if (from.rest != nullptr) {
    const auto rest = TakeRest(from.rest);
    if (!rest) return Fail(rest.error());
    v1::Rest* message = to->mutable_rest();
    if (rest->horizon != nullptr) message->set_horizon(*rest->horizon);
  }
  if (from.coulomb == nullptr) return {};
  const auto coulomb = TakeCoulomb(from.coulomb);
  if (!coulomb) return Fail(coulomb.error());
  v1::CoulombFriction* friction = to->mutable_coulomb();
  if (coulomb->max_rounds != nullptr) friction->set_max_rounds(*coulomb->max_rounds);
  if (coulomb->tolerance != nullptr) friction->set_tolerance(*coulomb->tolerance);
  return {};
}

// The outcome of a record that was given.
Status SetOutcome(const sap_record& record, v1::Outcome* outcome) {
  if ((record.solution == nullptr) == (record.error == nullptr)) {
    return Fail(SAP_INVALID_ARGUMENT, "a record has either a solution or an error", "record");
  }
  if (record.solution != nullptr) {
    auto solution = ToMessage(record.solution);
    if (!solution) return tl::unexpected(solution.error());
    *outcome->mutable_solution() = std::move(*solution);
    return {};
  }
  const auto error = ReadError(record.error);
  if (!error) return Fail(error.error());
  v1::Failure* failure = outcome->mutable_failure();
  failure->set_code(error->kind);
  if (error->message != nullptr) failure->set_message(error->message);
  if (error->field != nullptr) failure->set_field(error->field);
  if (error->reason != nullptr) failure->set_reason(error->reason);
  if (error->retry_after_s > 0) {
    *failure->mutable_retry_delay() = DurationOf(error->retry_after_s);
  }
  return {};
}

}  // namespace

tl::expected<v1::ContactProblem, Error> ToMessage(const sap_problem* problem) {
  const auto read = ReadProblem(problem);
  if (!read) return Fail(read.error());
  v1::ContactProblem message;
  client::ToMessage(read->view, &message);
  v1::Regularization* numbers = message.mutable_regularization();
#define SAP_NUMBER(name, input) \
  if (!read->regularization.name) numbers->clear_##name();
#include "solver/problem/problem_fields.inc"
  return message;
}

tl::expected<v1::ContactSolution, Error> ToMessage(const sap_solution* given) {
  const auto read = ReadSolution(given);
  if (!read) return Fail(read.error());
  const sap_solution& solution = read->solution;
  v1::ContactSolution message;
#define SAP_OUTPUT(name, ...) Copy(solution.name, message.mutable_##name());
#include "solver/problem/solution_fields.inc"
  Copy(solution.delassus_estimate, message.mutable_delassus_estimate());
  message.set_cost(solution.cost);
  Copy(solution.island_of_tree, message.mutable_island_of_tree());
  CopyIslands(read->islands, message.mutable_islands());
  v1::PhaseTimings* timings = message.mutable_timings();
  timings->set_decode_s(solution.decode_s);
  timings->set_queue_s(solution.queue_s);
  timings->set_islands_s(solution.islands_s);
  timings->set_solve_s(solution.solve_s);
  timings->set_encode_s(solution.encode_s);
  return message;
}

tl::expected<v1::RecordedSolve, Error> ToMessage(const sap_record* given) {
  const auto record = ReadRecord(given);
  if (!record) return Fail(record.error());
  auto problem = ToMessage(record->problem);
  if (!problem) return tl::unexpected(problem.error());
  const auto options = TakeOptions(record->options);
  if (!options) return Fail(options.error());
  v1::RecordedSolve message;
  if (record->version != nullptr) message.set_version(record->version);
  if (record->instruction_set != nullptr) message.set_instruction_set(record->instruction_set);
  *message.mutable_arrival_time() =
      record->arrival_time_ns != 0 ? TimeUtil::NanosecondsToTimestamp(record->arrival_time_ns)
                                   : TimeUtil::GetCurrentTime() - DurationOf(record->duration_s);
  *message.mutable_problem() = std::move(*problem);
  if (Status copied = CopyOptions(*options, message.mutable_options()); !copied) {
    return tl::unexpected(copied.error());
  }
  if (Status set = SetOutcome(*record, message.mutable_outcome()); !set) {
    return tl::unexpected(set.error());
  }
  message.set_duration_s(record->duration_s);
  return message;
}

tl::expected<std::unique_ptr<RecordStructs>, Error> RecordOf(const v1::RecordedSolve& message) {
  auto structs = std::make_unique<RecordStructs>();
  structs->version = message.version();
  structs->instruction_set = message.instruction_set();
  auto problem = client::FromMessage(message.problem());
  if (!problem) return tl::unexpected(problem.error());
  structs->problem.arrays = std::move(*problem);
  structs->problem.Point(GivenIn(message.problem()));
  SetOptions(message.options(), structs.get());
  structs->outcome = std::make_unique<AnswerContent>();
  AnswerContent* outcome = structs->outcome.get();
  Status put = Put(client::FromMessage(message.outcome()), /*warm_started=*/false, outcome);
  if (!put) outcome->SetError(std::move(put.error()));
  structs->record = {.struct_size = sizeof(sap_record),
                     .version = structs->version.c_str(),
                     .instruction_set = structs->instruction_set.c_str(),
                     .arrival_time_ns = TimeUtil::TimestampToNanoseconds(message.arrival_time()),
                     .duration_s = message.duration_s(),
                     .problem = structs->problem.get(),
                     .options = &structs->options,
                     .solution = outcome->solution_struct(),
                     .error = outcome->solution_struct() != nullptr ? nullptr : outcome->error()};
  return structs;
}

}  // namespace sap::c
