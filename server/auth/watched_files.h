// Files that an operator replaces while the server runs: tokens, certificates.
//
// All files of a set are read, checked and taken into use together. While one of them is absent or
// the set is invalid, the last valid contents stay in use: an absent or half-written file is a
// deployment that replaces it in several steps more often than a decision to turn all clients away.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <tl/expected.hpp>
#include <vector>

namespace sap {

class WatchedFiles {
 public:
  // Receives messages for the operator.
  using Log = std::function<void(const std::string& message)>;
  using Contents = std::vector<std::string>;  // of the files, in the order of their paths
  // Takes the contents into use, or returns why it cannot; then nothing has changed. Called by Open
  // and then on the thread of this object.
  using Use = std::function<tl::expected<void, std::string>(const Contents& contents)>;

  // Fails with an error message if the files cannot be read or used now. `kept` ends the line that
  // is logged if that happens later, as in "the tokens stay as they were".
  static tl::expected<std::unique_ptr<WatchedFiles>, std::string> Open(
      std::vector<std::string> paths, std::string kept, Use use, Log log);

  // Whether the present files could not be taken into use.
  bool failed() const { return failed_.load(std::memory_order_relaxed); }

 private:
  using Statuses = std::vector<struct stat>;  // all zero: the file is absent

  WatchedFiles(std::vector<std::string> paths, std::string kept, Use use, Log log)
      : paths_(std::move(paths)),
        kept_(std::move(kept)),
        use_(std::move(use)),
        log_(std::move(log)) {}

  Statuses Look() const;
  // Reads the files if one of them has changed, or if they could not be used before.
  void Refresh();
  tl::expected<void, std::string> Read();

  const std::vector<std::string> paths_;
  const std::string kept_;
  const Use use_;
  const Log log_;
  Statuses seen_;           // before the files were last read
  std::string last_error_;  // logged once, not at every look
  std::atomic<bool> failed_{false};
  // Calls Refresh every second, so that no call waits for a file system that hangs.
  std::jthread refresher_;
};

// The bytes of a regular file of at most 64 MiB, or why it cannot be read. Nothing else is read: a
// pipe would wait for its writer, and a device may have no end.
tl::expected<std::string, std::string> ReadRegularFile(const std::string& path);

}  // namespace sap
