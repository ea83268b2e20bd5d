// Recordings: which solves are written, with which content, and what ends a recording.
#include "server/service/request_recorder.h"

#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <gtest/gtest.h>

#include <array>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "client/cpp/transport/message_conversion.h"
#include "tests/support/await.h"
#include "tests/support/blocking_handler.h"
#include "tests/support/child_process.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/scenes.h"
#include "tests/support/solution_bits.h"

namespace sap {
namespace {

using test::Bits;
using testing::HasSubstr;
using Rule = RecordingConfig::Rule;

std::vector<v1::RecordedSolve> ReadRecording(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  google::protobuf::io::IstreamInputStream stream(&file);
  std::vector<v1::RecordedSolve> records;
  // Parsing adds to what a message has already, so each record is a new one.
  while (google::protobuf::util::ParseDelimitedFromZeroCopyStream(&records.emplace_back(), &stream,
                                                                  nullptr)) {
  }
  records.pop_back();
  return records;
}

v1::SolveRequest Good() {
  v1::SolveRequest request;
  *request.mutable_problem() = test::MixedProblem();
  return request;
}

v1::SolveRequest Bad() {
  v1::SolveRequest request = Good();
  request.mutable_problem()->set_time_step(-1);
  return request;
}

v1::SolveRequest Unsolved() {
  v1::SolveRequest request = Good();
  request.mutable_options()->set_max_iterations(0);
  return request;
}

class RequestRecorderTest : public testing::Test {
 protected:
  void Start(Rule rule, int64_t max_bytes = 1 << 20) {
    RecordingConfig config{
        .directory = directory_ / "", .rule = rule, .slower_than_s = 1e-9, .max_bytes = max_bytes};
    recorder_ = std::make_unique<RequestRecorder>([this](const std::string& message) {
      const std::lock_guard lock(mutex_);
      log_ += message + "\n";
    });
    const auto path = recorder_->Begin(config);
    ASSERT_TRUE(path.has_value()) << path.error();
    path_ = *path;
    ServerConfig server;
    server.threads = 2;
    handler_ = std::make_unique<test::BlockingHandler>(server, recorder_.get());
  }

  v1::SolveResponse Solve(const v1::SolveRequest& request) {
    v1::SolveResponse response;
    (void)handler_->Solve(request, CallContext(), &response);
    return response;
  }

  // Ends the recording and reads it.
  std::vector<v1::RecordedSolve> Records() {
    handler_.reset();
    recorder_.reset();
    return ReadRecording(path_);
  }

  test::TemporaryDirectory directory_;
  std::mutex mutex_;
  std::string log_;
  std::unique_ptr<RequestRecorder> recorder_;
  std::unique_ptr<test::BlockingHandler> handler_;
  std::string path_;
};

TEST_F(RequestRecorderTest, ASolveIsRecordedWithItsAnswerWhateverTheMaskLeftOut) {
  Start(Rule::kAll);
  v1::SolveRequest request = Good();
  request.mutable_options()->mutable_response_mask()->add_paths("cost");
  const v1::SolveResponse masked = Solve(request);
  EXPECT_EQ(masked.solution().velocity_size(), 0);
  const v1::SolveResponse whole = Solve(Good());
  const auto records = Records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(Bits(records[0].outcome().solution()), Bits(whole.solution()));
  EXPECT_EQ(records[0].problem().SerializeAsString(), request.problem().SerializeAsString());
  EXPECT_EQ(records[0].options().response_mask().paths(0), "cost");
  EXPECT_EQ(records[0].options().max_iterations(), 500u);
  EXPECT_EQ(records[0].version(), SAP_VERSION);
  EXPECT_NE(records[0].instruction_set(), "");
  EXPECT_GT(records[0].duration_s(), 0);
  EXPECT_GT(records[0].outcome().solution().timings().decode_s(), 0);
  EXPECT_NEAR(static_cast<double>(records[0].arrival_time().seconds()),
              static_cast<double>(std::time(nullptr)), 60);
  EXPECT_THAT(log_, HasSubstr("recorded 2 solves to " + path_ + ", dropped 0"));
}

TEST_F(RequestRecorderTest, TheRulesSelect) {
  Start(Rule::kFailed);
  Solve(Good());
  Solve(Bad());
  Solve(Unsolved());
  auto records = Records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].outcome().failure().field(), "time_step");
  EXPECT_EQ(records[1].outcome().solution().islands().status(0), v1::ISLAND_STATUS_ITERATION_LIMIT);

