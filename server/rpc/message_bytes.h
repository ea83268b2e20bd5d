// Messages from and to the bytes that gRPC receives and sends.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include "proto/codec/message_bounds.h"
#include "server/service_error.h"

namespace sap {

// Parses the bytes of a message, if they are within its bounds, and frees them. An error if they
// are not, or are no message, or if memory is short; the message is empty then, since a call may
// last until its client has taken the error, and sending it may need the memory.
template <typename Message>
ServiceStatus ParseMessage(const MessageBounds& bounds, grpc::ByteBuffer* bytes, Message* message) {
  ServiceStatus parsed = CatchExceptions([&]() -> ServiceStatus {
    const EngineStatus checked = [&] {
      grpc::ProtoBufferReader reader(bytes);
      return bounds.Check(&reader);
    }();
    if (checked && grpc::SerializationTraits<Message>::Deserialize(bytes, message).ok()) return {};
    return tl::unexpected(checked ? ServiceError(NotAMessage()) : ServiceError(checked.error()));
  });
  if (!parsed) {
    bytes->Clear();
    *message = Message();
  }
  return parsed;
}

template <typename Message>
grpc::ByteBuffer Serialize(const Message& message) {
  grpc::ByteBuffer bytes;
  bool own = false;
  // Fails above 2 GB, which no answer has: its bounds are those of a message. Then it is empty.
  (void)grpc::SerializationTraits<Message>::Serialize(message, &bytes, &own);
  return bytes;
}

}  // namespace sap
