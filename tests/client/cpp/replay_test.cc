// Recordings solved again: what is identical, what differs, and what cannot be told.
#include "client/cpp/replay.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "client/cpp/client.h"
#include "client/cpp/problem_file.h"
#include "client/cpp/recording.h"
#include "client/cpp/transport/message_conversion.h"
#include "sap/v1/recording.pb.h"
#include "tests/support/blocking_handler.h"
#include "tests/support/child_process.h"
#include "tests/support/problem_set.h"
#include "tests/support/scenes.h"

namespace sap::client {
namespace {

using testing::HasSubstr;

Problem MixedScene() { return *FromMessage(test::MixedProblem()); }

Problem Load(const std::string& name) { return *LoadProblem(test::ProblemPath(name)); }

class ReplayTest : public testing::Test {
 protected:
  ReplayTest() : client_(*Client::Connect("embedded:", {.threads = 2})) {}

  // Solves by the client and records.
  void Record(const std::vector<Problem>& problems, const SolveOptions& options = {}) {
    auto writer = RecordingWriter::Create(path_, *client_.Info());
    ASSERT_TRUE(writer.has_value()) << writer.error().message;
    for (const Problem& problem : problems) {
      ASSERT_TRUE(writer->Append(problem, options, client_.Solve(problem, options), 0.1));
    }
    ASSERT_TRUE(writer->Close().has_value());
  }

  ReplayReport Replay() {
    const auto report = client_.Replay(path_);
    EXPECT_TRUE(report.has_value()) << report.error().message;
    return report.value_or(ReplayReport());
  }

  std::vector<v1::RecordedSolve> Read() {
    std::ifstream file(path_, std::ios::binary);
    google::protobuf::io::IstreamInputStream stream(&file);
    std::vector<v1::RecordedSolve> records;
    while (google::protobuf::util::ParseDelimitedFromZeroCopyStream(&records.emplace_back(),
                                                                    &stream, nullptr)) {
    }
    records.pop_back();
    return records;
  }

  void Write(const std::vector<v1::RecordedSolve>& records) {
    std::ofstream file(path_, std::ios::binary);
    for (const v1::RecordedSolve& record : records) {
      google::protobuf::util::SerializeDelimitedToOstream(record, &file);
    }
  }

