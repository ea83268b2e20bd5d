// The authorization header of a connection. Internal.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "client/cpp/credentials.h"
#include "client/cpp/error.h"

namespace sap::client {

// Thread-safe.
class Authorization {
 public:
  // An error if there is not exactly one token, or none at all.
  static tl::expected<std::shared_ptr<Authorization>, Error> Make(const Credentials& credentials);

  // For the next call; empty: none is sent. A token file that has changed is read again; while it
  // cannot be read, as in the middle of its replacement, the last token is sent.
  std::string Value();

 private:
  explicit Authorization(std::string token_file) : token_file_(std::move(token_file)) {}

  const std::string token_file_;  // empty: none
  std::mutex mutex_;
  std::string value_;
  std::filesystem::file_time_type written_{};  // when the file was, as it was read
};

}  // namespace sap::client
