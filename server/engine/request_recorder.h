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
  // Told, once each, what an operator should know. Called by the recorder's thread.
  using Log = std::function<void(const std::string& message)>;

  // Records nothing until a recording is begun.
  explicit RequestRecorder(Log log);

  // With a recording begun.
  static tl::expected<std::unique_ptr<RequestRecorder>, std::string> Open(
      const RecordingConfig& config, Log log);

  // Writes what waits, and logs how much was recorded.
  ~RequestRecorder();

  // Ends the recording under way, if any, and begins one in a new file in the directory, made if it
  // is not there. Its path; or a sentence for the operator, and all stays as it was.
  tl::expected<std::string, std::string> Begin(const RecordingConfig& config);

  // Ends the recording under way: its path; empty if there is none.
  std::string End();

  // Of the recording under way; empty if there is none.
  std::string path() const;

  // Whether its rule asks for such a solve. Never, without a recording or once it has stopped.
  bool Wants(bool failed, double duration_s) const;

  void Add(v1::RecordedSolve record);

  // Counts a record that could not even be made.
  void Drop() { dropped_.fetch_add(1, std::memory_order_relaxed); }

  int64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  // A file being written. Only the thread touches what is not const.
  struct Recording {
    const RecordingConfig config;
    const std::string path;
    std::ofstream file;
    int64_t recorded{0};
    int64_t written_bytes{0};
    bool stopped{false};
  };
  // What the thread does next: write a record, or end its recording.
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
  // Copies of what the recording under way asks for, so that solves need no lock to tell.
  std::atomic<bool> active_{false};
  std::atomic<RecordingConfig::Rule> rule_{};
  std::atomic<double> slower_than_s_{0};

  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::shared_ptr<Recording> current_;
  std::deque<Task> queue_;
  size_t queued_bytes_{0};
  bool closing_{false};
  std::thread thread_;
};

}  // namespace sap