  test::TemporaryDirectory directory_;
  const std::string path_{directory_ / "some.saprec"};
  Client client_;
};

TEST_F(ReplayTest, WhatWasRecordedIsReproducedForEveryOption) {
  SolveOptions plain;
  plain.solver.newton = NewtonMethod::kPlain;
  SolveOptions whole;
  whole.solver.islands = false;
  whole.solver.relative_tolerance = 1e-3;
  SolveOptions sweeps;
  sweeps.solver.newton = NewtonMethod::kGaussSeidel;
  sweeps.solver.max_iterations = 40;
  SolveOptions short_of_iterations;
  short_of_iterations.solver.max_iterations = 2;
  for (const SolveOptions& options : {SolveOptions(), plain, whole, sweeps, short_of_iterations}) {
    Record({MixedScene(), test::EveryConstraint(), Load("clutter_bin_8_t2p00"),
            Load("nasty_small_trees_1"), Load("nasty_no_contacts"), Load("drake_bin_arm_12_t1p20")},
           options);
    const ReplayReport report = Replay();
    EXPECT_EQ(report.records, 6);
    EXPECT_EQ(report.identical, 6) << report.first_difference;
    EXPECT_TRUE(report.same_build);
  }
}

TEST_F(ReplayTest, ARefusalIsReproducedToo) {
  Problem bad = MixedScene();
  bad.time_step = -1;
  Record({bad, MixedScene()});
  EXPECT_EQ(Replay().identical, 2);
  auto records = Read();
  records[0].mutable_problem()->set_time_step(0.01);
  Write(records);
  EXPECT_THAT(Replay().first_difference,
              HasSubstr("record 1: the outcome is 'a solution', recorded as 'time_step is -1"));
}

// Everything that is compared is found, and named with its place and both values.
TEST_F(ReplayTest, ATamperedRecordIsNamed) {
  Record({MixedScene(), MixedScene()});
  const auto original = Read();
  using Solution = v1::ContactSolution;
  const std::vector<std::pair<std::string, std::function<void(Solution*)>>> changes = {
      {"velocity[3] is ",
       [](Solution* s) { s->set_velocity(3, std::nextafter(s->velocity(3), 9)); }},
      {"impulse[14] is ", [](Solution* s) { s->set_impulse(14, -s->impulse(14)); }},
      {"contact_velocity[0] is ", [](Solution* s) { s->set_contact_velocity(0, 0.5); }},
      {"cost is ", [](Solution* s) { s->set_cost(std::nextafter(s->cost(), 9)); }},
      {"island_of_tree[2] is 0, recorded as 1", [](Solution* s) { s->set_island_of_tree(2, 1); }},
      {"islands.status[0] is CONVERGED, recorded as STALLED_AT_ROUNDOFF",
       [](Solution* s) {
         s->mutable_islands()->set_status(0, v1::ISLAND_STATUS_STALLED_AT_ROUNDOFF);
       }},
      {"islands.factorizations[0] is ",
       [](Solution* s) { s->mutable_islands()->set_factorizations(0, 99); }},
      {"islands.momentum_residual[0] is ",
       [](Solution* s) { s->mutable_islands()->set_momentum_residual(0, 0.25); }},
      {"islands.optimality_gap_bound[0] is ",
       [](Solution* s) { s->mutable_islands()->set_optimality_gap_bound(0, 0.25); }},
      {"islands.contacts[0] is 5, recorded as 6",
       [](Solution* s) { s->mutable_islands()->set_contacts(0, 6); }},
      {"the length of velocity is 17, recorded as 18", [](Solution* s) { s->add_velocity(0); }},
      {"not complete", [](Solution* s) { s->mutable_islands()->clear_dofs(); }}};
  for (const auto& [words, change] : changes) {
    auto records = original;
    change(records[1].mutable_outcome()->mutable_solution());
    Write(records);
    const ReplayReport report = Replay();
    EXPECT_EQ(report.identical, 1) << words;
    EXPECT_EQ(report.different, 1) << words;
    EXPECT_THAT(report.first_difference, HasSubstr("record 2: "));
    EXPECT_THAT(report.first_difference, HasSubstr(words));
  }
}

TEST_F(ReplayTest, TimesAreNotCompared) {
  Record({MixedScene()});
  auto records = Read();
  v1::ContactSolution* solution = records[0].mutable_outcome()->mutable_solution();
  solution->mutable_islands()->set_solve_time_s(0, 99);
  solution->mutable_timings()->set_solve_s(99);
  Write(records);
  EXPECT_EQ(Replay().identical, 1);
}

// A change of the problem changes the answer.
TEST_F(ReplayTest, ATamperedProblemIsNoticed) {
  Record({MixedScene()});
  auto records = Read();
  records[0].mutable_problem()->mutable_contacts()->set_friction(1, 0.51);
  Write(records);
  EXPECT_EQ(Replay().different, 1);
}

TEST_F(ReplayTest, OutcomesOfClocksAndLimitsAreNotReplayable) {
  Record({MixedScene()});
  auto records = Read();
  for (const int code : {1, 4, 8, 13, 14}) {
    records.push_back(records[0]);
    records.back().mutable_outcome()->mutable_failure()->set_code(code);
  }
  records.push_back(records[0]);
  records.back().clear_outcome();
  Write(records);
  const ReplayReport report = Replay();
  EXPECT_EQ(report.records, 7);
  EXPECT_EQ(report.identical, 1);
  EXPECT_EQ(report.different, 0);
  EXPECT_EQ(report.not_replayable, 6);
  EXPECT_EQ(report.first_not_replayable, "record 2: ended with CANCELLED");
}

TEST_F(ReplayTest, AnotherBuildIsTold) {
  Record({MixedScene()});
  auto records = Read();
  records[0].set_instruction_set("z80");
  Write(records);
  EXPECT_FALSE(Replay().same_build);
}

TEST_F(ReplayTest, AFileThatWasCutOffIsReplayedAsFarAsItGoes) {
  Record({MixedScene(), MixedScene(), MixedScene()});
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 10);
  const ReplayReport report = Replay();
  EXPECT_EQ(report.identical, 2);
  EXPECT_TRUE(report.truncated);
}

TEST_F(ReplayTest, WhatIsNoRecordingIsRefused) {
  EXPECT_THAT(client_.Replay(directory_ / "missing").error().message, HasSubstr("cannot open"));
  std::ofstream(path_) << "{\"time_step\": 0.01}";
  const auto text = client_.Replay(path_);
  ASSERT_FALSE(text.has_value());
  EXPECT_THAT(text.error().message, HasSubstr("is not a recording"));
  std::ofstream(path_, std::ios::trunc).close();
  EXPECT_FALSE(client_.Replay(path_).has_value());
  EXPECT_EQ(client_.Replay(directory_ / "").error().message,
            (directory_ / "").string() + ": cannot read: Is a directory");
}

TEST_F(ReplayTest, BytesThatAreNoLengthOfARecordAreNoEnd) {
  Record({MixedScene()});
  std::ofstream(path_, std::ios::binary | std::ios::app) << std::string(11, '\xff');
  const ReplayReport report = Replay();
  EXPECT_EQ(report.identical, 1);
  EXPECT_TRUE(report.truncated);
}

TEST_F(ReplayTest, ARecordingThatCannotBeWrittenIsAnError) {
  EXPECT_FALSE(RecordingWriter::Create(directory_ / "no/such/file", {}).has_value());
  auto writer = RecordingWriter::Create("/dev/full", {});
  ASSERT_TRUE(writer.has_value());
  const Problem block = test::SphereBlock(8);
  const bool appended = writer->Append(block, {}, client_.Solve(block), 0).has_value();
  EXPECT_FALSE(appended && writer->Close().has_value());
}

// Problems cut by their time budget at every stage, with many islands, each at its own count.
TEST_F(ReplayTest, WhatADeadlineHasCutIsReplayedByItsIterationCounts) {
  std::string path;
  int cut = 0;
  int swept = 0;
  {
    RequestRecorder recorder([](const std::string&) {});
    path = recorder.Begin({.directory = directory_ / ""}).value();
    ServerConfig config;
    config.threads = 2;
    test::BlockingHandler handler(config, &recorder);
    for (const char* name : {"heaps_300x3_t1p50", "clutter_bin_40_t1p00", "stacks_9x10_t2p00"}) {
      v1::SolveRequest request;
      ToMessage(Load(name), request.mutable_problem());
      request.mutable_problem()->mutable_trees()->clear_guess_velocity();
      request.mutable_problem()->mutable_bodies()->clear_guess_velocity();
      for (int budget_us = 1; budget_us < 20'000; budget_us += 1 + budget_us / 4) {
        request.mutable_options()->mutable_time_budget()->set_nanos(budget_us * 1000);
        v1::SolveResponse response;
        ASSERT_TRUE(handler.Solve(request, CallContext(), &response).has_value());
        for (const int status : response.solution().islands().status()) {
          cut += status == v1::ISLAND_STATUS_DEADLINE;
        }
        swept += response.solution().islands().swept_size();
      }
    }
  }
  EXPECT_GT(cut, 100);
  EXPECT_GT(swept, 0);
  const auto report = client_.Replay(path);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_GT(report->records, 50);
  EXPECT_EQ(report->identical, report->records) << report->first_difference;
}

}  // namespace
}  // namespace sap::client
