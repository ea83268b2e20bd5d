// Answers calls of methods that the server does not have with UNIMPLEMENTED.
//
// gRPC 1.51 would do so itself, but where several threads poll its queue, it now and then hands one
// of them a null tag in place of such a call, which then is never answered (grpc issue 32356).
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include "server/rpc/in_flight_calls.h"

namespace sap {

class UnknownMethods {
 public:
  // The text is that of the status.
  UnknownMethods(InFlightCalls* in_flight_calls, const char* text)
      : in_flight_calls_(in_flight_calls), text_(text) {}

  grpc::AsyncGenericService* service() { return &service_; }

  // Keeps `count` calls awaited on the queue.
  void Await(grpc::ServerCompletionQueue* queue, int count);

 private:
  class Call;

  grpc::AsyncGenericService service_;
  InFlightCalls* const in_flight_calls_;
  const char* const text_;
};

}  // namespace sap
