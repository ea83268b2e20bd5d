// Writes log lines on a thread of its own: no caller waits for a hung disk or for a pipe that
// nobody reads, neither with a line nor at the end.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <tl/expected.hpp>

namespace sap {

// Thread-safe.
class LogWriter {
 public:
  // Makes the line about a reopening from its error message, which is empty if it succeeded. Called
  // on the writer's thread, and possibly after the end of the writer. An empty line is not written.
  using ReopenedLine = std::function<std::string(const std::string& error)>;

  // Creates the file for its owner and group if it does not exist; an empty path is standard error.
  // Fails with an error message, also for a named pipe that no process reads.
  static tl::expected<std::unique_ptr<LogWriter>, std::string> Open(const std::string& path);

  // Lines that are not written within a second are lost; a write that does not return is left to
  // the end of the process.
  ~LogWriter();

  // Appends a line by one write, without a buffer. If lines come faster than they are written, the
  // oldest are dropped. Those that cannot be written, as on a full disk, are lost.
  void Write(std::string line);

  // Opens the file again under its name, before the next line is written. If that fails, the file
  // of before is written on.
  void Reopen(ReopenedLine line);

  // Whether all lines so far are written within the time.
  bool Flush(std::chrono::milliseconds timeout);

  // Number of lines dropped so far.
  uint64_t dropped() const;

  // The number dropped since the last call of this, or 0 while there is little room for a line
  // about it.
  uint64_t TakeDropped();

 private:
  struct State;

  explicit LogWriter(std::shared_ptr<State> state);

  const std::shared_ptr<State> state_;  // shared with a thread that is left behind
  std::thread thread_;
};

}  // namespace sap
