#include "server/request_recorder.h"

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

// Most that waits for the disk; a single record may be larger.
constexpr size_t kMostQueued_bytes = size_t{64} << 20;

// "solves-20260131T235959Z-4711.saprec": sorts by time, and no other process has it.
std::string FileName() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> time;
  std::strftime(time.data(), time.size(), "%Y%m%dT%H%M%SZ", &utc);
  return std::string("solves-") + time.data() + "-" + std::to_string(getpid()) + ".saprec";
}

}  // namespace

tl::expected<std::unique_ptr<RequestRecorder>, std::string> RequestRecorder::Open(
    const RecordingConfig& config, Log log) {
  std::error_code error;
  std::filesystem::create_directories(config.directory, error);
  if (error) {
    return tl::unexpected("cannot record to " + config.directory + ": " + error.message());
  }
  std::string path = (std::filesystem::path(config.directory) / FileName()).string();
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) return tl::unexpected("cannot record to " + path + ": " + std::strerror(errno));
  return std::unique_ptr<RequestRecorder>(
      new RequestRecorder(config, std::move(path), std::move(file), std::move(log)));
}

RequestRecorder::RequestRecorder(const RecordingConfig& config, std::string path,
                                 std::ofstream file, Log log)
    : config_(config), path_(std::move(path)), log_(std::move(log)), file_(std::move(file)) {
  thread_ = std::thread([this] { WriteQueued(); });
}

RequestRecorder::~RequestRecorder() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  work_.notify_one();
  thread_.join();
}

bool RequestRecorder::Wants(bool failed, double duration_s) const {
  if (stopped_.load(std::memory_order_relaxed)) return false;
  switch (config_.rule) {
    case RecordingConfig::Rule::kAll:
      return true;
    case RecordingConfig::Rule::kFailed:
      return failed;
    case RecordingConfig::Rule::kSlower:
      return duration_s > config_.slower_than_s;
  }
  return false;
}

void RequestRecorder::Add(v1::RecordedSolve record) {
  const size_t bytes = record.ByteSizeLong();
  {
    const std::lock_guard lock(mutex_);
    if (!queue_.empty() && queued_bytes_ + bytes > kMostQueued_bytes) return Drop();
    queue_.push_back(std::move(record));
    queued_bytes_ += bytes;
  }
  work_.notify_one();
}

void RequestRecorder::WriteQueued() {
  while (true) {
    v1::RecordedSolve record;
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) break;
      record = std::move(queue_.front());
      queue_.pop_front();
      queued_bytes_ -= record.ByteSizeLong();
    }
    Write(record);
    if (Idle()) file_.flush();  // so that a killed server leaves what it recorded
  }
  file_.flush();
  log_("recorded " + std::to_string(recorded_) + " solves to " + path_ + ", dropped " +
       std::to_string(dropped()));
}

bool RequestRecorder::Idle() {
  const std::lock_guard lock(mutex_);
  return queue_.empty();
}

void RequestRecorder::Write(const v1::RecordedSolve& record) {
  if (stopped_.load(std::memory_order_relaxed)) return Drop();
  constexpr int64_t kMostPrefix_bytes = 5;  // a length below 2 GiB as a varint
  const auto bytes = static_cast<int64_t>(record.ByteSizeLong()) + kMostPrefix_bytes;
  if (written_bytes_ + bytes > config_.max_bytes) {
    Drop();
    return Stop("its limit of " + std::to_string(config_.max_bytes) + " bytes is reached");
  }
  errno = 0;
  if (!google::protobuf::util::SerializeDelimitedToOstream(record, &file_)) {
    Drop();
    return Stop("it cannot be written: " + std::string(std::strerror(errno)));
  }
  written_bytes_ += bytes;
  ++recorded_;
}

void RequestRecorder::Stop(const std::string& why) {
  stopped_.store(true, std::memory_order_relaxed);
  log_("recording to " + path_ + " ends here: " + why);
}

}  // namespace sap
