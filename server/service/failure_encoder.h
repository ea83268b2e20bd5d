// Encodes errors into messages.
#pragma once

#include <google/protobuf/duration.pb.h>

#include "sap/v1/solver_service.pb.h"
#include "server/service_error.h"

namespace sap {

// Encodes the error of a batch problem or session step.
void EncodeFailure(const ServiceError& error, v1::Failure* message);

void SetDuration(double seconds, google::protobuf::Duration* message);

}  // namespace sap
