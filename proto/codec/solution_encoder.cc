#include "proto/codec/solution_encoder.h"

#include <vector>

namespace sap {
namespace {

template <typename Value>
void EncodeArray(bool wanted, const std::vector<Value>& values,
                 google::protobuf::RepeatedField<Value>* field) {
  field->Clear();
  if (wanted) field->Add(values.begin(), values.end());
}

v1::IslandStatus EncodeStatus(SolveStatus status) {
  switch (status) {
    case SolveStatus::kConverged:
      return v1::ISLAND_STATUS_CONVERGED;
    case SolveStatus::kStalledAtRoundoff:
      return v1::ISLAND_STATUS_STALLED_AT_ROUNDOFF;
    case SolveStatus::kIterationLimit:
      return v1::ISLAND_STATUS_ITERATION_LIMIT;
    case SolveStatus::kDeadline:
      return v1::ISLAND_STATUS_DEADLINE;
    case SolveStatus::kCancelled:
      return v1::ISLAND_STATUS_CANCELLED;
    case SolveStatus::kNumericalFailure:
      return v1::ISLAND_STATUS_NUMERICAL_FAILURE;
    case SolveStatus::kCoulombLimit:
      return v1::ISLAND_STATUS_COULOMB_LIMIT;
  }
  return v1::ISLAND_STATUS_UNSPECIFIED;
}

template <typename Number, typename Value>
void EncodeReports(const std::vector<IslandReport>& islands, Sent sent,
                   Number IslandReport::*number, google::protobuf::RepeatedField<Value>* field) {
  field->Clear();
  if (!IsSent(sent, islands)) return;
  field->Reserve(static_cast<int>(islands.size()));
  for (const IslandReport& island : islands) field->Add(static_cast<Value>(island.*number));
}

void EncodeIslands(const std::vector<IslandReport>& islands, v1::IslandReports* message) {
  message->clear_status();
  message->clear_swept();
  message->mutable_status()->Reserve(static_cast<int>(islands.size()));
  for (uint32_t i = 0; i < islands.size(); ++i) {
    message->add_status(EncodeStatus(islands[i].status));
    if (islands[i].swept) message->add_swept(i);
  }
#define SAP_REPORT(type, name, sent, none) \
  EncodeReports(islands, Sent::sent, &IslandReport::name, message->mutable_##name());
#include "solver/problem/solution_fields.inc"
}

}  // namespace

void EncodeSolution(const ContactSolution& solution, const SolutionMask& mask,
                    v1::ContactSolution* message) {
  // Cleared field by field: Clear() on the message would free the storage of its sub-messages.
  size_t field = 0;
#define SAP_OUTPUT(name, ...) EncodeArray(mask[field++], solution.name, message->mutable_##name());
#include "solver/problem/solution_fields.inc"
  EncodeArray(mask[field++], solution.delassus_estimate, message->mutable_delassus_estimate());
  message->set_cost(mask[field++] ? solution.cost : 0);
  EncodeArray(mask[field++], solution.island_of_tree, message->mutable_island_of_tree());
  if (mask[field++]) {
    EncodeIslands(solution.islands, message->mutable_islands());
  } else {
    message->clear_islands();
  }
  if (mask[field++]) {
    message->mutable_timings()->set_islands_s(solution.times.islands_s);
    message->mutable_timings()->set_solve_s(solution.times.solve_s);
  } else {
    message->clear_timings();
  }
}

}  // namespace sap
