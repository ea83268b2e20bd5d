#include "server/ops/call_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpc/status.h>
#include <grpc/support/log.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "server/ops/grpc_log.h"
#include "tests/support/await.h"
#include "tests/support/child_process.h"
#include "tests/support/file_size_limit.h"

namespace sap {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

std::string TextOf(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class CallLogTest : public testing::Test {
 protected:
  CallLogTest() {
    config_.file = (directory_ / "log").string();
    config_.slow_call_s = 0.5;
    auto log = CallLog::Open(config_);
    EXPECT_TRUE(log.has_value()) << log.error();
    log_ = std::move(*log);
  }

  // Waits until there are so many whole lines; each has to be an object of JSON.
  std::vector<Json> Lines(size_t count) const {
    std::vector<Json> lines;
    test::Await([&] {
      lines.clear();
      std::ifstream file(config_.file);
      for (std::string line; std::getline(file, line) && !file.eof();) {
        lines.push_back(Json::parse(line));
      }
      return lines.size() >= count;
    });
    return lines;
  }

  test::TemporaryDirectory directory_;
  LogConfig config_;
  std::unique_ptr<CallLog> log_;
};

TEST_F(CallLogTest, AFailedCallIsALineWithWhatIsNeededToFindIt) {
  log_->Call({.method = Method::kSolve,
              .code = 8,
              .message = "over a \"limit\"\nof the server",
              .duration_s = 0.25,
              .client = "token:alice",
              .request_id = "r-17",
              .traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
              .request_bytes = 1234,
              .step_id = 5});
  const auto lines = Lines(1);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["method"], "Solve");
  EXPECT_EQ(lines[0]["code"], "ResourceExhausted");
  EXPECT_EQ(lines[0]["message"], "over a \"limit\"\nof the server");
  EXPECT_EQ(lines[0]["duration_ms"], 250.0);
  EXPECT_EQ(lines[0]["client"], "token:alice");
  EXPECT_EQ(lines[0]["request_id"], "r-17");
  EXPECT_EQ(lines[0]["traceparent"], "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  EXPECT_EQ(lines[0]["request_bytes"], 1234);
  EXPECT_EQ(lines[0]["step_id"], 5);
  EXPECT_EQ(lines[0]["level"], "warning");
  EXPECT_TRUE(lines[0]["time"].get<std::string>().ends_with("Z"));
}

// What clients send may be anything; a line stays a line, and short.
TEST_F(CallLogTest, BytesThatAreNoTextAndLongOnesDoNoHarm) {
  const std::string bytes("\xff\xfe\n\0\"\\", 6);
  const std::string endless(1 << 20, 'x');
  log_->Call({.method = Method::kSolve, .code = 3, .message = endless, .request_id = bytes});
  const auto lines = Lines(1);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_LT(lines[0].dump().size(), 2000u);
}

TEST_F(CallLogTest, TheLevelSaysWhichCallsAreLogged) {
  constexpr int kOk = 0, kCancelled = 1, kInternal = 13;
  const auto wants = [this](int code, double duration_s) { return log_->Wants(code, duration_s); };
  EXPECT_FALSE(wants(kOk, 0.49));
  EXPECT_TRUE(wants(kOk, 0.5));
  EXPECT_TRUE(wants(kInternal, 0));
  EXPECT_FALSE(wants(kCancelled, 0));
  log_->SetLevel(LogLevel::kDebug);
  EXPECT_TRUE(wants(kOk, 0));
  log_->SetLevel(LogLevel::kWarning);
  EXPECT_FALSE(wants(kOk, 10));
  EXPECT_TRUE(wants(kInternal, 0));
  log_->SetLevel(LogLevel::kError);
  EXPECT_FALSE(wants(kInternal, 10));
  log_->Message(LogLevel::kInfo, "unheard");
  log_->Message(LogLevel::kError, "heard");
  const auto lines = Lines(1);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["message"], "heard");
}

// Errors of clients are no warnings to an operator, who may have chosen to see no more than these.
TEST_F(CallLogTest, FaultsOfClientsAreInformation) {
  const std::map<int, std::string> levels{
      {GRPC_STATUS_INVALID_ARGUMENT, "info"}, {GRPC_STATUS_UNAUTHENTICATED, "info"},
      {GRPC_STATUS_UNIMPLEMENTED, "info"},    {GRPC_STATUS_DEADLINE_EXCEEDED, "warning"},
      {GRPC_STATUS_INTERNAL, "warning"},      {GRPC_STATUS_RESOURCE_EXHAUSTED, "warning"}};
  for (const auto& [code, level] : levels) log_->Call({.method = Method::kSolve, .code = code});
  const auto lines = Lines(levels.size());
  ASSERT_EQ(lines.size(), levels.size());
  size_t i = 0;
  for (const auto& [code, level] : levels) EXPECT_EQ(lines[i++]["level"], level) << code;
  log_->SetLevel(LogLevel::kWarning);
  for (const auto& [code, level] : levels) EXPECT_EQ(log_->Wants(code, 10), level == "warning");
}

TEST_F(CallLogTest, TimesHaveMicroseconds) {
  log_->Call({.method = Method::kSolve, .duration_s = 0.00035314599999999996});
  const auto lines = Lines(1);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["duration_ms"].dump(), "0.353");
}

