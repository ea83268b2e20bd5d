// A log file that can be reopened under its name, for log rotation.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <memory>
#include <mutex>
#include <string>
#include <tl/expected.hpp>

namespace sap {

// Thread-safe. Each line is appended by one write, without a buffer. Lines that cannot be written,
// as on a full disk, are lost.
class LogFile final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // Creates the file for its owner and group if it does not exist. Fails with an error message.
  static tl::expected<std::shared_ptr<LogFile>, std::string> Open(const std::string& path);
  ~LogFile() override;

  // Opens the file of this name anew. Returns an error message, and writes on to the file of
  // before, if that fails; otherwise an empty string.
  std::string Reopen();

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

 private:
  LogFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  const std::string path_;
  int fd_;
};

}  // namespace sap
