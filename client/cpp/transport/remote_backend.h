// Servers, by gRPC. Internal.
#pragma once

#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "client/cpp/backend/backend.h"

namespace sap::v1 {
class DifferentiateRequest;
class DifferentiateResponse;
}  // namespace sap::v1

namespace sap::client {

// An error if no server takes calls within the connect timeout. Calls that are lost are made again,
// see loss.h.
tl::expected<std::unique_ptr<Backend>, Error> RemoteBackend(const std::string& address,
                                                            const ConnectOptions& options);

// Connects, and passes a request that was read from a file on as it is.
Status PassOn(const std::string& address, const ConnectOptions& options,
              const v1::DifferentiateRequest& request, v1::DifferentiateResponse* response);

}  // namespace sap::client
