// Token file: client names, their bearer tokens, and what they may do beyond or below the defaults.
//
//   # name  token  [key=value ...]
//   robot-7  4f1c0d...  priority=high sessions=16 bytes=64Mi solve-s=2 rate=200
//
// A client may have several tokens, each on a line of its own with the same entitlements. The file
// is reloaded when it changes, so tokens can be rotated without a restart. No log line or error
// message contains a token.
//
// While the file is absent or invalid, the tokens of the last valid one stay in use: an absent file
// more often is a volume that is being remounted or a deployment that replaces it in two steps than
// a decision to turn all clients away, and the latter would stop every robot at once. To revoke all
// tokens, leave one line with a token that nobody has.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <istream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tl/expected.hpp>
#include <unordered_map>

#include "server/server_config.h"

namespace sap {

// Thread-safe.
class BearerTokens {
 public:
  // Receives messages for the operator.
  using Log = std::function<void(const std::string& message)>;

  struct Client {
    std::string name;
    Entitlements entitlements;
  };

  // Fails with an error message if the file cannot be read or violates the format. The defaults
  // apply to what a line does not state.
  static tl::expected<std::unique_ptr<BearerTokens>, std::string> Open(
      const std::string& path, Log log, const Entitlements& defaults = {});

  // The client for an authorization header, or nothing if the token is unknown. Neither waits for
  // the file nor tells by its time how much of a token is right: tokens are found by their hash.
  std::optional<Client> Find(std::string_view header) const;

  // Number of the contents in use; another one after each reload.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

 private:
  using Table = std::unordered_map<std::string, Client>;  // by SHA-256 of the token

  BearerTokens(std::string path, Log log, const Entitlements& defaults)
      : path_(std::move(path)), log_(std::move(log)), defaults_(defaults) {}

  // Reloads the file if it has changed. If the new file is invalid, the old tokens stay in use.
  void Refresh();
  tl::expected<void, std::string> Read();
  tl::expected<Table, std::string> Parse(std::istream& file) const;
  tl::expected<Table::value_type, std::string> ParseLine(std::istream& words) const;

  std::shared_ptr<const Table> clients() const {
    const std::lock_guard lock(mutex_);
    return clients_;
  }

  const std::string path_;
  const Log log_;
  const Entitlements defaults_;
  std::atomic<uint64_t> version_{0};
  mutable std::mutex mutex_;  // held to copy or replace the pointer
  std::shared_ptr<const Table> clients_;
  struct stat read_ {};     // status of the file when it was loaded
  std::string last_error_;  // of a reload; logged once, not at every check
  // Calls Refresh every second, so that no call waits for a file system that hangs.
  std::jthread refresher_;
};

}  // namespace sap
