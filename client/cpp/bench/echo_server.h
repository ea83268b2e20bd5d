// A bare gRPC server that says what a sap-server would say: it solves the first problem of each
// call's kind and size once, and from then on answers with the same bytes without looking at what
// came. What it takes is what gRPC takes, for messages of the same sizes.
#pragma once

#include <functional>
#include <string>

namespace sap::client {

// Serves until the process ends, and says on which address. Returns why it cannot.
std::string ServeEcho(const std::string& address, int threads,
                      const std::function<void(const std::string& address)>& listening);

}  // namespace sap::client
