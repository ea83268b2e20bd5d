#include "server/ops/log_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sap {
namespace {

constexpr mode_t kMode = 0640;

tl::expected<int, std::string> OpenForAppending(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kMode);
  if (fd < 0) return tl::unexpected("cannot log to " + path + ": " + std::strerror(errno));
  return fd;
}

}  // namespace

tl::expected<std::shared_ptr<LogFile>, std::string> LogFile::Open(const std::string& path) {
  const auto fd = OpenForAppending(path);
  if (!fd) return tl::unexpected(fd.error());
  return std::shared_ptr<LogFile>(new LogFile(path, *fd));
}

LogFile::~LogFile() { close(fd_); }

std::string LogFile::Reopen() {
  const auto fd = OpenForAppending(path_);
  if (!fd) return fd.error();
  const std::lock_guard lock(mutex_);
  close(fd_);
  fd_ = *fd;
  return "";
}

void LogFile::sink_it_(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t line;
  formatter_->format(message, line);
  const char* rest = line.data();
  for (size_t left = line.size(); left > 0;) {
    const ssize_t written = write(fd_, rest, left);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    rest += written;
    left -= static_cast<size_t>(written);
  }
}

}  // namespace sap
