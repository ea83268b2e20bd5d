// The command sap-client: what it prints, where errors go, and its exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "client/cpp/problem_file.h"
#include "tests/e2e/server_process.h"
#include "tests/support/problem_set.h"

namespace sap::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr int kNotSolved = 1;
constexpr int kFailed = 2;

ProcessResult RunClient(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), SAP_CLIENT_BINARY);
  return RunProcess(arguments, kPatience);
}

std::string Example() { return ProblemPath("clutter_bin_8_t2p00"); }

std::vector<std::string> Lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class ClientCommandTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = directory_ / name;
    std::ofstream(path) << text;
    return path;
  }

  std::string Read(const std::string& name) {
    std::ifstream file(directory_ / name);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  TemporaryDirectory directory_;
};

// The file brings its own optimum, found by other means.
TEST_F(ClientCommandTest, OneFileGivesItsSolutionAsJson) {
  const ProcessResult result = RunClient({"solve", Example()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const auto solution = nlohmann::json::parse(result.out);
  std::ifstream file(Example());
  const auto reference = nlohmann::json::parse(file).at("reference");
  const std::vector<double> v = solution.at("velocity");
  const std::vector<double> v_reference = reference.at("velocity");
  ASSERT_EQ(v.size(), v_reference.size());
  for (size_t i = 0; i < v.size(); ++i) EXPECT_NEAR(v[i], v_reference[i], 1e-5);
  EXPECT_EQ(solution.at("impulse").size(), reference.at("impulse").size());
  EXPECT_EQ(solution.at("island_of_tree").size(), reference.at("island_of_tree").size());
  for (const auto& status : solution.at("islands").at("status")) {
    EXPECT_EQ(status, "ISLAND_STATUS_CONVERGED");
  }
  EXPECT_TRUE(solution.at("islands").contains("optimality_gap_bound"));
}

TEST_F(ClientCommandTest, RestBoundsTheMotionAndMarksIslandsInTables) {
  std::ifstream file(Example());
  auto problem = nlohmann::json::parse(file);
  for (const char* group : {"trees", "bodies"}) {
    if (!problem.contains(group)) continue;
    auto& velocities = problem.at(group);
    velocities["initial_velocity"] = velocities.at("free_motion_velocity");
  }
  const std::string path = directory_ / "with_initial_velocity.json";
  std::ofstream(path) << problem;
  const ProcessResult result = RunClient({"solve", path, "--rest", "0.25,1e-4"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto islands = nlohmann::json::parse(result.out).at("islands");
  ASSERT_EQ(islands.at("rest_drift").size(), islands.at("status").size());
  for (const double drift : islands.at("rest_drift")) EXPECT_GT(drift, 0);
  // Nothing rests within a tolerance of nothing, and everything within one of a kilometer.
  const auto islands_at_rest = [&](const std::string& rest) {
    const ProcessResult table = RunClient({"solve", path, path, "--rest", rest});
    EXPECT_NE(table.out.find(" at rest\n"), std::string::npos) << table.out << table.err;
    const size_t end = table.out.find_last_not_of('\n');
    return table.out.substr(table.out.rfind(' ', end) + 1, end - table.out.rfind(' ', end));
  };
  EXPECT_EQ(islands_at_rest("0.25,1e-300"), "0");
  EXPECT_EQ(islands_at_rest("0.25,1e3"), std::to_string(islands.at("status").size()));
}

TEST_F(ClientCommandTest, RestWithoutInitialVelocitiesOrWithNumbersOutOfRangeIsRefused) {
  const ProcessResult missing = RunClient({"solve", Example(), "--rest", "0.25,1e-4"});
  EXPECT_NE(missing.exit_code, 0);
  EXPECT_NE(missing.err.find("initial_velocity is empty"), std::string::npos) << missing.err;
  for (const char* rest : {"0,1", "1,0", "-1,1", "nan,1", "1,inf", "1", "1,1,1", "a,b", ""}) {
    const ProcessResult refused = RunClient({"solve", Example(), "--rest", rest});
    EXPECT_NE(refused.exit_code, 0) << rest;
    EXPECT_NE(refused.err.find("--rest"), std::string::npos) << refused.err;
  }
}

TEST_F(ClientCommandTest, TheOutputFileGetsTheSolutionInstead) {
  const ProcessResult result =
      RunClient({"solve", Example(), "--output", directory_ / "solution.json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(nlohmann::json::parse(Read("solution.json")).contains("velocity"));
}

TEST_F(ClientCommandTest, AHyphenIsStandardInput) {
  const ProcessResult result = RunProcess(
      {"/bin/sh", "-c", "exec '" SAP_CLIENT_BINARY "' solve - < '" + Example() + "'"}, kPatience);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out).at("velocity"),
            nlohmann::json::parse(RunClient({"solve", Example()}).out).at("velocity"));
}

TEST_F(ClientCommandTest, ARequestInThePlaceOfAProblemIsNamed) {
  for (const auto& [request, name] : std::map<std::string, std::string>{
           {R"({"problem": {"time_step": 0.01}, "options": {"islands": true}})", "SolveRequest"},
           {R"({"problem": {"time_step": 0.01}, "cotangents": []})", "DifferentiateRequest"}}) {
    const std::string file = Write("request.json", request);
    const ProcessResult result = RunClient({"solve", file});
    EXPECT_EQ(result.exit_code, kFailed);
    EXPECT_EQ(result.err, "sap-client: INVALID_ARGUMENT: " + file + ": is a " + name +
                              "; a problem is what its field 'problem' holds\n");
  }
}

TEST_F(ClientCommandTest, SeveralFilesGiveALineEach) {
  const ProcessResult result =
      RunClient({"solve", Example(), ProblemPath("nasty_no_contacts"), "--threads", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<std::string> lines = Lines(result.out);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[0], StartsWith("problem"));
  EXPECT_THAT(lines[1], StartsWith("clutter_bin_8_t2p00.json"));
  EXPECT_THAT(lines[1], HasSubstr("CONVERGED"));
  EXPECT_THAT(lines[2], StartsWith("nasty_no_contacts.json"));
}

TEST_F(ClientCommandTest, AServerGivesTheSameSolution) {
  const ServerProcess server;
  const auto solve = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"solve", Example()});
    const ProcessResult result = RunClient(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    auto solution = nlohmann::json::parse(result.out);
    solution.erase("timings");
    solution.at("islands").erase("solve_time_s");
    return solution;
  };
  EXPECT_EQ(solve({"--server", server.address()}), solve({}));
  const nlohmann::json exact = solve({"--server", server.address(), "--coulomb"});
  EXPECT_EQ(exact, solve({"--coulomb"}));
  EXPECT_GT(exact.at("islands").at("coulomb_defect").at(0), 0.0);
}

TEST_F(ClientCommandTest, OptionsReachTheSolver) {
  const ProcessResult result =
      RunClient({"solve", Example(), "--islands", "off", "--newton", "plain", "--tolerance", "1e-3",
                 "--time-budget", "60", "--max-iterations", "300"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out).at("islands").at("status").size(), 1u);
}

// The answer is printed all the same: it is the best iterate.
TEST_F(ClientCommandTest, AnIslandThatDidNotConvergeIsExitCodeOne) {
  const ProcessResult result = RunClient({"solve", Example(), "--max-iterations", "0"});
  EXPECT_EQ(result.exit_code, kNotSolved);
  EXPECT_THAT(result.out, HasSubstr("ISLAND_STATUS_ITERATION_LIMIT"));
}

TEST_F(ClientCommandTest, ErrorsNameFileAndFieldOnStandardError) {
  auto problem = client::LoadProblem(Example());
  ASSERT_TRUE(problem.has_value());
  problem->contacts.law.friction[3] = std::numeric_limits<double>::quiet_NaN();
  const std::string broken = directory_ / "broken.json";
  ASSERT_TRUE(client::SaveProblem(*problem, broken).has_value());
  const ServerProcess server;
  const std::vector<std::vector<std::string>> places = {{}, {"--server", server.address()}};
  for (const auto& place : places) {
    std::vector<std::string> arguments = {"solve", broken};
    arguments.insert(arguments.end(), place.begin(), place.end());
    const ProcessResult result = RunClient(arguments);
    EXPECT_EQ(result.exit_code, kFailed);
    EXPECT_EQ(result.out, "");
    const std::string message = "sap-client: INVALID_ARGUMENT: " + broken +
                                ": contacts.friction[3] is NaN; it must be finite and >= 0";
    ASSERT_THAT(result.err, testing::StartsWith(message));
    EXPECT_THAT(result.err.substr(message.size()),
                testing::MatchesRegex(place.empty() ? "\n" : " \\(request id [0-9a-f]{32}\\)\n"));
  }
}

// A bad file does not prevent the others from being solved.
TEST_F(ClientCommandTest, AfterABadFileTheOthersAreSolved) {
  const std::string bad = Write("bad.json", R"({"time_step": 0.01, "gravity": 9.81})");
  const ProcessResult result = RunClient({"solve", bad, Example()});
  EXPECT_EQ(result.exit_code, kFailed);
  EXPECT_THAT(result.err, HasSubstr("gravity"));
  EXPECT_THAT(result.out, HasSubstr("clutter_bin_8_t2p00.json"));
}

TEST_F(ClientCommandTest, WhatCannotBeDoneIsRefused) {
  EXPECT_EQ(RunClient({"solve", directory_ / "missing.json"}).exit_code, kFailed);
  EXPECT_EQ(RunClient({"solve", Example(), "--output", directory_ / "no/such/file"}).exit_code,
            kFailed);
  EXPECT_EQ(RunClient({"solve", Example(), Example(), "--output", directory_ / "one"}).exit_code,
            kFailed);
  const ProcessResult tolerance = RunClient({"solve", Example(), "--tolerance", "nan"});
  EXPECT_EQ(tolerance.exit_code, kFailed);
  EXPECT_THAT(tolerance.err, HasSubstr("options.relative_tolerance"));
  const ProcessResult budget = RunClient({"solve", Example(), "--time-budget", "-1"});
  EXPECT_EQ(budget.exit_code, kFailed);
  EXPECT_THAT(budget.err, HasSubstr("options.time_budget"));
}

// As on a full disk: what did not reach the file is no answer.
TEST_F(ClientCommandTest, StandardOutputThatCannotBeWrittenIsAnError) {
  const std::vector<std::string> commands{"info", "--help", "solve '" + Example() + "'"};
  for (const std::string& arguments : commands) {
    const ProcessResult result = RunProcess(
        {"/bin/sh", "-c", "exec '" SAP_CLIENT_BINARY "' " + arguments + " > /dev/full"}, kPatience);
    EXPECT_EQ(result.exit_code, kFailed) << arguments;
    EXPECT_THAT(result.err, HasSubstr("standard output: cannot write: No space left on device"))
        << arguments;
  }
}

TEST_F(ClientCommandTest, AnOutputFileIsGzippedByItsName) {
  const std::string path = directory_ / "solution.json.gz";
  ASSERT_EQ(RunClient({"solve", Example(), "--output", path}).exit_code, 0);
  EXPECT_THAT(Read("solution.json.gz"), StartsWith("\x1f\x8b"));
}

TEST_F(ClientCommandTest, OnlyWhatIsInARecordingIsCounted) {
  const ProcessResult result = RunClient(
      {"record", Example(), directory_ / "missing.json", "--output", directory_ / "recording"});
  EXPECT_EQ(result.exit_code, kFailed);
  EXPECT_THAT(result.out, StartsWith("1 problems and answers in "));
}

TEST_F(ClientCommandTest, AProblemIsNotReplacedByItsRecording) {
  const std::string problem = Write("problem.json", R"({"time_step": 0.01})");
  EXPECT_EQ(RunClient({"record", problem, "--output", problem}).exit_code, kFailed);
  EXPECT_EQ(Read("problem.json"), R"({"time_step": 0.01})");
}

TEST_F(ClientCommandTest, WrongUsageIsRefused) {
  const std::vector<std::vector<std::string>> cases = {
      {},
      {"solve"},
      {"guess"},
      {"health"},
      {"admin", "--server", "127.0.0.1:1"},
      {"admin", "drain"},
      {"solve", Example(), "--islands", "maybe"},
      {"solve", Example(), "--newton", "fast"},
      {"solve", Example(), "--threads", "0"},
      {"solve", Example(), "--time-budget", "nan"},
      {"solve", Example(), "--time-budget", "soon"},
      {"solve", Example(), "--max-iterations", "-1"},
      {"solve", Example(), "--server", "127.0.0.1:1", "--threads", "2"},
      {"solve", Example(), "--token-file", "token"},
      {"simulate", "clutter", "--time", "nan"},
      {"simulate", "clutter", "--seed", "-1", "--time", "0"},
      {"simulate", "clutter", "--csv", directory_ / "no/such/file"},
      {"simulate", "clutter", "--picture", directory_ / ""},
      {"simulate", "clutter", "--picture", ""},
      {"simulate", "clutter", "--step", "nan"},
      {"simulate", "clutter", "--time", "1e6", "--step", "1e-6"},
      {"bench", Example(), "--duration", "nan"},
      {"bench", Example(), "--csv", "csv", "--compare-echo", "127.0.0.1:1"},
      {"bench", "--recording", "file", "--rate", "1"}};
  for (const auto& arguments : cases) {
    const ProcessResult result = RunClient(arguments);
    EXPECT_EQ(result.exit_code, kFailed) << testing::PrintToString(arguments);
    EXPECT_NE(result.err, "") << testing::PrintToString(arguments);
  }
}

// Defaults of a load.
TEST_F(ClientCommandTest, TheHelpOfBenchTellsItsDefaults) {
  const std::string help = RunClient({"bench", "--help"}).out;
  for (const char* flag : {"--workers INT:INT in [1 - 10000]=1\n", "}=session\n",
                           "--retry-at-once ", "--duration FLOAT:FLOAT in [0.001 - 1e+06]=10\n"}) {
    EXPECT_THAT(help, HasSubstr(flag));
  }
}

TEST_F(ClientCommandTest, TheHelpOfACommandHasItsOwnFlagsFirst) {
  const std::string help = RunClient({"solve", "--help"}).out;
  EXPECT_LT(help.find("  --output "), help.find("\nServer:\n"));
  EXPECT_LT(help.find("\nServer:\n"), help.find("  --tls-ca "));
  EXPECT_LT(help.find("  --tls-ca "), help.find("\nSolver:\n"));
  EXPECT_LT(help.find("\nSolver:\n"), help.find("  --tolerance "));
  EXPECT_NE(help.find("  --tolerance "), std::string::npos);
}

TEST_F(ClientCommandTest, AnUnknownCommandIsNamedWithTheNearest) {
  const auto error_of = [](const std::vector<std::string>& arguments) {
    const ProcessResult result = RunClient(arguments);
    EXPECT_EQ(result.exit_code, kFailed);
    return result.err;
  };
  EXPECT_THAT(error_of({"slove", Example()}),
              StartsWith("'slove' is not a command; did you mean 'solve'?\n"));
  EXPECT_THAT(error_of({"admin", "--server", "127.0.0.1:1", "dran"}),
              StartsWith("'dran' is not a command; did you mean 'drain'?\n"));
  EXPECT_THAT(error_of({"guess"}), StartsWith("'guess' is not a command\n"));
  EXPECT_THAT(error_of({"--thread", "2"}), StartsWith("'--thread' is not a flag\n"));
  EXPECT_THAT(error_of({"solve", Example(), "--treads", "2"}),
              StartsWith("'--treads' is not a flag; did you mean '--threads'?\n"));
  EXPECT_THAT(error_of({"admin", "--sever", "127.0.0.1:1", "drain"}),
              StartsWith("'--sever' is not a flag; did you mean '--server'?\n"));
  EXPECT_THAT(error_of({}), StartsWith("A subcommand is required\n"));
}

TEST_F(ClientCommandTest, AnUnknownNameIsRefusedWithTheNamesThatExist) {
  const ProcessResult result = RunClient({"solve", Example(), "--newton", "exact"});
  EXPECT_EQ(result.exit_code, kFailed);
  EXPECT_THAT(result.err,
              StartsWith("--newton: 'exact' is not one of accelerated, gauss-seidel, plain\n"));
  EXPECT_THAT(RunClient({"solve", "--help"}).out, HasSubstr("{accelerated, gauss-seidel, plain}"));
}

TEST_F(ClientCommandTest, HealthAndInfoAskTheServer) {
  ServerProcess server({"--max-contacts", "4321"});
  const ProcessResult health = RunClient({"health", "--server", server.address()});
  EXPECT_EQ(health.exit_code, 0) << health.err;
  EXPECT_EQ(health.out, "SERVING\n");
  const ProcessResult info = RunClient({"info", "--server", server.address()});
  EXPECT_EQ(info.exit_code, 0) << info.err;
  EXPECT_THAT(info.out, HasSubstr("4321"));

  server.Terminate();
  EXPECT_EQ(server.Wait().exit_code, 0);
  const ProcessResult gone = RunClient({"health", "--server", server.address()});
  EXPECT_EQ(gone.exit_code, kFailed);
  EXPECT_THAT(gone.err, HasSubstr("UNAVAILABLE"));
}

TEST_F(ClientCommandTest, AdminHasTheServerRecordLogAndGo) {
  const std::string address = "unix:" + (directory_ / "admin").string();
  ServerProcess server({"--admin-listen", address, "--admin-token-file",
                        Write("operators", "olga an-operators-token-0123\n")});
  const std::string token = Write("token", "an-operators-token-0123\n");
  const auto admin = [&](std::vector<std::string> what) {
    what.insert(what.begin(), {"admin", "--server", address, "--token-file", token});
    return RunClient(what);
  };
  const ProcessResult stranger = RunClient({"admin", "--server", address, "drain"});
  EXPECT_EQ(stranger.exit_code, kFailed);
  EXPECT_THAT(stranger.err, HasSubstr("UNAUTHENTICATED"));
  EXPECT_EQ(admin({"log-level", "error"}).exit_code, 0);
  EXPECT_EQ(admin({"log-level", "loud"}).exit_code, kFailed);

  const ProcessResult absent = admin({"record", directory_ / "recordings"});
  EXPECT_EQ(absent.exit_code, kFailed);
  EXPECT_THAT(absent.err, HasSubstr("recordings: No such file or directory"));
  std::filesystem::create_directory(directory_ / "recordings");
  const ProcessResult begun = admin({"record", directory_ / "recordings"});
  ASSERT_EQ(begun.exit_code, 0) << begun.err;
  EXPECT_EQ(RunClient({"solve", Example(), "--server", server.address()}).exit_code, 0);
  const ProcessResult ended = admin({"record"});
  EXPECT_EQ(ended.out, begun.out);
  EXPECT_EQ(RunClient({"replay", Lines(ended.out).at(0)}).exit_code, 0);
  const ProcessResult none = admin({"record"});
  EXPECT_EQ(none.exit_code, 0);
  EXPECT_EQ(none.out, "");
  EXPECT_EQ(none.err, "sap-client: there is no recording to end\n");
  const ProcessResult refused = admin({"record", "/dev/null/nowhere"});
  EXPECT_EQ(refused.exit_code, kFailed);
  EXPECT_THAT(refused.err, HasSubstr("FAILED_PRECONDITION"));

  EXPECT_EQ(admin({"drain"}).exit_code, 0);
  EXPECT_EQ(server.Wait().exit_code, 0);
}

TEST_F(ClientCommandTest, InfoWithoutServerTellsOfTheEmbeddedOne) {
  const ProcessResult info = RunClient({"info"});
  EXPECT_EQ(info.exit_code, 0) << info.err;
  EXPECT_THAT(info.out, HasSubstr("instruction set"));
}

}  // namespace
}  // namespace sap::test
