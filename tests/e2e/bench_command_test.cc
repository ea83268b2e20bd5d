// sap-client bench: what it counts and prints. Not how fast anything is.
#include <gmock/gmock.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sap/v1/recording.pb.h"
#include "tests/e2e/server_process.h"
#include "tests/support/await.h"
#include "tests/support/problem_set.h"
#include "tests/support/scenes.h"

namespace sap::test {
namespace {

using testing::HasSubstr;

ProcessResult Bench(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(),
                   {SAP_CLIENT_BINARY, "bench", ProblemPath("clutter_bin_8_t2p00")});
  return RunProcess(arguments, kPatience);
}

TEST(BenchCommandTest, CountsWhatIsAnsweredInEveryMode) {
  const ServerProcess server;
  for (const char* mode : {"unary", "session", "batch"}) {
    std::vector<std::string> arguments{
        "--server", server.address(), "--mode", mode,           "--duration",
        "0.2",      "--workers",      "2",      "--batch-size", "3"};
    for (int run = 0; run < 2; ++run) {
      const ProcessResult result = Bench(arguments);
      EXPECT_EQ(result.exit_code, 0) << mode << result.err;
      EXPECT_THAT(result.out, HasSubstr("answered"));
      EXPECT_THAT(result.out, testing::Not(HasSubstr("INTERNAL")));
      arguments.insert(arguments.end(), {"--low-latency", "--connections", "1"});
    }
  }
}

// With --rate, the number of due calls follows from rate and time alone, not from the answers.
TEST(BenchCommandTest, AtARateItSendsWhatIsDueAndWritesEveryFigure) {
  const TemporaryDirectory directory;
  const std::string csv = (directory / "csv").string();
  for (int i = 0; i < 2; ++i) {
    const ProcessResult result = Bench(
        {"--mode", "unary", "--rate", "50", "--duration", "1", "--workers", "4", "--csv", csv});
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  std::ifstream file(csv);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    std::istringstream cells(line);
    std::vector<std::string>& row = rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
  }
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1].size(), rows[0].size());
  EXPECT_EQ(rows[0][4], "answered");
  EXPECT_EQ(rows[1][4], "50");
  EXPECT_EQ(rows[2][4], "50");
}

TEST(BenchCommandTest, ComparesWithABareServerInTheSameRun) {
  const ServerProcess server;
  const ChildProcess echo({SAP_CLIENT_BINARY, "echo"});
  const std::string address = echo.WaitForLine("listening on ", kPatience);
  ASSERT_NE(address, "");
  for (const char* mode : {"unary", "session"}) {
    const ProcessResult result = Bench({"--server", server.address(), "--compare-echo", address,
                                        "--pairs", "2", "--mode", mode, "--duration", "1"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("median of 2: p50 "));
  }
}

// A recording of 20 problems, one every 50 ms.
std::string MakeRecording(const TemporaryDirectory& directory) {
  const std::string path = directory / "recording.saprec";
  std::ofstream file(path, std::ios::binary);
  v1::RecordedSolve record;
  *record.mutable_problem() = MixedProblem();
  for (int i = 0; i < 20; ++i) {
    record.mutable_arrival_time()->set_nanos(50'000'000 * i);
    google::protobuf::util::SerializeDelimitedToOstream(record, &file);
  }
  return path;
}

// As many problems are due as then, and twice as many at twice the speed, whenever they are
// answered.
TEST(BenchCommandTest, SendsWhatWasRecordedWhenItCameThen) {
  const TemporaryDirectory directory;
  const std::string recording = MakeRecording(directory);
  const auto answered = [&](const std::string& speed) {
    const ProcessResult result =
        RunProcess({SAP_CLIENT_BINARY, "bench", "--mode", "unary", "--server",
                    "embedded:", "--recording", recording, "--speed", speed, "--duration", "2"},
                   kPatience);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const size_t at = result.out.find("answered");
    return at == std::string::npos ? 0 : std::stoi(result.out.substr(at + 8));
  };
  EXPECT_NEAR(answered("1"), 40, 1);
  EXPECT_NEAR(answered("2"), 80, 1);
  // One as soon as the last is answered.
  EXPECT_GT(answered("0"), 0);
}

// Ctrl-C, once the server has solved something.
TEST(BenchCommandTest, AnInterruptPrintsWhatWasMeasured) {
  const TemporaryDirectory directory;
  const std::string log = directory / "log";
  const ServerProcess server({"--log-file", log, "--log-level", "debug"});
  std::uintmax_t logged = std::filesystem::file_size(log);
  for (const char* rate : {"0", "200"}) {
    const std::string csv = directory / rate;
    ChildProcess bench({SAP_CLIENT_BINARY, "bench", ProblemPath("clutter_bin_8_t2p00"), "--server",
                        server.address(), "--warmup", "0", "--duration", "1e6", "--rate", rate,
                        "--csv", csv});
    ASSERT_TRUE(Await([&] { return std::filesystem::file_size(log) > logged + 4000; }));
    bench.Signal(SIGINT);
    const ProcessResult result = bench.Wait(kPatience);
    EXPECT_EQ(result.exit_code, 130) << result.err;
    EXPECT_THAT(result.out, HasSubstr("\nanswered"));
    EXPECT_TRUE(std::filesystem::exists(csv));
    logged = std::filesystem::file_size(log);
  }
}

TEST(BenchCommandTest, WithoutAServerItSaysSo) {
  EXPECT_EQ(Bench({"--server", "127.0.0.1:1", "--duration", "0.1"}).exit_code, 2);
}

}  // namespace
}  // namespace sap::test
