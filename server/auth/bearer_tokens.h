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
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

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

  // The client for an authorization header, or nothing if the token is unknown. The comparison
  // takes the same time for all wrong tokens of equal length. Calls Refresh.
  std::optional<Client> Find(std::string_view header);

  // Reloads the file if it has changed, which is checked at most once per second. If the new file
  // is invalid, the old tokens stay in use.
  void Refresh();

  // Number of the contents in use; another one after each reload.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    Client client;
    std::string token;
  };

  BearerTokens(std::string path, Log log, const Entitlements& defaults)
      : path_(std::move(path)), log_(std::move(log)), defaults_(defaults) {}

  void RefreshLocked();
  tl::expected<void, std::string> Read();
  tl::expected<std::vector<Entry>, std::string> Parse(std::istream& file) const;
  tl::expected<Entry, std::string> ParseLine(std::istream& words) const;
  static std::string Conflict(const std::vector<Entry>& entries, const Entry& entry);

  const std::string path_;
  const Log log_;
  const Entitlements defaults_;
  std::atomic<uint64_t> version_{0};
  std::mutex mutex_;
  std::vector<Entry> entries_;
  struct stat read_ {};  // status of the file when it was loaded
  Clock::time_point checked_;
  std::string last_error_;  // of a reload; logged once, not at every check
};

}  // namespace sap
