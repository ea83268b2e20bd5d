// A gRPC channel to the servers of an address, with the credentials of the client. Internal.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "client/cpp/backend/call_types.h"
#include "client/cpp/credentials.h"
#include "client/cpp/error.h"
#include "client/cpp/transport/address.h"
#include "client/cpp/transport/authorization.h"

namespace sap::client {

struct Channel {
  std::shared_ptr<grpc::Channel> channel;
  std::shared_ptr<Authorization> authorization;
  bool encrypted{false};
};

// Refuses gRPC in a child of fork() whose parent had a channel: the child has none of its threads,
// but its descriptors, so that it would wait for ever or break the connections of the parent.
// `made_in`: ForkGeneration() where what is used was made; absent: a new channel is wanted.
Status CheckFork(int made_in = -1);

// Never destroys what a child of fork() cannot: it stays as the parent left it.
template <typename Object>
void LeaveToParent(Object object) {
  static_cast<void>(new Object(std::move(object)));
}

// Which of several servers calls go to.
enum class ServerChoice : uint8_t {
  kHealthy,  // those whose health service says that they serve, in turn
  kAny,      // the first one that accepts a connection
};

// Reads the files of the credentials. An error if one cannot be read, if a token would be sent to
// another machine unencrypted, or if it is unknown which name certificates should have.
tl::expected<Channel, Error> MakeChannel(const Address& address, const Credentials& credentials,
                                         ServerChoice choice = ServerChoice::kHealthy);

}  // namespace sap::client
