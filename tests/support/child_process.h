// Child processes with a time limit and captured output.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace sap::test {

// A temporary directory, removed by the destructor.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// Exit code and output of a process that has ended.
struct ProcessResult {
  int exit_code{-1};  // -1: ended by a signal, or killed because it took too long
  std::string out;
  std::string err;
};

// Killed by the destructor, or when the test process ends.
class ChildProcess {
 public:
  explicit ChildProcess(const std::vector<std::string>& command);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // The first line on standard output that starts with the prefix, without it; waits for it. Empty
  // if the process ends or the time is up before it comes.
  std::string WaitForLine(const std::string& prefix, std::chrono::seconds timeout) const;

  // After SIGSTOP the process has stopped.
  void Signal(int signal) const;

  pid_t pid() const { return pid_; }

  ProcessResult Wait(std::chrono::seconds timeout);

 private:
  bool Ended();

  TemporaryDirectory directory_;
  pid_t pid_{-1};
  int status_{0};
  bool ended_{false};
};

// Runs a command until it exits.
ProcessResult RunProcess(const std::vector<std::string>& command,
                         std::chrono::seconds timeout = std::chrono::seconds(300));

}  // namespace sap::test
