// The answer of a call of the C interface: arrays, and structs that point to them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "client/c/background.h"
#include "client/c/call.h"
#include "client/c/problem_structs.h"
#include "client/c/sap_islands.h"
#include "client/cpp/outcomes.h"
#include "client/cpp/server_info.h"
#include "solver/problem/input_selection.h"
#include "solver/run/island_forecast.h"

namespace sap::c {

// One gradient: its inputs in the shape of a problem.
struct GradientStructs {
  ProblemStructs inputs;
  std::vector<double> applied_impulse;
  std::vector<double> delassus_estimate;
  sap_gradient gradient;
};

class AnswerContent;

// A sap_record with all that it points to.
struct RecordStructs {
  std::string version, instruction_set;
  ProblemStructs problem;
  double relative_tolerance, absolute_speed_tolerance, time_budget_s, coulomb_tolerance, horizon;
  uint32_t max_iterations, max_rounds;
  sap_coulomb_friction coulomb;
  sap_rest rest;
  std::vector<std::string> mask_texts;
  std::vector<const char*> response_mask;
  sap_options options;
  std::unique_ptr<AnswerContent> outcome;
  sap_record record;
};

// A sap_body_moves with its arrays.
struct MoveStructs {
  std::vector<uint32_t> body_id;
  std::vector<double> duration;
  std::vector<double> velocity;
  int64_t resting{0};
  sap_body_moves moves{};
};

// The arrays of a sap_island_reports.
struct IslandArrays {
  template <typename Number>
  using Value = std::conditional_t<std::is_same_v<Number, int>, uint32_t, Number>;

  std::vector<int32_t> status;
  std::vector<uint32_t> swept;
#define SAP_REPORT(type, name, ...) std::vector<Value<type>> name;
#include "solver/problem/solution_fields.inc"
};

class AnswerContent {
 public:
  AnswerContent() { Clear(); }
  AnswerContent(const AnswerContent&) = delete;
  AnswerContent& operator=(const AnswerContent&) = delete;

  // Each begins again.
  void Clear();
  void SetError(Error error);
  void SetOutOfMemory();  // allocates nothing
  void SetForecast(IslandForecast forecast);
  void SetInfo(client::ServerInfo info);
  void SetSolution(client::Solution&& solution, bool warm_started = false);
  // The wanted inputs, and the solution.
  void SetDerivatives(client::Derivatives&& derivatives, const InputSelection& wanted);

  void SetProblem(OwnedContactProblem problem, const GivenRegularization& given);
  void SetBytes(std::string bytes);
  // Null: the end of a recording.
  void SetRecord(std::unique_ptr<RecordStructs> record);
  void SetMoves(MoveStructs moves);

  // Outlives Set*.
  void set_step_id(uint64_t step_id) { step_id_ = step_id; }
  uint64_t step_id() const { return step_id_; }

  const sap_error* error() const { return &error_struct_; }
  const sap_solution* solution_struct() const { return solved_ ? &solution_struct_ : nullptr; }
  const sap_derivatives* derivatives_struct() const {
    return differentiated_ ? &derivatives_struct_ : nullptr;
  }
  const sap_forecast* forecast_struct() const {
    return forecast_found_ ? &forecast_struct_ : nullptr;
  }
  const sap_server_info* info_struct() const { return informed_ ? &info_struct_ : nullptr; }
  const sap_problem* problem_struct() const { return problem_ ? problem_->get() : nullptr; }
  const sap_record* record_struct() const { return record_ ? &record_->record : nullptr; }
  const sap_body_moves* moves_struct() const { return moves_ ? &moves_->moves : nullptr; }
  sap_bytes bytes() const { return {bytes_.data(), static_cast<int64_t>(bytes_.size())}; }

 private:
  void SetIslands();
  void SetTangents();

  Error error_;
  sap_error error_struct_{};
  uint64_t step_id_{0};

  bool solved_{false};
  client::Solution solution_;
  sap_solution solution_struct_{};
  sap_island_reports islands_struct_{};
  IslandArrays islands_;
  bool forecast_found_{false};
  IslandForecast forecast_;
  sap_forecast forecast_struct_{};

  bool informed_{false};
  client::ServerInfo info_;
  sap_server_info info_struct_{};

  std::unique_ptr<ProblemStructs> problem_;
  std::unique_ptr<RecordStructs> record_;
  std::unique_ptr<MoveStructs> moves_;
  std::string bytes_;

  bool differentiated_{false};
  client::Derivatives derivatives_;  // without solution and gradients, which are above and below
  sap_derivatives derivatives_struct_{};
  std::vector<std::unique_ptr<GradientStructs>> gradients_;
  std::vector<const sap_gradient*> gradient_list_;
  std::vector<sap_tangent> tangents_;
  std::vector<const sap_tangent*> tangent_list_;
  std::vector<int32_t> adjoint_status_;
};

}  // namespace sap::c

struct sap_answer {
  std::unique_ptr<sap::c::AnswerContent> content = std::make_unique<sap::c::AnswerContent>();

  // Receives the answer; null: none.
  void SetBackgroundCall(std::shared_ptr<const sap::c::BackgroundCall> call);
  std::shared_ptr<const sap::c::BackgroundCall> background_call() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const sap::c::BackgroundCall> background_call_;
};

namespace sap::c {

// Puts an outcome into the content, or returns its error.
inline Status Put(client::SolveOutcome&& outcome, bool warm_started, AnswerContent* content) {
  if (!outcome) return tl::unexpected(std::move(outcome.error()));
  content->SetSolution(*std::move(outcome), warm_started);
  return {};
}

// The content of an answer; of null: an error that says so.
const AnswerContent& ContentOf(const sap_answer* answer);

}  // namespace sap::c
