// One engine, many doors: C++, C and the program in this process, C++ and C at a server. Each is
// given the same calls, good and bad, and answers with the same bits and the same words. Those of
// Python are in tests/client/python/test_doors.py.
#include <gtest/gtest.h>

#include <filesystem>

#include "client/cpp/files/recording_reader.h"
#include "client/cpp/recording.h"
#include "tests/client/c/c_objects.h"
#include "tests/e2e/doors/door_calls.h"
#include "tests/e2e/server_process.h"
#include "tests/support/problem_set.h"

namespace sap::test {
namespace {

std::vector<std::string> ErrorsIn(const std::vector<Reply>& replies) {
  std::vector<std::string> errors;
  for (const Reply& reply : replies) errors.push_back(reply.error);
  return errors;
}

class DoorsTest : public testing::Test {
 protected:
  static void ExpectSame(const std::vector<Reply>& replies, const std::vector<Reply>& expected) {
    ASSERT_EQ(ErrorsIn(replies), ErrorsIn(expected));
    for (size_t i = 0; i < replies.size(); ++i) {
      EXPECT_EQ(replies[i].bits, expected[i].bits) << "answer " << i;
    }
  }

  const std::vector<DoorCall> calls_ = DoorCalls();
  client::Client cpp_ = *client::Client::Connect("embedded:", {.threads = 2});
  const Client c_{2};
};

TEST_F(DoorsTest, CppAndCAnswerInThisProcessAsTheFileSays) {
  for (const DoorCall& call : calls_) {
    SCOPED_TRACE(call.name);
    const std::vector<Reply> replies = CallCpp(&cpp_, call);
    EXPECT_EQ(ErrorsIn(replies), call.errors);
    ExpectSame(CallC(c_.get(), call), replies);
  }
}

TEST_F(DoorsTest, AServerHasTheirBitsAndWordsAndItsLimits) {
  const ServerProcess server;
  client::Client cpp = server.Connect();
  for (const DoorCall& call : calls_) {
    SCOPED_TRACE(call.name);
    const std::vector<Reply> replies = CallCpp(&cpp, call);
    EXPECT_EQ(ErrorsIn(replies), call.errors_of_server);
    if (call.errors == call.errors_of_server) ExpectSame(replies, CallCpp(&cpp_, call));
#if SAP_HAS_C_CLIENT
    ExpectSame(CallC(Client(server.address()).get(), call), replies);
#endif
  }
}

// sap-client is a program of the client for C++. It replays the answers of this process as records,
// and takes an option by a flag.
TEST_F(DoorsTest, TheProgramAnswersAsTheyDo) {
  const std::string path = testing::TempDir() + "/doors.rec";
  auto writer = client::RecordingWriter::Create(path, {});
  ASSERT_TRUE(writer.has_value());
  int records = 0;
  for (const DoorCall& call : calls_) {
    const v1::SolveOptions* options = call.requests.empty() ? nullptr : &call.requests[0].options();
    if (call.kind != DoorCall::Kind::kSolve || call.deadline_s || options->has_time_budget() ||
        options->has_response_mask()) {
      continue;
    }
    ASSERT_TRUE(writer->Append(RecordOf(c_.get(), call)).has_value());
    ++records;
  }
  ASSERT_TRUE(writer->Close().has_value());
  const ProcessResult replayed = RunProcess({SAP_CLIENT_BINARY, "replay", path}, kPatience);
  EXPECT_EQ(replayed.exit_code, 0) << replayed.out << replayed.err;
  EXPECT_NE(replayed.out.find(std::to_string(records)), std::string::npos) << replayed.out;
  const ProcessResult solved = RunProcess(
      {SAP_CLIENT_BINARY, "solve", "--max-iterations", "20000", ProblemPath("drake_plane_4_t1p00")},
      kPatience);
  EXPECT_EQ(solved.exit_code, 0) << solved.err;
}

}  // namespace
}  // namespace sap::test
