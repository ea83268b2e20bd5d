// Records problems and their answers to files, for bit-exact replay (format:
// proto/sap/v1/recording.proto).
//
// Solver threads enqueue a record and continue; the recorder's own thread writes it. The queue is
// bounded: records beyond the bound are dropped and counted. A full disk or the byte limit ends the
// recording, never a call.
#pragma once

#include <google/protobuf/io/zero_copy_stream_impl.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tl/expected.hpp>

#include "sap/v1/recording.pb.h"
#include "server/server_config.h"

namespace sap {

// Thread-safe. One recording at a time.
class RequestRecorder {
 public:
  // Receives messages for the operator. Called on the recorder's thread.
  using Log = std::function<void(const std::string& message)>;

  // Idle until Begin.
  explicit RequestRecorder(Log log);

  // Writes the queued records and logs the number of records.
  ~RequestRecorder();

  // Ends the current recording, if any, and begins one in a new file in the directory, which must
  // exist: a mistyped one would fill the wrong disk. Only the owner can read the file, and no file
  // or link of its name is written to. Returns the file's path. On an error, an operator message,
  // the state is unchanged.
  tl::expected<std::string, std::string> Begin(const RecordingConfig& config);

  // Ends the current recording. Returns its path, or an empty string if there is none.
  std::string End();

  // Whether the rule of the current recording selects such a solve. False without a recording or
  // after it has stopped.
  bool Wants(bool failed, double duration_s) const;

  void Add(v1::RecordedSolve record);

  // Counts a record that could not be constructed.
  void Drop() { dropped_.fetch_add(1, std::memory_order_relaxed); }

  int64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  // A file being written. After construction only the recorder's thread uses the non-const members.
  struct Recording {
    const RecordingConfig config;
    const std::string path;
    std::unique_ptr<google::protobuf::io::FileOutputStream> file;  // closed by Finish
    int64_t recorded{0};
    int64_t written_bytes{0};
    bool stopped{false};
  };
  // Work of the recorder's thread: write a record, or, without one, finish the recording.
  struct Task {
    std::shared_ptr<Recording> recording;
    std::optional<v1::RecordedSolve> record;
  };

  void Work();
  std::optional<Task> NextTask();
  void Write(Recording* recording, const v1::RecordedSolve& record);
  void Stop(Recording* recording, const std::string& why);
  void Finish(Recording* recording);

  const Log log_;
  std::atomic<int64_t> dropped_{0};
  // Copies of the current recording's rule, so that Wants needs no lock.
  std::atomic<bool> active_{false};
  std::atomic<RecordingConfig::Rule> rule_{};
  std::atomic<double> slower_than_s_{0};

  std::mutex mutex_;
  std::condition_variable work_;
  std::shared_ptr<Recording> current_;
  std::deque<Task> queue_;
  size_t queued_bytes_{0};
  bool closing_{false};
  std::thread thread_;
};

}  // namespace sap
