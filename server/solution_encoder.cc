#include "server/solution_encoder.h"

#include <vector>

namespace sap {
namespace {

using Fields = v1::ContactSolution;

template <typename Value>
void Copy(const std::vector<Value>& values, google::protobuf::RepeatedField<Value>* field) {
  field->Assign(values.begin(), values.end());
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
  }
  return v1::ISLAND_STATUS_UNSPECIFIED;
}

void EncodeIslands(const std::vector<IslandReport>& islands, v1::IslandReports* message) {
  const int count = static_cast<int>(islands.size());
  message->mutable_status()->Reserve(count);
  message->mutable_iterations()->Reserve(count);
  message->mutable_factorizations()->Reserve(count);
  message->mutable_momentum_residual()->Reserve(count);
  message->mutable_optimality_gap_bound()->Reserve(count);
  message->mutable_dofs()->Reserve(count);
  message->mutable_contacts()->Reserve(count);
  message->mutable_solve_time_s()->Reserve(count);
  for (const IslandReport& island : islands) {
    message->add_status(EncodeStatus(island.status));
    message->add_iterations(island.iterations);
    message->add_factorizations(island.factorizations);
    message->add_momentum_residual(island.momentum_residual);
    message->add_optimality_gap_bound(island.optimality_gap_bound);
    message->add_dofs(island.dofs);
    message->add_contacts(island.contacts);
    message->add_solve_time_s(island.solve_time_s);
  }
}

}  // namespace

void EncodeSolution(const ContactSolution& solution, const ResponseMask& mask,
                    v1::ContactSolution* message) {
  message->Clear();
  if (mask[Fields::kVelocityFieldNumber]) Copy(solution.velocity, message->mutable_velocity());
  if (mask[Fields::kImpulseFieldNumber]) Copy(solution.impulse, message->mutable_impulse());
  if (mask[Fields::kContactVelocityFieldNumber]) {
    Copy(solution.contact_velocity, message->mutable_contact_velocity());
  }
  if (mask[Fields::kCostFieldNumber]) message->set_cost(solution.cost);
  if (mask[Fields::kIslandOfTreeFieldNumber]) {
    Copy(solution.island_of_tree, message->mutable_island_of_tree());
  }
  if (mask[Fields::kIslandsFieldNumber]) {
    EncodeIslands(solution.islands, message->mutable_islands());
  }
  if (mask[Fields::kTimingsFieldNumber]) {
    message->mutable_timings()->set_islands_s(solution.times.islands_s);
    message->mutable_timings()->set_solve_s(solution.times.solve_s);
  }
}

void EncodeFailure(const ServiceError& error, v1::Failure* message) {
  message->set_code(static_cast<int32_t>(error.code));
  message->set_message(error.message);
  message->set_field(error.field);
}

}  // namespace sap
