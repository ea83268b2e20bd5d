#include "client/cpp/transport/authorization.h"

#include <algorithm>
#include <system_error>

#include "client/cpp/files/message_file.h"

namespace sap::client {
namespace {

tl::unexpected<Error> Invalid(const std::string& message) {
  return tl::unexpected(Error{ErrorCode::kInvalidArgument, message, ""});
}

// The header for one token, which may end with a line break. gRPC ends the process over other
// characters than these.
tl::expected<std::string, Error> HeaderOf(std::string token, const std::string& source) {
  token.erase(token.find_last_not_of(" \t\r\n") + 1);
  const bool is_one = std::ranges::all_of(token, [](char c) { return c > ' ' && c <= '~'; });
  if (token.empty() || !is_one) return Invalid(source + ": must hold exactly one token");
  return "Bearer " + token;
}

}  // namespace

tl::expected<std::shared_ptr<Authorization>, Error> Authorization::Make(
    const Credentials& credentials) {
  if (!credentials.token.empty() && !credentials.token_file.empty()) {
    return Invalid("a token must be given as text or in a file, not both");
  }
  std::shared_ptr<Authorization> made(new Authorization(credentials.token_file));
  tl::expected<std::string, Error> header = "";
  if (!credentials.token.empty()) header = HeaderOf(credentials.token, "credentials.token");
  if (!credentials.token_file.empty()) {
    std::error_code ignored;
    made->written_ = std::filesystem::last_write_time(credentials.token_file, ignored);
    auto token = ReadFile(credentials.token_file);
    header = token ? HeaderOf(*token, credentials.token_file) : token;
  }
  if (!header) return tl::unexpected(header.error());
  made->value_ = std::move(*header);
  return made;
}

std::string Authorization::Value() {
  const std::lock_guard lock(mutex_);
  if (token_file_.empty()) return value_;
  std::error_code missing;
  const auto written = std::filesystem::last_write_time(token_file_, missing);
  if (missing || written == written_) return value_;
  const auto token = ReadFile(token_file_);
  const auto header = token ? HeaderOf(*token, token_file_) : token;
  if (!header) return value_;
  written_ = written;
  value_ = *header;
  return value_;
}

}  // namespace sap::client
