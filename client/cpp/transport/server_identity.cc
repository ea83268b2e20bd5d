#include "client/cpp/transport/server_identity.h"

#include <algorithm>

namespace sap::client {

ServerIdentity ParseServerIdentity(std::string_view text) {
  if (std::ranges::count(text, ' ') != 2) return {};
  const size_t last = text.rfind(' ');
  return {text.substr(0, last), text.substr(last + 1)};
}

Status BuildCheck::Check(ServerIdentity server) {
  if (allow_mixed_servers_ || server.build.empty()) return {};
  const std::lock_guard lock(mutex_);
  if (first_.empty()) first_ = server.build;
  if (first_ == server.build) return {};
  std::string message = "server " + std::string(server.boot_id) + " is " +
                        std::string(server.build) + ", the first one was " + first_ +
                        ": bits may differ; set allow_mixed_servers";
  return tl::unexpected(Error{ErrorCode::kFailedPrecondition, std::move(message), ""});
}

}  // namespace sap::client
