#include "client/cpp/transport/server_mark.h"

#include <algorithm>

namespace sap::client {

ServerMark ParseServerMark(std::string_view text) {
  if (std::ranges::count(text, ' ') != 2) return {};
  const size_t last = text.rfind(' ');
  return {text.substr(0, last), text.substr(last + 1)};
}

Transport::Status BuildCheck::Check(ServerMark mark) {
  if (allow_mixed_servers_ || mark.build.empty()) return {};
  const std::lock_guard lock(mutex_);
  if (first_.empty()) first_ = mark.build;
  if (first_ == mark.build) return {};
  std::string message = "server " + std::string(mark.boot_id) + " is " + std::string(mark.build) +
                        ", the first one was " + first_ +
                        ": bits may differ; set allow_mixed_servers";
  return tl::unexpected(Error{ErrorCode::kFailedPrecondition, std::move(message), ""});
}

}  // namespace sap::client
