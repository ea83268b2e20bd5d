// A gRPC channel to the servers of an address, with the credentials of the client. Internal.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "client/cpp/credentials.h"
#include "client/cpp/error.h"
#include "client/cpp/transport/address.h"

namespace sap::client {

struct Channel {
  std::shared_ptr<grpc::Channel> channel;
  std::string authorization;  // value of that header in every call; empty: none is sent
};

// Which of several servers calls go to.
enum class Servers : uint8_t {
  kHealthy,  // those whose health service says that they serve, in turn
  kAny,      // the first one that accepts a connection
};

// Reads the files of the credentials. An error if one cannot be read, if a token would be sent to
// another machine unencrypted, or if it is unknown which name certificates should have.
tl::expected<Channel, Error> MakeChannel(const Address& address, const Credentials& credentials,
                                         Servers servers = Servers::kHealthy);

}  // namespace sap::client
