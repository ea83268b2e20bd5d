// A gRPC channel to a server, with what a client shows to it. Internal.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "client/cpp/credentials.h"
#include "client/cpp/error.h"

namespace sap::client {

struct Channel {
  std::shared_ptr<grpc::Channel> channel;
  std::string authorization;  // header of every call; empty: none
};

// Files are read now. An error if one cannot be, or if a token would travel unencrypted to another
// machine.
tl::expected<Channel, Error> MakeChannel(const std::string& address,
                                         const Credentials& credentials);

}  // namespace sap::client
