// Who may call: a file of clients' names and their bearer tokens.
//
//   # one client a line
//   robot-7  4f1c0d...
//
// The file is read again when it has changed, so that tokens are rotated without a restart. No
// message ever holds a token.
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
  // Told what an operator should know about the file.
  using Log = std::function<void(const std::string& message)>;

  // Fails with a sentence for the operator: if the file cannot be read, or breaks its rules.
  static tl::expected<std::unique_ptr<BearerTokens>, std::string> Open(const std::string& path,
                                                                       Log log);

  // The client whose token an authorization header carries; none, if it carries none of them. Takes
  // the same time for any wrong token of a length. Looks for a changed file once a second; if that
  // cannot be used, what was read before stays.
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
  struct stat read_ {};  // of the file that was read
  Clock::time_point checked_;
};

}  // namespace sap
