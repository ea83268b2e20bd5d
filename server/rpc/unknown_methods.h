// Answers calls of methods that the server does not have with UNIMPLEMENTED.
//
// gRPC 1.51 would do so itself, but where several threads poll its queue, it now and then hands one
// of them a null tag in place of such a call, which then is never answered (grpc issue 32356).
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <string>
#include <utility>

#include "server/rpc/in_flight_calls.h"

namespace sap {

class UnknownMethods {
 public:
  // A service that the server may have and has not, and why.
  struct Absent {
    std::string prefix;  // of the paths of its methods
    const char* text;
  };

  // The text is that of the status, except for methods of the absent service.
  UnknownMethods(InFlightCalls* in_flight_calls, const char* text, Absent absent = {"", nullptr})
      : in_flight_calls_(in_flight_calls), text_(text), absent_(std::move(absent)) {}

  grpc::AsyncGenericService* service() { return &service_; }

  // Keeps `count` calls awaited on the queue.
  void Await(grpc::ServerCompletionQueue* queue, int count);

 private:
  class Call;

  grpc::AsyncGenericService service_;
  InFlightCalls* const in_flight_calls_;
  const char* const text_;
  const Absent absent_;
};

}  // namespace sap
