#include "client/cpp/transport/server_identity.h"

#include <algorithm>

namespace sap::client {
namespace {

constexpr const char* kOtherBuild = "OTHER_BUILD";

}  // namespace

ServerIdentity ParseServerIdentity(std::string_view text) {
  if (std::ranges::count(text, ' ') != 2) return {};
  const size_t last = text.rfind(' ');
  return {text.substr(0, last), text.substr(last + 1)};
}

std::string BuildName(const std::string& version, const std::string& instruction_set) {
  return version + " " + instruction_set;
}

bool IsOtherBuild(const Error& error) { return error.reason == kOtherBuild; }

Status BuildPin::Check(ServerIdentity server) const {
  const std::lock_guard lock(mutex_);
  return CheckLocked(server);
}

Status BuildPin::Take(ServerIdentity server) {
  const std::lock_guard lock(mutex_);
  if (build_.empty()) build_ = server.build;
  return CheckLocked(server);
}

void BuildPin::TakeAny(ServerIdentity server) {
  const std::lock_guard lock(mutex_);
  if (!server.build.empty()) build_ = server.build;
}

void BuildPin::Forget() {
  const std::lock_guard lock(mutex_);
  build_.clear();
}

std::string BuildPin::build() const {
  const std::lock_guard lock(mutex_);
  return build_;
}

Status BuildPin::CheckLocked(ServerIdentity server) const {
  if (server.build.empty() || build_.empty() || build_ == server.build) return {};
  std::string message = "server " + std::string(server.boot_id) + " is " +
                        std::string(server.build) + ", the answers before are of " + build_ +
                        ": bits may differ; begin again, or set allow_mixed_servers";
  Error error{ErrorCode::kFailedPrecondition, std::move(message), "", kOtherBuild};
  error.server = server.boot_id;
  return tl::unexpected(std::move(error));
}

}  // namespace sap::client
