#include "tests/support/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

namespace sap::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPoll{5};

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// In the child: never returns.
[[noreturn]] void Execute(std::vector<char*> arguments, const std::string& out,
                          const std::string& err) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
  dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
  execv(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
  std::string path = (std::filesystem::temp_directory_path() / "sap-test-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) std::abort();
  path_ = path;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

ChildProcess::ChildProcess(const std::vector<std::string>& command) {
  // Everything that allocates happens before the fork.
  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  const std::string out = directory_ / "out";
  const std::string err = directory_ / "err";
  pid_ = fork();
  if (pid_ == 0) Execute(std::move(arguments), out, err);
  if (pid_ < 0) std::abort();
}

ChildProcess::~ChildProcess() {
  if (Ended()) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, &status_, 0);
}

bool ChildProcess::Ended() {
  if (!ended_) ended_ = waitpid(pid_, &status_, WNOHANG) == pid_;
  return ended_;
}

std::string ChildProcess::WaitForLine(const std::string& prefix,
                                      std::chrono::seconds timeout) const {
  for (const auto until = Clock::now() + timeout; Clock::now() < until;) {
    std::istringstream lines(ReadText(directory_ / "out"));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(prefix) && !lines.eof()) return line.substr(prefix.size());
    }
    // Not reaped here: the state of the process is looked at without taking it.
    siginfo_t info{};
    if (waitid(P_PID, pid_, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_) break;
    std::this_thread::sleep_for(kPoll);
  }
  return "";
}

void ChildProcess::Signal(int signal) const {
  kill(pid_, signal);
  // Its threads stop one by one after kill() has returned.
  siginfo_t ignored;
  if (signal == SIGSTOP) waitid(P_PID, static_cast<id_t>(pid_), &ignored, WSTOPPED);
}

ProcessResult ChildProcess::Wait(std::chrono::seconds timeout) {
  const auto until = Clock::now() + timeout;
  while (!Ended() && Clock::now() < until) std::this_thread::sleep_for(kPoll);
  const bool in_time = ended_;
  if (!in_time) {
    kill(pid_, SIGKILL);
    waitpid(pid_, &status_, 0);
    ended_ = true;
  }
  return {.exit_code = in_time && WIFEXITED(status_) ? WEXITSTATUS(status_) : -1,
          .out = ReadText(directory_ / "out"),
          .err = ReadText(directory_ / "err")};
}

ProcessResult RunProcess(const std::vector<std::string>& command, std::chrono::seconds timeout) {
  return ChildProcess(command).Wait(timeout);
}

}  // namespace sap::test
