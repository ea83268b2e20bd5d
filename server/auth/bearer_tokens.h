// Token file: client names and their bearer tokens.
//
//   # one client per line
//   robot-7  4f1c0d...
//
// The file is reloaded when it changes, so tokens can be rotated without a restart. No log line or
// error message contains a token.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace sap {

// Thread-safe.
class BearerTokens {
 public:
  // Receives messages for the operator.
  using Log = std::function<void(const std::string& message)>;

  // Fails with an error message if the file cannot be read or violates the format.
  static tl::expected<std::unique_ptr<BearerTokens>, std::string> Open(const std::string& path,
                                                                       Log log);

  // The client name for an authorization header, or nothing if the token is unknown. The comparison
  // takes the same time for all wrong tokens of equal length. Checks at most once per second
  // whether the file has changed; if the new file is invalid, the old tokens stay in use.
  std::optional<std::string> NameOf(std::string_view header);

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::string name;
    std::string token;
  };

  BearerTokens(std::string path, Log log) : path_(std::move(path)), log_(std::move(log)) {}

  tl::expected<void, std::string> Read();
  static tl::expected<std::vector<Entry>, std::string> Parse(std::istream& file);

  const std::string path_;
  const Log log_;
  std::mutex mutex_;
  std::vector<Entry> entries_;
  struct stat read_ {};  // status of the file when it was loaded
  Clock::time_point checked_;
};

}  // namespace sap
