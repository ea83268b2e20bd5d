// The functions of sap_islands.h for bodies at rest.
#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/c/run_call.h"
#include "client/c/sap_islands.h"
#include "client/c/struct_reader.h"
#include "client/cpp/resting_islands.h"

struct sap_resting {
  sap::client::RestingIslands islands;
};

namespace {

using sap::ContactSolution;
using sap::c::Fail;
using sap::c::MoveStructs;
using sap::c::RunOnAnswer;
using sap::client::BodyMove;
using sap::client::Status;

template <typename Resting, typename Work>
int32_t RunOnResting(Resting* resting, sap_answer* answer, const Work& work) noexcept {
  return RunOnAnswer(answer, [&](sap::c::AnswerContent* content) -> Status {
    if (resting == nullptr) return Fail(SAP_INVALID_ARGUMENT, "sap_resting is NULL");
    return work(&resting->islands, content);
  });
}

void AddMoves(std::span<const BodyMove> added, MoveStructs* moves) {
  for (const BodyMove& move : added) {
    moves->body_id.push_back(move.body_id);
    moves->duration.push_back(move.duration);
    moves->velocity.insert(moves->velocity.end(), move.velocity.begin(), move.velocity.end());
  }
}

Status SetMoves(std::span<const BodyMove> resting, std::span<const BodyMove> awake,
                sap::c::AnswerContent* content) {
  MoveStructs moves;
  AddMoves(resting, &moves);
  AddMoves(awake, &moves);
  moves.resting = static_cast<int64_t>(resting.size());
  content->SetMoves(std::move(moves));
  return {};
}

template <typename Value, typename Array>
void CopyArray(const Array& array, std::vector<Value>* values) {
  values->assign(array.data, array.data + array.length);
}

// Runs `work(view, solution)` with what RestingIslands reads of a solution.
template <typename Work>
Status WithStep(const sap_problem* problem, const sap_solution* solution, const Work& work) {
  const auto given = sap::c::ReadProblem(problem);
  if (!given) return Fail(given.error());
  const auto read = sap::c::ReadSolution(solution);
  if (!read) return Fail(read.error());
  ContactSolution copied;
  CopyArray(read->solution.velocity, &copied.velocity);
  CopyArray(read->solution.island_of_tree, &copied.island_of_tree);
  const sap_doubles& drifts = read->islands.rest_drift;
  copied.islands.resize(std::max(drifts.length, read->islands.status.length));
  for (int64_t i = 0; i < drifts.length; ++i) copied.islands[i].rest_drift = drifts.data[i];
  return work(given->view, copied);
}

std::span<const uint32_t> IdsAt(const uint32_t* body_id, int64_t count) {
  return {body_id, static_cast<size_t>(std::max<int64_t>(count, 0))};
}

}  // namespace

const sap_body_moves* sap_answer_moves(const sap_answer* answer) {
  return sap::c::ContentOf(answer).moves_struct();
}

int32_t sap_resting_create(const sap_rest_rules* rules, sap_resting** resting, sap_answer* answer) {
  if (resting == nullptr) return SAP_INVALID_ARGUMENT;
  *resting = nullptr;
  return RunOnAnswer(answer, [&](sap::c::AnswerContent*) -> Status {
    const auto given = sap::c::ReadRestRules(rules);
    if (!given) return Fail(given.error());
    auto made = sap::client::RestingIslands::Make(
        {.horizon = given->horizon, .tolerance = given->tolerance, .time_step = given->time_step});
    if (!made) return tl::unexpected(made.error());
    *resting = std::make_unique<sap_resting>(sap_resting{std::move(*made)}).release();
    return {};
  });
}

void sap_resting_free(sap_resting* resting) { delete resting; }

double sap_resting_horizon(const sap_resting* resting) {
  return resting == nullptr ? 0 : resting->islands.horizon();
}

int32_t sap_resting_islands(const sap_resting* resting, const uint32_t* body_id, int64_t count,
                            int32_t* islands) {
  if (resting == nullptr || count < 0 || (count > 0 && (body_id == nullptr || islands == nullptr)))
    return SAP_INVALID_ARGUMENT;
  for (const uint32_t id : IdsAt(body_id, count)) *islands++ = resting->islands.IslandOf(id);
  return SAP_OK;
}

int32_t sap_resting_counts(const sap_resting* resting, sap_rest_counts* counts) {
  if (resting == nullptr || counts == nullptr || counts->struct_size < sizeof(size_t))
    return SAP_INVALID_ARGUMENT;
  const sap::client::RestCounts& of = resting->islands.counts();
  const sap_rest_counts all{.struct_size = std::min(counts->struct_size, sizeof all),
                            .woken_by_pair = of.woken_by_pair,
                            .woken_by_input = of.woken_by_input,
                            .long_steps = of.long_steps,
                            .long_steps_refused = of.long_steps_refused};
  std::memcpy(counts, &all, all.struct_size);
  return SAP_OK;
}

int32_t sap_resting_due(const sap_resting* resting, sap_answer* answer) {
  return RunOnResting(resting, answer, [](const auto* islands, auto* content) {
    return SetMoves(islands->Due(), {}, content);
  });
}

int32_t sap_resting_wake(sap_resting* resting, const uint32_t* body_id, int64_t count,
                         int32_t reason, sap_answer* answer) {
  return RunOnResting(resting, answer, [&](auto* islands, auto* content) -> Status {
    if (count < 0 || (count > 0 && body_id == nullptr)) {
      return Fail(SAP_INVALID_ARGUMENT, "body_id is NULL, or has a negative length", "body_id");
    }
    if (reason != SAP_WAKE_PAIR && reason != SAP_WAKE_INPUT) {
      return Fail(SAP_INVALID_ARGUMENT,
                  "reason is " + std::to_string(reason) + "; it must be a SAP_WAKE_*", "reason");
    }
    return SetMoves({},
                    islands->Wake(IdsAt(body_id, count), reason == SAP_WAKE_PAIR
                                                             ? sap::client::WakeReason::kPair
                                                             : sap::client::WakeReason::kInput),
                    content);
  });
}

int32_t sap_resting_set_time_step(sap_resting* resting, double time_step, sap_answer* answer) {
  return RunOnResting(resting, answer, [&](auto* islands, auto* content) -> Status {
    const auto woken = islands->SetTimeStep(time_step);
    if (!woken) return tl::unexpected(woken.error());
    return SetMoves({}, *woken, content);
  });
}

int32_t sap_resting_take_long_steps(sap_resting* resting, const sap_problem* problem,
                                    const sap_solution* solution, sap_answer* answer) {
  return RunOnResting(resting, answer, [&](auto* islands, auto* content) {
    return WithStep(problem, solution, [&](const auto& view, const ContactSolution& of) -> Status {
      const auto steps = islands->TakeLongSteps(view, of);
      if (!steps) return tl::unexpected(steps.error());
      return SetMoves(steps->resting, steps->woken, content);
    });
  });
}

int32_t sap_resting_take_step(sap_resting* resting, const sap_problem* problem,
                              const sap_solution* solution, sap_answer* answer) {
  return RunOnResting(resting, answer, [&](auto* islands, auto* content) {
    return WithStep(problem, solution, [&](const auto& view, const ContactSolution& of) -> Status {
      const auto taken = islands->TakeStep(view, of);
      if (!taken) return tl::unexpected(taken.error());
      return SetMoves(*taken, {}, content);
    });
  });
}