  const RecordingConfig slower{
      .directory = directory_ / "", .rule = Rule::kSlower, .slower_than_s = 0.5};
  RequestRecorder recorder([](const std::string&) {});
  ASSERT_TRUE(recorder.Begin(slower).has_value());
  EXPECT_FALSE(recorder.Wants(/*failed=*/true, 0.5));
  EXPECT_TRUE(recorder.Wants(/*failed=*/false, 0.51));
}

TEST_F(RequestRecorderTest, AStepOfASessionIsRecordedWithTheGuessThatItStartedFrom) {
  Start(Rule::kAll);
  auto session = *handler_->NewSession();
  v1::OpenSession open;
  open.mutable_options()->set_relative_tolerance(1e-9);
  ASSERT_TRUE(session->Open(open).has_value());
  std::vector<v1::StepOutcome> outcomes(3);
  for (int i = 0; i < 3; ++i) {
    v1::SessionStep step;
    step.set_step_id(i == 2 ? 0 : i);  // the last one has a number that was there
    *step.mutable_problem() = test::MixedProblem();
    step.mutable_problem()->mutable_trees()->clear_guess_velocity();
    step.mutable_problem()->mutable_bodies()->clear_guess_velocity();
    test::Step(session.get(), step, CallContext(), &outcomes[i]);
  }
  session.reset();
  const auto records = Records();
  ASSERT_EQ(records.size(), 2u);  // a refused number is no solve
  EXPECT_EQ(records[1].options().relative_tolerance(), 1e-9);
  std::vector<double> guess(records[1].problem().trees().guess_velocity().begin(),
                            records[1].problem().trees().guess_velocity().end());
  guess.insert(guess.end(), records[1].problem().bodies().guess_velocity().begin(),
               records[1].problem().bodies().guess_velocity().end());
  const auto& before = outcomes[0].outcome().solution().velocity();
  EXPECT_EQ(guess, std::vector<double>(before.begin(), before.end()));
}

// The values of a scene in shards are checked after it has been decoded.
TEST_F(RequestRecorderTest, ARefusedSceneIsRecordedAsItCame) {
  Start(Rule::kAll);
  v1::SolveRequest request;
  client::ToMessage(test::Stacks(100, 8), request.mutable_problem());
  request.mutable_problem()->mutable_bodies()->set_mass(500, -1);
  Solve(request);
  const auto records = Records();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].problem().bodies().guess_velocity_size(), 0);
  EXPECT_EQ(records[0].outcome().failure().field(), "bodies.mass[500]");
}

TEST_F(RequestRecorderTest, TheProblemsOfABatchAreRecordedEach) {
  Start(Rule::kAll);
  v1::SolveBatchRequest request;
  *request.add_problems() = Good().problem();
  *request.add_problems() = Bad().problem();
  *request.add_problems() = Good().problem();
  v1::SolveBatchResponse response;
  ASSERT_TRUE(handler_->SolveBatch(request, CallContext(), &response).has_value());
  int failures = 0;
  for (const v1::RecordedSolve& record : Records()) failures += record.outcome().has_failure();
  EXPECT_EQ(failures, 1);
}

TEST_F(RequestRecorderTest, AtItsLimitTheRecordingEndsAndTheServerGoesOn) {
  Start(Rule::kAll, /*max_bytes=*/6000);
  const test::AnswerBits bits = Bits(Solve(Good()).solution());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Bits(Solve(Good()).solution()), bits);
  const auto records = Records();
  EXPECT_GT(records.size(), 1u);
  EXPECT_LT(records.size(), 10u);
  EXPECT_LE(std::filesystem::file_size(path_), 6000u);
  EXPECT_THAT(log_, HasSubstr("ends here: its limit of 6000 bytes is reached"));
}

