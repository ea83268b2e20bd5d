// `sap-client simulate` as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/e2e/server_process.h"
#include "tests/support/await.h"
#include "tests/support/child_process.h"

namespace sap::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string ReadFile(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

ProcessResult Simulate(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {SAP_CLIENT_BINARY, "simulate"});
  return RunProcess(arguments);
}

TEST(SimulateCommandTest, ARunEndsWithATableAndLeavesRowsAndAPicture) {
  const TemporaryDirectory directory;
  const ProcessResult result =
      Simulate({"clutter", "--bodies", "8", "--walls", "--time", "0.3", "--threads", "1", "--csv",
                directory / "steps.csv", "--picture", directory / "end.svg"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              StartsWith("clutter: 8 bodies, 30 steps of 10 ms, solved by an embedded"));
  for (const char* line :
       {"contacts", "islands", "largest island", "iterations (largest of islands)",
        "iterations (mean by dofs)", "solve, ms", "round trip, ms", "momentum error",
        "largest penetration, mm", "failed steps: 0"}) {
    EXPECT_THAT(result.out, HasSubstr(std::string("\n") + line));
  }
  const std::string csv = ReadFile(directory / "steps.csv");
  EXPECT_THAT(csv, StartsWith("step,contacts,islands,largest_island_dofs,iterations,"
                              "iterations_weighted,solve_s,round_trip_s,momentum_error,"
                              "penetration,kinetic_energy,bodies,long_step_bodies,woken_by_pair,"
                              "woken_by_input,long_steps,long_steps_refused\n0,"));
  EXPECT_THAT(result.out, testing::Not(HasSubstr("body steps solved")));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 31);
  EXPECT_THAT(ReadFile(directory / "end.svg"), StartsWith("<svg "));
}

TEST(SimulateCommandTest, AServerGivesTheSameRunAsAnEmbeddedOne) {
  const TemporaryDirectory directory;
  const ServerProcess server;
  const auto picture = [&](std::vector<std::string> where) {
    std::vector<std::string> arguments = {
        "clutter", "--time", "0.5", "--seed", "3", "--picture", directory / "end.svg"};
    arguments.insert(arguments.end(), where.begin(), where.end());
    const ProcessResult result = Simulate(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return ReadFile(directory / "end.svg");
  };
  EXPECT_EQ(picture({"--server", server.address()}), picture({"--threads", "1"}));
}

TEST(SimulateCommandTest, StepsThatAreNotSolvedAreReportedAndCounted) {
  const ProcessResult result =
      Simulate({"stacks", "--bodies", "1", "--time", "0.03", "--max-iterations", "0"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("step 0: 1 of 1 islands not solved, ITERATION_LIMIT\n"));
  EXPECT_THAT(result.out, HasSubstr("failed steps: 3\n"));
}

TEST(SimulateCommandTest, ARecordedRunIsReplayedToTheSameBits) {
  const TemporaryDirectory directory;
  const std::string recording = directory / "run.rec";
  const ProcessResult recorded =
      Simulate({"clutter", "--time", "0.5", "--threads", "1", "--record", recording});
  ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
  const ProcessResult replayed =
      RunProcess({SAP_CLIENT_BINARY, "replay", recording, "--threads", "2"});
  EXPECT_EQ(replayed.exit_code, 0) << replayed.out << replayed.err;
}

// Two stacks, which rest nearly at once by a tolerance of that size.
TEST(SimulateCommandTest, BodiesAtRestAreLeftOut) {
  const TemporaryDirectory directory;
  const std::string recording = directory / "run.rec";
  const ProcessResult result =
      Simulate({"stacks", "--bodies", "20", "--time", "1", "--threads", "1", "--rest", "0.1,1e-2",
                "--csv", directory / "steps.csv", "--record", recording});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\nbody steps solved: "));
  EXPECT_THAT(result.out,
              HasSubstr("\nislands woken by a pair: 0, by an input: 0, by the horizon: "));
  const std::string csv = ReadFile(directory / "steps.csv");
  EXPECT_THAT(csv, HasSubstr(",20,0,0,0,0,0\n"));  // all awake
  EXPECT_THAT(csv, HasSubstr(",0,10,0,0,1,0\n"));  // the long step of one stack
  const ProcessResult replayed =
      RunProcess({SAP_CLIENT_BINARY, "replay", recording, "--threads", "2"});
  EXPECT_EQ(replayed.exit_code, 0) << replayed.out << replayed.err;
}

TEST(SimulateCommandTest, WhatItDoesNotKnowIsRefused) {
  EXPECT_NE(Simulate({"clutter", "--rest", "0.25"}).exit_code, 0);
  const ProcessResult too_long = Simulate({"clutter", "--rest", "1000,1e-4"});
  EXPECT_EQ(too_long.exit_code, 2);
  EXPECT_THAT(too_long.err, HasSubstr("horizon is longer than 10000 time steps"));
  EXPECT_NE(Simulate({"cluter"}).exit_code, 0);
  EXPECT_NE(Simulate({"clutter", "--shape", "cones"}).exit_code, 0);
  EXPECT_NE(Simulate({"clutter", "--step", "0"}).exit_code, 0);
  EXPECT_NE(Simulate({"clutter", "--walls", "--no-walls"}).exit_code, 0);
  const ProcessResult nobody = Simulate({"clutter", "--bodies", "0"});
  EXPECT_EQ(nobody.exit_code, 2);
  EXPECT_THAT(nobody.err, HasSubstr("the number of bodies is 0; it must be between 1 and"));
}

// Ctrl-C, once some steps are recorded.
TEST(SimulateCommandTest, AnInterruptEndsWithTheTableAndAllFiles) {
  const TemporaryDirectory directory;
  const std::string recording = directory / "run.rec";
  ChildProcess simulation({SAP_CLIENT_BINARY, "simulate", "clutter", "--time", "100000",
                           "--threads", "1", "--record", recording, "--csv",
                           directory / "steps.csv", "--picture", directory / "end.svg"});
  ASSERT_TRUE(Await([&] {
    return std::filesystem::exists(recording) && std::filesystem::file_size(recording) > 100'000;
  }));
  simulation.Signal(SIGINT);
  const ProcessResult result = simulation.Wait(kPatience);
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\nfailed steps: 0\n"));
  EXPECT_THAT(ReadFile(directory / "steps.csv"), StartsWith("step,"));
  EXPECT_THAT(ReadFile(directory / "end.svg"), StartsWith("<svg "));
  const ProcessResult replayed =
      RunProcess({SAP_CLIENT_BINARY, "replay", recording, "--threads", "1"});
  EXPECT_THAT(replayed.out, testing::Not(HasSubstr("ends within")));
}

TEST(SimulateCommandTest, WithoutAServerThereItSaysSo) {
  const TemporaryDirectory directory;
  const ProcessResult result =
      Simulate({"clutter", "--server", "unix:" + std::string(directory / "nobody")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("UNAVAILABLE"));
}

}  // namespace
}  // namespace sap::test
