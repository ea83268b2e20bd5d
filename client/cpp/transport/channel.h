// A gRPC channel to a server, with the credentials of the client. Internal.
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
  std::string authorization;  // value of that header in every call; empty: none is sent
};

// Reads the files of the credentials. An error if one cannot be read, or if a token would be sent
// to another machine unencrypted.
tl::expected<Channel, Error> MakeChannel(const std::string& address,
                                         const Credentials& credentials);

}  // namespace sap::client
