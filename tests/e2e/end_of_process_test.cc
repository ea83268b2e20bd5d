// The end of a server waits for nothing in the world: here for pipes that nobody reads, which do to
// a process what a hung disk or a log collector that has stopped does.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "client/cpp/transport/message_conversion.h"
#include "tests/e2e/server_log.h"
#include "tests/e2e/server_process.h"
#include "tests/support/await.h"
#include "tests/support/scenes.h"

namespace sap::test {
namespace {

using client::Client;

// A named pipe with a reader that never reads.
class UnreadPipe {
 public:
  UnreadPipe() : path_((directory_ / "pipe").string()) {
    EXPECT_EQ(mkfifo(path_.c_str(), 0600), 0);
    reader_ = open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    EXPECT_GE(reader_, 0);
  }
  ~UnreadPipe() { close(reader_); }
  UnreadPipe(const UnreadPipe&) = delete;
  UnreadPipe& operator=(const UnreadPipe&) = delete;

  const std::string& path() const { return path_; }

  // Until a write of a byte would block.
  void Fill() const {
    const int writer = open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    ASSERT_GE(writer, 0);
    while (write(writer, "x", 1) == 1) {
    }
    close(writer);
  }

 private:
  TemporaryDirectory directory_;
  std::string path_;
  int reader_{-1};
};

// A command that runs a server with one of its streams at the pipe.
std::vector<std::string> With(const std::string& redirection, const UnreadPipe& pipe) {
  return {"/bin/sh", "-c", R"(exec "$@" )" + redirection + pipe.path(), "sh"};
}

// Lets every call write a line, and makes calls until the log blocks. They do not notice.
class BlockedLogTest : public testing::TestWithParam<bool> {
 protected:
  void Start(std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--log-level", "debug"});
    const bool to_file = GetParam();
    if (to_file) flags.insert(flags.end(), {"--log-file", pipe_.path()});
    server_ = std::make_unique<ServerProcess>(
        flags, to_file ? std::vector<std::string>() : With("2>", pipe_));
    pipe_.Fill();
    Client client = server_->Connect();
    const client::Problem problem = *client::FromMessage(MixedProblem());
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(client.Solve(problem).has_value());
  }

  UnreadPipe pipe_;
  std::unique_ptr<ServerProcess> server_;
};

INSTANTIATE_TEST_SUITE_P(ToFileAndStandardError, BlockedLogTest, testing::Bool());

TEST_P(BlockedLogTest, ATerminatedServerEnds) {
  Start({});
  server_->Terminate();
  EXPECT_EQ(server_->Wait().exit_code, 0);
}

TEST_P(BlockedLogTest, AHangUpDoesNotStopLaterSignals) {
  Start({});
  for (int i = 0; i < 3; ++i) server_->Signal(SIGHUP);
  EXPECT_TRUE(server_->Connect().Info().has_value());
  server_->Terminate();
  EXPECT_EQ(server_->Wait().exit_code, 0);
}

TEST_P(BlockedLogTest, ASecondSignalEndsTheServerAtOnce) {
  Start({"--lame-duck-s", "600"});
  server_->Signal(SIGHUP);
  server_->Terminate();
  Client client = server_->Connect();
  EXPECT_TRUE(Await([&] { return client.Health() == false; }));
  server_->Signal(SIGHUP);
  server_->Terminate();
  EXPECT_EQ(server_->Wait().exit_code, 128 + SIGTERM);
}

// As a pipe to a program that has ended.
TEST(EndOfProcessTest, ALogThatNobodyCanReadAnyMoreCostsNothing) {
  const TemporaryDirectory directory;
  const std::string pipe = (directory / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ServerProcess server({"--log-file", pipe, "--log-level", "debug"});
  close(reader);
  Client client = server.Connect();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(client.Info().has_value());
  server.Terminate();
  EXPECT_EQ(server.Wait().exit_code, 0);
}

// Where a start does not get on, nothing is there to be drained.
TEST(EndOfProcessTest, AServerThatHasNotStartedEnds) {
  const UnreadPipe pipe;
  pipe.Fill();
  const TemporaryDirectory directory;
  const auto log = directory / "log";
  std::vector<std::string> command = With(">", pipe);
  command.insert(command.end(), {SAP_SERVER_BINARY, "--listen", "127.0.0.1:0", "--threads", "1",
                                 "--log-file", log.string()});
  ChildProcess server(command);
  // It is about to say where it listens, and cannot.
  ASSERT_TRUE(AwaitMessage(log, "solver threads"));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(kPatience).exit_code, 0);
}

// A start that fails says why, and ends, too.
TEST(EndOfProcessTest, AServerThatCannotStartEndsThoughItsLogBlocks) {
  const UnreadPipe pipe;
  const ServerProcess first;
  std::vector<std::string> command = With("2>", pipe);
  command.insert(command.end(), {SAP_SERVER_BINARY, "--listen", first.address()});
  pipe.Fill();
  EXPECT_EQ(RunProcess(command).exit_code, 1);
}

// Reading it would wait for a writer: the file is refused, and the tokens stay.
TEST(EndOfProcessTest, APipeInThePlaceOfTheTokenFileHoldsUpNobody) {
  const TemporaryDirectory directory;
  const auto log = directory / "log", tokens = directory / "tokens";
  std::ofstream(tokens) << "alice a-token-0123456789\n";
  ServerProcess server({"--token-file", tokens.string(), "--log-file", log.string()});
  ASSERT_EQ(mkfifo((directory / "pipe").c_str(), 0600), 0);
  std::filesystem::rename(directory / "pipe", tokens);
  EXPECT_TRUE(AwaitMessage(log, "not a regular file; the tokens stay as they were"));
  server.Terminate();
  EXPECT_EQ(server.Wait().exit_code, 0);
}

}  // namespace
}  // namespace sap::test