// A disk that fills up while a recording is written: what fits is kept, and no call fails.
TEST_F(RequestRecorderTest, AFailedWriteEndsTheRecordingAndNoCall) {
  Start(Rule::kAll);
  {
    const test::FileSizeLimit full(16'384);
    for (int i = 0; i < 50; ++i) EXPECT_TRUE(Solve(Good()).has_solution()) << i;
    EXPECT_TRUE(test::Await([this] { return !recorder_->Wants(/*failed=*/false, 1); }));
  }
  const auto records = Records();
  EXPECT_GT(records.size(), 0u);
  EXPECT_LT(records.size(), 50u);
  EXPECT_LE(std::filesystem::file_size(path_), 16'384u);
  EXPECT_THAT(log_, HasSubstr("recording to " + path_ + " ends here: it cannot be written"));
}

// A record is in the file, or reported, before the next one is taken: no buffer is left for the
// end.
TEST_F(RequestRecorderTest, ASmallRecordThatCannotBeWrittenIsReported) {
  Start(Rule::kAll);
  {
    const test::FileSizeLimit full(10);
    Solve({});
    Records();
  }
  EXPECT_THAT(log_, HasSubstr("recording to " + path_ + " ends here: it cannot be written"));
  EXPECT_THAT(log_, HasSubstr("recorded 0 solves to " + path_ + ", dropped 1"));
}

// Problems are for the eyes of the operator.
TEST_F(RequestRecorderTest, OnlyTheOwnerReadsARecording) {
  using std::filesystem::perms;
  Start(Rule::kAll);
  EXPECT_EQ(std::filesystem::status(path_).permissions(), perms::owner_read | perms::owner_write);
}

// Names of recordings can be predicted. Whoever may write to the directory gets no file elsewhere
// overwritten by a link of the next name.
TEST_F(RequestRecorderTest, ALinkInThePlaceOfARecordingIsNotFollowed) {
  Start(Rule::kAll);
  const std::filesystem::path victim = directory_ / "victim";
  std::ofstream(victim) << "content";
  // "solves-TIME-PROCESS-NUMBER.saprec"
  const std::filesystem::path first(path_);
  const std::string stem = first.stem().string();
  const int number = std::stoi(stem.substr(stem.rfind('-') + 1));
  const std::string process = stem.substr(23, stem.rfind('-') - 23);
  for (std::time_t time = std::time(nullptr) - 1; time < std::time(nullptr) + 300; ++time) {
    std::tm utc{};
    gmtime_r(&time, &utc);
    std::array<char, 32> text;
    std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &utc);
    std::filesystem::create_symlink(
        victim, first.parent_path() / (std::string("solves-") + text.data() + process + "-" +
                                       std::to_string(number + 1) + ".saprec"));
  }
  const auto second = recorder_->Begin({.directory = first.parent_path()});
  ASSERT_FALSE(second.has_value()) << *second;
  EXPECT_THAT(second.error(), HasSubstr("cannot record to"));
  EXPECT_EQ(recorder_->End(), path_);
  EXPECT_EQ(std::filesystem::file_size(victim), 7u);
}

// A mistyped one would fill the wrong disk.
TEST_F(RequestRecorderTest, ADirectoryThatDoesNotExistIsAnErrorAndIsNotMade) {
  RequestRecorder recorder([](const std::string&) {});
  const std::filesystem::path absent = directory_ / "absent";
  for (const auto& [directory, why] : std::map<std::filesystem::path, std::string>{
           {absent, "No such file or directory"},
           {absent / "deeper", "No such file or directory"},
           {"/dev/full", "it is not a directory"},
           {"/dev/full/recordings", "Not a directory"}}) {
    const auto path = recorder.Begin({.directory = directory});
    ASSERT_FALSE(path.has_value());
    EXPECT_EQ(path.error(), "cannot record to " + directory.string() + ": " + why);
  }
  EXPECT_FALSE(std::filesystem::exists(absent));
}

// Many threads hand over at once, and nothing is lost or torn.
TEST_F(RequestRecorderTest, ManyCallsAtOnceAreAllRecorded) {
  Start(Rule::kAll, 1 << 26);
  std::vector<std::thread> authenticator;
  for (int caller = 0; caller < 4; ++caller) {
    authenticator.emplace_back([this] {
      for (int i = 0; i < 50; ++i) Solve(Good());
    });
  }
  for (std::thread& caller : authenticator) caller.join();
  const auto records = Records();
  ASSERT_EQ(records.size(), 200u);
  for (const v1::RecordedSolve& record : records) {
    EXPECT_EQ(Bits(record.outcome().solution()), Bits(records[0].outcome().solution()));
  }
}

}  // namespace
}  // namespace sap
