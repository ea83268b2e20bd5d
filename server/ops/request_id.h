// The id by which a client and an operator find the same call: header x-request-id, log line, and
// trailing metadata of failed calls.
#pragma once

#include <grpcpp/server_context.h>

#include <array>
#include <string_view>

namespace sap {

// Belongs to one call. The id is made when it is first asked for, so calls that are neither logged
// nor fail cost nothing, and without allocation: it belongs to the answer of a call that found no
// memory, too. Not thread-safe.
class RequestId {
 public:
  // The client's header if it is printable, cut to 256 bytes; otherwise 32 hexadecimal digits.
  // Valid as long as this object and the call.
  std::string_view Of(const grpc::ServerContext& context);

  // Sends it in the trailing metadata. At most once, before the call is finished.
  void Return(grpc::ServerContext* context);

  // For the next call.
  void Clear() { id_ = {}; }

 private:
  std::string_view id_;
  std::array<char, 32> made_;
};

// Header of a call; empty if there is none.
std::string_view HeaderOf(const grpc::ServerContext& context, const char* name);

// Whether gRPC sends the text. It receives other bytes, too, and aborts where they are sent.
bool IsPrintable(std::string_view text);

// 32 hexadecimal digits, different at each call in all processes.
std::array<char, 32> MakeRequestId();

}  // namespace sap
