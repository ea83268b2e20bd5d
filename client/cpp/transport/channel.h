// A gRPC channel to the servers of an address, with the credentials of the client. Internal.
#pragma once

#include <grpcpp/grpcpp.h>

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

// Reads the files of the credentials. An error if one cannot be read, if a token would be sent to
// another machine unencrypted, or if it is unknown which name certificates should have.
tl::expected<Channel, Error> MakeChannel(const Address& address, const Credentials& credentials);

}  // namespace sap::client
