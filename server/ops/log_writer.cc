#include "server/ops/log_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

namespace sap {
namespace {

constexpr mode_t kMode = 0640;
constexpr size_t kMostLines = 8192;
constexpr std::chrono::seconds kLastLines{1};

// Without O_NONBLOCK, opening a named pipe would wait for its reader. Writing waits, on the thread
// of the writer.
tl::expected<int, std::string> OpenForAppending(const std::string& path) {
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, kMode);
  if (fd < 0) return tl::unexpected("cannot log to " + path + ": " + std::strerror(errno));
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  return fd;
}

void WriteAll(int fd, const std::string& text) {
  const char* rest = text.data();
  for (size_t left = text.size(); left > 0;) {
    const ssize_t written = write(fd, rest, left);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      // Standard error may be non-blocking: it is whoever started the server that says so.
      pollfd writable{fd, POLLOUT, 0};
      poll(&writable, 1, -1);
      continue;
    }
    if (written <= 0) return;
    rest += written;
    left -= static_cast<size_t>(written);
  }
}

}  // namespace

struct LogWriter::State {
  State(std::string file, int descriptor) : path(std::move(file)), fd(descriptor) {}
  ~State() {
    if (!path.empty()) close(fd);
  }

  void Run();
  void Reopen(const ReopenedLine& line);
  bool HasWork() const { return reopened || !lines.empty(); }

  const std::string path;
  int fd;  // used by the writer's thread alone

  std::mutex mutex;
  std::condition_variable work;
  std::condition_variable idle;
  std::deque<std::string> lines;
  ReopenedLine reopened;  // of a reopening that is asked for
  bool busy{false};       // with a line that is no longer among them, or with a reopening
  bool closing{false};
  uint64_t dropped{0};
  uint64_t reported{0};  // of those dropped
};

tl::expected<std::unique_ptr<LogWriter>, std::string> LogWriter::Open(const std::string& path) {
  int fd = STDERR_FILENO;
  if (!path.empty()) {
    const auto opened = OpenForAppending(path);
    if (!opened) return tl::unexpected(opened.error());
    fd = *opened;
  }
  return std::unique_ptr<LogWriter>(new LogWriter(std::make_shared<State>(path, fd)));
}

LogWriter::LogWriter(std::shared_ptr<State> state)
    : state_(std::move(state)), thread_([state = state_] { state->Run(); }) {}

LogWriter::~LogWriter() {
  const bool flushed = Flush(kLastLines);
  {
    const std::lock_guard lock(state_->mutex);
    state_->closing = true;
  }
  state_->work.notify_one();
  if (flushed) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void LogWriter::Write(std::string line) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->lines.size() >= kMostLines) {
      state_->lines.pop_front();
      ++state_->dropped;
    }
    state_->lines.push_back(std::move(line));
  }
  state_->work.notify_one();
}

void LogWriter::Reopen(ReopenedLine line) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->reopened = std::move(line);
  }
  state_->work.notify_one();
}

bool LogWriter::Flush(std::chrono::milliseconds timeout) {
  std::unique_lock lock(state_->mutex);
  return state_->idle.wait_for(lock, timeout,
                               [this] { return !state_->HasWork() && !state_->busy; });
}

uint64_t LogWriter::dropped() const {
  const std::lock_guard lock(state_->mutex);
  return state_->dropped;
}

uint64_t LogWriter::TakeDropped() {
  const std::lock_guard lock(state_->mutex);
  if (state_->lines.size() > kMostLines / 2) return 0;
  return state_->dropped - std::exchange(state_->reported, state_->dropped);
}

void LogWriter::State::Run() {
  std::unique_lock lock(mutex);
  for (;;) {
    if (!HasWork()) idle.notify_all();
    work.wait(lock, [this] { return closing || HasWork(); });
    if (closing) return;
    busy = true;
    if (const ReopenedLine line = std::exchange(reopened, nullptr)) {
      lock.unlock();
      Reopen(line);
    } else {
      const std::string text = std::move(lines.front());
      lines.pop_front();
      lock.unlock();
      WriteAll(fd, text);
    }
    lock.lock();
    busy = false;
  }
}

void LogWriter::State::Reopen(const ReopenedLine& line) {
  std::string error;
  if (!path.empty()) {
    const auto opened = OpenForAppending(path);
    if (opened) {
      close(std::exchange(fd, *opened));
    } else {
      error = opened.error();
    }
  }
  WriteAll(fd, line(error));
}

}  // namespace sap
