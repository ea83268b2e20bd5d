#include "server/auth/watched_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>

namespace sap {
namespace {

constexpr std::chrono::seconds kBetweenLooks{1};
constexpr size_t kLargestFile_bytes = size_t{64} << 20;

bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

tl::unexpected<std::string> Failure(int error) {
  return tl::unexpected<std::string>(std::strerror(error));
}

tl::expected<std::string, std::string> ReadAll(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return Failure(errno);
  if (S_ISDIR(status.st_mode)) return Failure(EISDIR);
  if (!S_ISREG(status.st_mode)) return tl::unexpected<std::string>("it is not a regular file");
  std::string text;
  std::array<char, 65536> bytes;
  for (;;) {
    const ssize_t count = read(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failure(errno);
    if (count == 0) return text;
    text.append(bytes.data(), static_cast<size_t>(count));
    if (text.size() > kLargestFile_bytes) return Failure(EFBIG);
  }
}

}  // namespace

tl::expected<std::string, std::string> ReadRegularFile(const std::string& path) {
  // Without O_NONBLOCK the call itself would wait for the writer of a pipe.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return Failure(errno);
  auto text = ReadAll(fd);
  close(fd);
  return text;
}

tl::expected<std::unique_ptr<WatchedFiles>, std::string> WatchedFiles::Open(
    std::vector<std::string> paths, std::string kept, Use use, Log log) {
  std::unique_ptr<WatchedFiles> self(
      new WatchedFiles(std::move(paths), std::move(kept), std::move(use), std::move(log)));
  if (const auto read = self->Read(); !read) return tl::unexpected(read.error());
  self->refresher_ = std::jthread([files = self.get()](const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any wake;
    const auto stopped = [&stop] { return stop.stop_requested(); };
    while (!wake.wait_for(lock, stop, kBetweenLooks, stopped)) files->Refresh();
  });
  return self;
}

WatchedFiles::Statuses WatchedFiles::Look() const {
  Statuses statuses;
  for (const std::string& path : paths_) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) status = {};
    statuses.push_back(status);
  }
  return statuses;
}

void WatchedFiles::Refresh() {
  if (!failed() && std::ranges::equal(Look(), seen_, SameFile)) return;
  const auto read = Read();
  std::string error = read ? "" : read.error();
  if (!read && error != last_error_) log_(error + "; " + kept_);
  last_error_ = std::move(error);
  failed_.store(!read, std::memory_order_relaxed);
}

tl::expected<void, std::string> WatchedFiles::Read() {
  // Before the files are read: what is written after this look is found by the next one.
  seen_ = Look();
  Contents contents;
  for (const std::string& path : paths_) {
    auto text = ReadRegularFile(path);
    if (!text) return tl::unexpected("cannot read " + path + ": " + text.error());
    contents.push_back(std::move(*text));
  }
  return use_(contents);
}

}  // namespace sap