// Whoever can connect can fail calls, so their lines are limited, and those of other codes are not.
TEST_F(CallLogTest, AFloodOfFailedCallsIsAFewLinesAndANumber) {
  constexpr int kUnauthenticated = 16;
  constexpr int kInternal = 13;
  size_t written = 0;
  for (int i = 0; i < 10'000; ++i) {
    if (!log_->Wants(kUnauthenticated, 0)) continue;
    log_->Call({.method = Method::kSolve, .code = kUnauthenticated});
    ++written;
  }
  EXPECT_GE(written, 1u);
  EXPECT_LT(written, 5000u);
  EXPECT_TRUE(log_->Wants(kInternal, 0));
  log_->ReportSuppressed();
  const auto lines = Lines(written + 1);
  ASSERT_EQ(lines.size(), written + 1);
  EXPECT_EQ(lines.back()["message"],
            std::to_string(10'000 - written) + " more calls with code Unauthenticated suppressed");
  log_->ReportSuppressed();
  log_->Message(LogLevel::kWarning, "the next line");
  EXPECT_EQ(Lines(written + 2).back()["message"], "the next line");
}

// The clock starts with the machine, so its first seconds are those after a boot.
TEST(LineBudgetTest, ANewBudgetIsFullHoweverYoungTheClockIs) {
  const LineBudget::Clock::time_point young{std::chrono::milliseconds(1)};
  const LineBudget::Clock::time_point old{std::chrono::hours(1000)};
  const auto lines_at_once = [](LineBudget::Clock::time_point now) {
    LineBudget budget;
    int lines = 0;
    while (budget.Take(now)) ++lines;
    return lines;
  };
  EXPECT_GT(lines_at_once(old), 1);
  EXPECT_EQ(lines_at_once(young), lines_at_once(old));
}

TEST_F(CallLogTest, LinesOfGrpcAreJsonAndLimited) {
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);  // as an initialized gRPC has it
  int deaf = 0;
  {
    const GrpcLog grpc_log(log_.get(), [&deaf] { ++deaf; });
    gpr_log("/somewhere/tcp.cc", 1, GPR_LOG_SEVERITY_ERROR, "Failed accept4: Too many open files");
    EXPECT_EQ(deaf, 1);
    for (int i = 0; i < 10'000; ++i) gpr_log("/somewhere/call.cc", 1, GPR_LOG_SEVERITY_ERROR, "no");
  }
  log_->ReportSuppressed();
  log_->Message(LogLevel::kError, "the end");
  const auto ended = [this] {
    std::ifstream file(config_.file);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    return text.find("the end") != std::string::npos;
  };
  ASSERT_TRUE(test::Await(ended));
  EXPECT_EQ(deaf, 1);
  const auto lines = Lines(2);
  EXPECT_LT(lines.size(), 5000u);
  EXPECT_EQ(lines[0]["message"], "gRPC: tcp.cc: Failed accept4: Too many open files");
  EXPECT_EQ(lines[1]["message"], "gRPC: call.cc: no");
  EXPECT_EQ(lines[0]["level"], "warning");
}

// A disk that is full loses lines; when it has room again, the next ones are written.
TEST(CallLogFileTest, AFullDiskLosesLinesAndNoLaterOnes) {
  const test::TemporaryDirectory directory;
  const std::filesystem::path file = directory / "log";
  auto log = CallLog::Open({.level = LogLevel::kDebug, .file = file.string()});
  ASSERT_TRUE(log.has_value()) << log.error();
  const auto write = [&](const std::string& text) { (*log)->Message(LogLevel::kInfo, text); };
  {
    const test::FileSizeLimit full(16'384);
    for (int i = 0; i < 100; ++i) write(std::string(500, 'x'));
    EXPECT_TRUE(test::Await([&] { return std::filesystem::file_size(file) == 16'384; }));
  }
  const auto written = [&] {
    write("there is room again");
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
      if (line.find("there is room again") != std::string::npos) return true;
    }
    return false;
  };
  EXPECT_TRUE(test::Await(written));
}

// Nobody else on the machine reads names of clients.
TEST(CallLogFileTest, OnlyOwnerAndGroupReadTheFile) {
  using std::filesystem::perms;
  const test::TemporaryDirectory directory;
  const std::filesystem::path file = directory / "log";
  ASSERT_TRUE(CallLog::Open({.file = file.string()}).has_value());
  EXPECT_EQ(std::filesystem::status(file).permissions() & perms::others_all, perms::none);
}

// Lines of before stay in the renamed file, those after the reopening go to a new one.
TEST(CallLogFileTest, ReopeningFollowsTheNameOfTheFile) {
  const test::TemporaryDirectory directory;
  const std::filesystem::path file = directory / "log", renamed = directory / "log.1";
  auto log = CallLog::Open({.file = file.string()});
  ASSERT_TRUE(log.has_value()) << log.error();
  const auto size = [](const std::filesystem::path& path) {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(path, error);
    return error ? 0 : bytes;
  };
  (*log)->Message(LogLevel::kInfo, "before");
  EXPECT_TRUE(test::Await([&] { return size(file) > 0; }));
  std::filesystem::rename(file, renamed);
  const auto bytes = size(renamed);
  (*log)->Reopen();
  (*log)->Message(LogLevel::kInfo, "after");
  EXPECT_TRUE((*log)->Flush(test::kLong));
  EXPECT_THAT(TextOf(file), AllOf(HasSubstr("log file reopened"), HasSubstr("after")));
  EXPECT_EQ(size(renamed), bytes);
}

TEST(CallLogFileTest, AFileThatCannotBeReopenedIsWrittenOn) {
  const test::TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "d");
  const std::filesystem::path file = directory / "d" / "log", moved = directory / "e" / "log";
  auto log = CallLog::Open({.file = file.string()});
  ASSERT_TRUE(log.has_value()) << log.error();
  std::filesystem::rename(directory / "d", directory / "e");
  (*log)->Reopen();
  (*log)->Message(LogLevel::kInfo, "after");
  EXPECT_TRUE((*log)->Flush(test::kLong));
  EXPECT_THAT(TextOf(moved), AllOf(HasSubstr("cannot log to " + file.string()),
                                   HasSubstr("; the old file is written on"), HasSubstr("after")));
}

TEST(CallLogFileTest, AFileThatCannotBeOpenedIsAnError) {
  EXPECT_FALSE(CallLog::Open({.file = "/dev/null/log"}).has_value());
  // Opening it would wait for a reader.
  const test::TemporaryDirectory directory;
  const std::string pipe = (directory / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(CallLog::Open({.file = pipe}).has_value());
}

// A pipe whose reader has stopped: lines wait, then the oldest are dropped, and neither they nor a
// reopening nor the end of the log hold up anybody. What was dropped is counted in a line.
TEST(CallLogFileTest, NobodyWaitsForALogThatBlocks) {
  const test::TemporaryDirectory directory;
  const std::string pipe = (directory / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  auto log = CallLog::Open({.level = LogLevel::kDebug, .file = pipe});
  ASSERT_TRUE(log.has_value()) << log.error();
  constexpr int kLines = 20'000;
  for (int i = 0; i < kLines; ++i) (*log)->Message(LogLevel::kInfo, std::to_string(i));
  EXPECT_FALSE((*log)->Flush(std::chrono::milliseconds(10)));
  const uint64_t dropped = (*log)->lines_dropped();
  EXPECT_GT(dropped, 0u);
  (*log)->Reopen();
  (*log)->ReportSuppressed();  // there is no room for a line about it

  std::string text;
  const auto read_some = [&] {
    std::array<char, 65536> bytes;
    const ssize_t count = read(reader, bytes.data(), bytes.size());
    if (count > 0) text.append(bytes.data(), static_cast<size_t>(count));
    return (*log)->Flush(std::chrono::milliseconds(0)) && count <= 0;
  };
  EXPECT_TRUE(test::Await(read_some));
  (*log)->ReportSuppressed();
  (*log)->ReportSuppressed();
  EXPECT_TRUE((*log)->Flush(test::kLong));
  EXPECT_TRUE(test::Await(read_some));
  EXPECT_THAT(text, HasSubstr("\"" + std::to_string(kLines - 1) + "\""));
  EXPECT_THAT(text, HasSubstr(std::to_string(dropped) + " lines dropped"));
  EXPECT_EQ(text.find("lines dropped"), text.rfind("lines dropped"));
  EXPECT_EQ(std::ranges::count(text, '\n'), kLines - static_cast<int>(dropped) + 2);

  // The end while it blocks. The pipe stays open: a thread is left in a write to it.
  for (int i = 0; i < kLines; ++i) (*log)->Message(LogLevel::kInfo, std::to_string(i));
  log->reset();
}

}  // namespace
}  // namespace sap
