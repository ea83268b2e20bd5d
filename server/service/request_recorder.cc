#include "server/service/request_recorder.h"

#include <fcntl.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

namespace sap {
namespace {

// Bound of the queued bytes; a single record may exceed it.
constexpr size_t kMostQueued_bytes = size_t{64} << 20;

// "solves-20260131T235959Z-4711-1.saprec": sorts by time; process id and counter make it unique.
std::string FileName() {
  static std::atomic<int> number{0};
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> time;
  std::strftime(time.data(), time.size(), "%Y%m%dT%H%M%SZ", &utc);
  return std::string("solves-") + time.data() + "-" + std::to_string(getpid()) + "-" +
         std::to_string(++number) + ".saprec";
}

}  // namespace

RequestRecorder::RequestRecorder(Log log) : log_(std::move(log)) {
  thread_ = std::thread([this] { Work(); });
}

RequestRecorder::~RequestRecorder() {
  End();
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  work_.notify_one();
  thread_.join();
}

tl::expected<std::string, std::string> RequestRecorder::Begin(const RecordingConfig& config) {
  std::error_code error;
  if (!std::filesystem::is_directory(config.directory, error)) {
    return tl::unexpected("cannot record to " + config.directory + ": " +
                          (error ? error.message() : "it is not a directory"));
  }
  std::string path = (std::filesystem::path(config.directory) / FileName()).string();
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (fd < 0) return tl::unexpected("cannot record to " + path + ": " + std::strerror(errno));
  auto file = std::make_unique<google::protobuf::io::FileOutputStream>(fd);
  End();
  const std::lock_guard lock(mutex_);
  current_ = std::make_shared<Recording>(Recording{config, path, std::move(file)});
  rule_.store(config.rule, std::memory_order_relaxed);
  slower_than_s_.store(config.slower_than_s, std::memory_order_relaxed);
  active_.store(true, std::memory_order_relaxed);
  return path;
}

std::string RequestRecorder::End() {
  std::string path;
  {
    const std::lock_guard lock(mutex_);
    if (current_ == nullptr) return path;
    path = current_->path;
    active_.store(false, std::memory_order_relaxed);
    queue_.push_back({std::move(current_), std::nullopt});
    current_ = nullptr;
  }
  work_.notify_one();
  return path;
}

bool RequestRecorder::Wants(bool failed, double duration_s) const {
  if (!active_.load(std::memory_order_relaxed)) return false;
  switch (rule_.load(std::memory_order_relaxed)) {
    case RecordingConfig::Rule::kAll:
      return true;
    case RecordingConfig::Rule::kFailed:
      return failed;
    case RecordingConfig::Rule::kSlower:
      return duration_s > slower_than_s_.load(std::memory_order_relaxed);
  }
  return false;
}

void RequestRecorder::Add(v1::RecordedSolve record) {
  const size_t bytes = record.ByteSizeLong();
  {
    const std::lock_guard lock(mutex_);
    if (current_ == nullptr) return;
    if (!queue_.empty() && queued_bytes_ + bytes > kMostQueued_bytes) return Drop();
    queue_.push_back({current_, std::move(record)});
    queued_bytes_ += bytes;
  }
  work_.notify_one();
}

void RequestRecorder::Work() {
  while (const auto task = NextTask()) {
    if (task->record) {
      Write(task->recording.get(), *task->record);
    } else {
      Finish(task->recording.get());
    }
  }
}

// Returns nothing once the recorder is closing and the queue is empty.
std::optional<RequestRecorder::Task> RequestRecorder::NextTask() {
  std::unique_lock lock(mutex_);
  work_.wait(lock, [this] { return closing_ || !queue_.empty(); });
  if (queue_.empty()) return std::nullopt;
  Task task = std::move(queue_.front());
  queue_.pop_front();
  if (task.record) queued_bytes_ -= task.record->ByteSizeLong();
  return task;
}

void RequestRecorder::Write(Recording* recording, const v1::RecordedSolve& record) {
  if (recording->stopped) return Drop();
  constexpr int64_t kMostPrefix_bytes = 5;  // varint of a length below 2 GiB
  const auto bytes = static_cast<int64_t>(record.ByteSizeLong()) + kMostPrefix_bytes;
  if (recording->written_bytes + bytes > recording->config.max_bytes) {
    Drop();
    return Stop(recording, "its limit of " + std::to_string(recording->config.max_bytes) +
                               " bytes is reached");
  }
  // Flushed with each record, so that records survive if the server is killed, and a full disk is
  // reported at once. No call waits for the disk.
  google::protobuf::io::FileOutputStream* const file = recording->file.get();
  if (!google::protobuf::util::SerializeDelimitedToZeroCopyStream(record, file) || !file->Flush()) {
    Drop();
    return Stop(recording, "it cannot be written: " + std::string(std::strerror(file->GetErrno())));
  }
  recording->written_bytes += bytes;
  ++recording->recorded;
}

void RequestRecorder::Stop(Recording* recording, const std::string& why) {
  recording->stopped = true;
  {
    const std::lock_guard lock(mutex_);
    if (current_.get() == recording) active_.store(false, std::memory_order_relaxed);
  }
  log_("recording to " + recording->path + " ends here: " + why);
}

void RequestRecorder::Finish(Recording* recording) {
  // Some file systems report failed writes only here.
  if (!recording->file->Close() && !recording->stopped) {
    log_("recording to " + recording->path +
         " may lack records: " + std::strerror(recording->file->GetErrno()));
  }
  log_("recorded " + std::to_string(recording->recorded) + " solves to " + recording->path +
       ", dropped " + std::to_string(dropped()));
}

}  // namespace sap
