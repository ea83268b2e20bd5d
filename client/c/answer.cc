#include "client/c/answer.h"

#include <chrono>
#include <cstddef>
#include <utility>

#include "solver/problem/input_arrays.h"

namespace sap::c {
namespace {

int32_t NumberOf(SolveStatus status) {
  switch (status) {
    case SolveStatus::kConverged:
      return SAP_ISLAND_CONVERGED;
    case SolveStatus::kStalledAtRoundoff:
      return SAP_ISLAND_STALLED_AT_ROUNDOFF;
    case SolveStatus::kIterationLimit:
      return SAP_ISLAND_ITERATION_LIMIT;
    case SolveStatus::kDeadline:
      return SAP_ISLAND_DEADLINE;
    case SolveStatus::kCancelled:
      return SAP_ISLAND_CANCELLED;
    case SolveStatus::kNumericalFailure:
      return SAP_ISLAND_NUMERICAL_FAILURE;
    case SolveStatus::kCoulombLimit:
      return SAP_ISLAND_COULOMB_LIMIT;
  }
  return 0;
}

int32_t NumberOf(AdjointStatus status) {
  switch (status) {
    case AdjointStatus::kDifferentiated:
      return SAP_ADJOINT_DIFFERENTIATED;
    case AdjointStatus::kInaccurate:
      return SAP_ADJOINT_INACCURATE;
    case AdjointStatus::kDeadline:
      return SAP_ADJOINT_DEADLINE;
    case AdjointStatus::kNumericalFailure:
      return SAP_ADJOINT_NUMERICAL_FAILURE;
  }
  return 0;
}

// sap_server_info as the list of limits makes it: what is forgotten there does not compile.
struct ListedInfo {
  size_t struct_size;
  const char *version, *instruction_set, *boot_id;
  uint32_t processors, solver_threads;
#define SAP_LIMIT(type, name, ...) decltype(sap_server_info::name) name;
#include "solver/engine/server_limits.inc"
};
static_assert(sizeof(ListedInfo) == sizeof(sap_server_info));
#define SAP_LIMIT(type, name, ...) \
  static_assert(offsetof(ListedInfo, name) == offsetof(sap_server_info, name));
#include "solver/engine/server_limits.inc"

// Empty if they are not sent.
template <typename Number, typename Value>
void CopyReports(const std::vector<IslandReport>& islands, Sent sent, Number IslandReport::*number,
                 std::vector<Value>* values) {
  values->clear();
  if (!IsSent(sent, islands)) return;
  for (const IslandReport& island : islands) {
    values->push_back(static_cast<Value>(island.*number));
  }
}

// Empties the arrays that are not wanted, and sets the structs.
void PointAtWanted(const InputSelection& wanted, GradientStructs* structs) {
  OwnedContactProblem& inputs = structs->inputs.arrays;
  size_t input = 0;
  if (!wanted.wanted(input++)) inputs.time_step = 0;
  const size_t first_number = input;
  Regularization::ForEach([&](const char*, bool is_input, double&) { input += is_input; },
                          inputs.regularization);
  ForEachInput(
      [&](const FieldName&, std::vector<double>& array) {
        if (!wanted.wanted(input++)) array.clear();
      },
      inputs);
  structs->inputs.Point(kAllGiven);
  sap_regularization* numbers = structs->inputs.regularization();
  numbers->rule = 0;
  input = first_number;
  Regularization::ForEach(
      [&](const char*, bool is_input, const double*& number) {
        if (!is_input || !wanted.wanted(input++)) number = nullptr;
      },
      *numbers);
  structs->gradient = {.struct_size = sizeof structs->gradient,
                       .problem = structs->inputs.get(),
                       .applied_impulse = ArrayOf(structs->applied_impulse),
                       .delassus_estimate = ArrayOf(structs->delassus_estimate)};
}

}  // namespace

void AnswerContent::Clear() {
  solved_ = false;
  differentiated_ = false;
  forecast_found_ = false;
  informed_ = false;
  problem_.reset();
  record_.reset();
  moves_.reset();
  bytes_.clear();
  error_struct_ = {.struct_size = sizeof error_struct_,
                   .kind = SAP_OK,
                   .lost_attempts = 0,
                   .message = "",
                   .field = "",
                   .index = -1,
                   .reason = "",
                   .retry_after_s = 0,
                   .request_id = "",
                   .server = ""};
}

void AnswerContent::SetError(Error error) {
  Clear();
  error_ = std::move(error);
  error_struct_ = {.struct_size = sizeof error_struct_,
                   .kind = static_cast<int32_t>(error_.code),
                   .lost_attempts = error_.lost_attempts,
                   .message = error_.message.c_str(),
                   .field = error_.field.c_str(),
                   .index = client::FieldIndex(error_),
                   .reason = error_.reason.c_str(),
                   .retry_after_s = std::chrono::duration<double>(error_.retry_after).count(),
                   .request_id = error_.request_id.c_str(),
                   .server = error_.server.c_str()};
}

void AnswerContent::SetOutOfMemory() {
  Clear();
  error_struct_.kind = SAP_RESOURCE_EXHAUSTED;
  error_struct_.message = "not enough memory for this problem";
}

void AnswerContent::SetForecast(IslandForecast forecast) {
  Clear();
  forecast_ = std::move(forecast);
  forecast_struct_ = {.struct_size = sizeof forecast_struct_,
                      .island_of_tree = ArrayOf(forecast_.island_of_tree),
                      .solve_time_s = ArrayOf(forecast_.solve_time_s)};
  forecast_found_ = true;
}

void AnswerContent::SetMoves(MoveStructs moves) {
  Clear();
  moves_ = std::make_unique<MoveStructs>(std::move(moves));
  moves_->moves = {.struct_size = sizeof moves_->moves,
                   .body_id = ArrayOf(moves_->body_id),
                   .duration = ArrayOf(moves_->duration),
                   .velocity = ArrayOf(moves_->velocity),
                   .resting = moves_->resting};
}

void AnswerContent::SetInfo(client::ServerInfo info) {
  Clear();
  info_ = std::move(info);
  info_struct_ = {};
  info_struct_.struct_size = sizeof info_struct_;
  info_struct_.version = info_.version.c_str();
  info_struct_.instruction_set = info_.instruction_set.c_str();
  info_struct_.boot_id = info_.boot_id.c_str();
  info_struct_.processors = info_.processors;
  info_struct_.solver_threads = info_.solver_threads;
#define SAP_LIMIT(type, name, ...) info_struct_.name = info_.name;
#include "solver/engine/server_limits.inc"
  informed_ = true;
}

void AnswerContent::SetProblem(OwnedContactProblem problem, const GivenRegularization& given) {
  Clear();
  problem_ = std::make_unique<ProblemStructs>();
  problem_->arrays = std::move(problem);
  problem_->Point(given);
}

void AnswerContent::SetBytes(std::string bytes) {
  Clear();
  bytes_ = std::move(bytes);
}

void AnswerContent::SetRecord(std::unique_ptr<RecordStructs> record) {
  Clear();
  record_ = std::move(record);
}

void AnswerContent::SetSolution(client::Solution&& solution, bool warm_started) {
  Clear();
  solution_ = std::move(solution);
  sap_solution& to = solution_struct_;
  to = {};
  to.struct_size = sizeof to;
  Tangent::ForEach(
      [](const char*, int, OutputPer, auto& array, const auto& values) { array = ArrayOf(values); },
      to, solution_);
  to.delassus_estimate = ArrayOf(solution_.delassus_estimate);
  to.cost = solution_.cost;
  to.island_of_tree = ArrayOf(solution_.island_of_tree);
  SetIslands();
  to.islands = &islands_struct_;
  to.decode_s = solution_.timings.decode_s;
  to.queue_s = solution_.timings.queue_s;
  to.islands_s = solution_.timings.islands_s;
  to.solve_s = solution_.timings.solve_s;
  to.encode_s = solution_.timings.encode_s;
  to.warm_started = warm_started;
  solved_ = true;
}

void AnswerContent::SetIslands() {
  const std::vector<IslandReport>& islands = solution_.islands;
  islands_.status.clear();
  islands_.swept.clear();
  for (const IslandReport& island : islands) {
    if (island.swept) islands_.swept.push_back(static_cast<uint32_t>(islands_.status.size()));
    islands_.status.push_back(NumberOf(island.status));
  }
  islands_struct_ = {};
  islands_struct_.struct_size = sizeof islands_struct_;
  islands_struct_.status = ArrayOf(islands_.status);
  islands_struct_.swept = ArrayOf(islands_.swept);
#define SAP_REPORT(type, name, sent, none)                               \
  CopyReports(islands, Sent::sent, &IslandReport::name, &islands_.name); \
  islands_struct_.name = ArrayOf(islands_.name);
#include "solver/problem/solution_fields.inc"
}

void AnswerContent::SetDerivatives(client::Derivatives&& derivatives,
                                   const InputSelection& wanted) {
  SetSolution(std::move(derivatives.solution));
  derivatives_ = std::move(derivatives);
  gradients_.clear();
  gradient_list_.clear();
  for (client::Gradient& gradient : derivatives_.gradients) {
    GradientStructs& structs = *gradients_.emplace_back(std::make_unique<GradientStructs>());
    structs.inputs.arrays = std::move(gradient.problem);
    structs.applied_impulse = std::move(gradient.applied_impulse);
    structs.delassus_estimate = std::move(gradient.delassus_estimate);
    PointAtWanted(wanted, &structs);
    gradient_list_.push_back(&structs.gradient);
  }
  SetTangents();
  adjoint_status_.clear();
  for (const AdjointStatus status : derivatives_.adjoint_status) {
    adjoint_status_.push_back(NumberOf(status));
  }
  derivatives_struct_ = {.struct_size = sizeof derivatives_struct_,
                         .num_gradients = static_cast<int64_t>(gradient_list_.size()),
                         .gradients = gradient_list_.data(),
                         .num_tangents = static_cast<int64_t>(tangent_list_.size()),
                         .tangents = tangent_list_.data(),
                         .kink_margin = ArrayOf(derivatives_.kink_margin),
                         .adjoint_status = ArrayOf(adjoint_status_)};
  differentiated_ = true;
}

void AnswerContent::SetTangents() {
  tangents_.clear();
  tangent_list_.clear();
  for (const Tangent& tangent : derivatives_.tangents) {
    sap_tangent& to = tangents_.emplace_back();
    to.struct_size = sizeof to;
    Tangent::ForEach([](const char*, int, OutputPer, auto& array,
                        const auto& values) { array = ArrayOf(values); },
                     to, tangent);
    to.cost = tangent.cost;
  }
  for (const sap_tangent& tangent : tangents_) tangent_list_.push_back(&tangent);
}

const AnswerContent& ContentOf(const sap_answer* answer) {
  if (answer != nullptr) return *answer->content;
  static const AnswerContent* const kNone = [] {
    auto* const none = new AnswerContent;
    none->SetError(Fail(SAP_INVALID_ARGUMENT, "the answer is NULL").value());
    return none;
  }();
  return *kNone;
}

}  // namespace sap::c

void sap_answer::SetBackgroundCall(std::shared_ptr<const sap::c::BackgroundCall> call) {
  const std::lock_guard lock(mutex_);
  background_call_ = std::move(call);
}

std::shared_ptr<const sap::c::BackgroundCall> sap_answer::background_call() const {
  const std::lock_guard lock(mutex_);
  return background_call_;
}
