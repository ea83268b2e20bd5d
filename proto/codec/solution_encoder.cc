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

void EncodeIslands(const std::vector<IslandReport>& islands, v1::IslandReports* message) {
  message->Clear();
  const int count = static_cast<int>(islands.size());
  message->mutable_status()->Reserve(count);
  message->mutable_iterations()->Reserve(count);
  message->mutable_factorizations()->Reserve(count);
  message->mutable_momentum_residual()->Reserve(count);
  message->mutable_optimality_gap_bound()->Reserve(count);
  message->mutable_dofs()->Reserve(count);
  message->mutable_contacts()->Reserve(count);
  message->mutable_solve_time_s()->Reserve(count);
  message->mutable_rows()->Reserve(count);
  message->mutable_cost()->Reserve(count);
  message->mutable_sag()->Reserve(count);
  message->mutable_creep()->Reserve(count);
  const bool with_coulomb = HasCoulombReports(islands);
  if (with_coulomb) {
    message->mutable_coulomb_rounds()->Reserve(count);
    message->mutable_coulomb_defect()->Reserve(count);
  }
  const bool with_rest = HasRestReports(islands);
  if (with_rest) message->mutable_rest_drift()->Reserve(count);
  for (int i = 0; i < count; ++i) {
    const IslandReport& island = islands[i];
    if (island.swept) message->add_swept(i);
    message->add_status(EncodeStatus(island.status));
    message->add_iterations(island.iterations);
    message->add_factorizations(island.factorizations);
    message->add_momentum_residual(island.momentum_residual);
    message->add_optimality_gap_bound(island.optimality_gap_bound);
    message->add_dofs(island.dofs);
    message->add_contacts(island.contacts);
    message->add_solve_time_s(island.solve_time_s);
    message->add_rows(island.rows);
    message->add_cost(island.cost);
    message->add_sag(island.sag);
    message->add_creep(island.creep);
    if (with_rest) message->add_rest_drift(island.rest_drift);
    if (!with_coulomb) continue;
    message->add_coulomb_rounds(island.coulomb_rounds);
    message->add_coulomb_defect(island.coulomb_defect);
  }
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
