// Recordings: problems with their answers on disk, to be solved again bit for bit
// (proto/sap/v1/recording.proto has the format).
//
// Whoever solved a problem hands it over as a message and goes on; a thread of the recorder's own
// writes it. What waits for the disk is bounded: beyond that, records are dropped and counted. A
// full disk or the limit on bytes ends the recording and never a call.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tl/expected.hpp>

#include "sap/v1/recording.pb.h"
#include "server/server_config.h"

namespace sap {

// Thread-safe.
class RequestRecorder {
 public:
  // Told, once each, what an operator should know. Called by the recorder's thread.
  using Log = std::function<void(const std::string& message)>;

  // Opens a new file in the directory, made if it is not there; fails with a sentence for the
  // operator.
  static tl::expected<std::unique_ptr<RequestRecorder>, std::string> Open(
      const RecordingConfig& config, Log log);

  // Writes what waits, and logs how much was recorded.
  ~RequestRecorder();

  const std::string& path() const { return path_; }

  // Whether the rule asks for such a solve. Never, once the recording has ended.
  bool Wants(bool failed, double duration_s) const;

  void Add(v1::RecordedSolve record);

  // Counts a record that could not even be made.
  void Drop() { dropped_.fetch_add(1, std::memory_order_relaxed); }

  int64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  RequestRecorder(const RecordingConfig& config, std::string path, std::ofstream file, Log log);

  void WriteQueued();
  bool Idle();
  void Write(const v1::RecordedSolve& record);
  void Stop(const std::string& why);

  const RecordingConfig config_;
  const std::string path_;
  const Log log_;
  std::ofstream file_;
  int64_t recorded_{0};
  int64_t written_bytes_{0};
  std::atomic<int64_t> dropped_{0};
  std::atomic<bool> stopped_{false};

  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<v1::RecordedSolve> queue_;
  size_t queued_bytes_{0};
  bool closing_{false};
  std::thread thread_;
};

}  // namespace sap
