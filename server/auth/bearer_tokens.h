// Token file: client names, their bearer tokens, and what they may do beyond or below the defaults.
//
//   # name  token  [key=value ...]
//   robot-7  4f1c0d...  priority=high sessions=16 bytes=64Mi solve-s=2 rate=200
//
// A client may have several tokens, each on a line of its own with the same entitlements. The file
// is reloaded when it changes, so tokens can be rotated without a restart; see watched_files.h. To
// revoke all tokens, leave one line with a token that nobody has. No log line or error message
// contains a token.
#pragma once

#include <atomic>
#include <cstdint>
#include <istream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <unordered_map>

#include "server/auth/watched_files.h"
#include "server/server_config.h"

namespace sap {

// Thread-safe.
class BearerTokens {
 public:
  using Log = WatchedFiles::Log;

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

  // Whether the present file is absent or invalid, so that older tokens are in use.
  bool reload_failed() const { return file_->failed(); }

 private:
  using Table = std::unordered_map<std::string, Client>;  // by SHA-256 of the token

  BearerTokens(std::string path, const Entitlements& defaults)
      : path_(std::move(path)), defaults_(defaults) {}

  tl::expected<void, std::string> Use(const std::string& text);
  tl::expected<Table, std::string> Parse(const std::string& text) const;
  tl::expected<Table::value_type, std::string> ParseLine(std::istream& words) const;

  std::shared_ptr<const Table> clients() const {
    const std::lock_guard lock(mutex_);
    return clients_;
  }

  const std::string path_;
  const Entitlements defaults_;
  std::atomic<uint64_t> version_{0};
  mutable std::mutex mutex_;  // held to copy or replace the pointer
  std::shared_ptr<const Table> clients_;
  std::unique_ptr<WatchedFiles> file_;
};

}  // namespace sap
