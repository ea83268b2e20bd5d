#include "proto/codec/derivatives_codec.h"

#include <span>
#include <utility>
#include <vector>

#include "proto/codec/problem_decoder.h"
#include "proto/codec/wanted_inputs.h"
#include "solver/problem/input_differential.h"

namespace sap {
namespace {

using google::protobuf::RepeatedField;

std::span<const double> Values(const RepeatedField<double>& field) {
  return {field.data(), static_cast<size_t>(field.size())};
}

Cotangent DecodeCotangent(const v1::Cotangent& message) {
  Cotangent cotangent;
#define SAP_OUTPUT(name, ...) cotangent.name = Values(message.name());
#include "solver/problem/solution_fields.inc"
  cotangent.cost = message.cost();
  return cotangent;
}

void Assign(const std::vector<double>& values, RepeatedField<double>* field) {
  field->Assign(values.begin(), values.end());
}

void EncodeTangent(const Tangent& tangent, v1::Tangent* message) {
#define SAP_OUTPUT(name, ...) Assign(tangent.name, message->mutable_##name());
#include "solver/problem/solution_fields.inc"
  message->set_cost(tangent.cost);
}

v1::AdjointStatus EncodeAdjointStatus(AdjointStatus status) {
  switch (status) {
    case AdjointStatus::kDifferentiated:
      return v1::ADJOINT_STATUS_DIFFERENTIATED;
    case AdjointStatus::kInaccurate:
      return v1::ADJOINT_STATUS_INACCURATE;
    case AdjointStatus::kDeadline:
      return v1::ADJOINT_STATUS_DEADLINE;
    case AdjointStatus::kNumericalFailure:
      return v1::ADJOINT_STATUS_NUMERICAL_FAILURE;
  }
  return v1::ADJOINT_STATUS_UNSPECIFIED;
}

}  // namespace

DerivativesRequest DecodeDerivatives(const v1::DifferentiateRequest& message) {
  DerivativesRequest request{.velocity = Values(message.velocity()),
                             .hold_delassus = message.hold_delassus(),
                             .wanted = NamesIn(message.wanted()),
                             .given = GivenIn(message.problem())};
  for (const v1::Cotangent& cotangent : message.cotangents()) {
    request.cotangents.push_back(DecodeCotangent(cotangent));
  }
  for (const v1::ContactProblem& direction : message.tangents()) {
    request.directions.push_back(DecodeDirection(direction));
  }
  return request;
}

void EncodeDerivatives(const SolveTask& task, Derivatives* derivatives,
                       v1::DifferentiateResponse* response) {
  const InputSelection& wanted = task.wanted();
  InputDifferential inputs;
  for (size_t k = 0; k < derivatives->gradients.size(); ++k) {
    GradientToInputs(task.view(), task.problem(), k, derivatives, &inputs);
    const Gradient gradient = std::move(derivatives->gradients[k]);
    v1::Gradient* message = response->add_gradients();
    EncodeInputs(inputs, wanted, message->mutable_gradient());
    if (wanted.applied_impulse()) {
      Assign(gradient.applied_impulse, message->mutable_applied_impulse());
    }
    if (wanted.delassus_estimate()) {
      Assign(gradient.problem.w, message->mutable_delassus_estimate());
    }
  }
  for (const Tangent& tangent : derivatives->tangents) {
    EncodeTangent(tangent, response->add_tangents());
  }
  Assign(derivatives->kink_margin, response->mutable_kink_margin());
  for (const AdjointStatus status : derivatives->adjoint_status) {
    response->add_adjoint_status(EncodeAdjointStatus(status));
  }
}

}  // namespace sap
