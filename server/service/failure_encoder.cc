#include "server/service/failure_encoder.h"

#include <cmath>

namespace sap {

void EncodeFailure(const ServiceError& error, v1::Failure* message) {
  message->set_code(static_cast<int32_t>(error.code));
  message->set_message(error.message);
  message->set_field(error.field);
  message->set_reason(error.reason);
  if (error.retry_after_s > 0) SetDuration(error.retry_after_s, message->mutable_retry_delay());
}

void SetDuration(double seconds, google::protobuf::Duration* message) {
  const double whole = std::floor(seconds);
  message->set_seconds(static_cast<int64_t>(whole));
  message->set_nanos(static_cast<int32_t>((seconds - whole) * 1e9));
}

}  // namespace sap
