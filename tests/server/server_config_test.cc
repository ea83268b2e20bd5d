#include "server/server_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "server/service/request_handler.h"

namespace sap {
namespace {

std::optional<int> Read(std::vector<const char*> flags, ServerConfig* config,
                        std::vector<const char*> environment = {}) {
  flags.insert(flags.begin(), "sap-server");
  environment.push_back(nullptr);
  return ReadServerFlags(static_cast<int>(flags.size()), flags.data(), environment.data(), config);
}

// A file of flags, which is gone after the test.
class FlagFileTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  const char* File(const std::string& text) {
    std::ofstream(path_) << text;
    return path_.c_str();
  }

  // What reading the file prints to standard error; it must be refused.
  std::string ErrorOf(const std::string& text) {
    ServerConfig config;
    testing::internal::CaptureStderr();
    EXPECT_EQ(Read({"--config", File(text)}, &config), kUsageError);
    return testing::internal::GetCapturedStderr();
  }

 private:
  const std::string path_ = testing::TempDir() + "flags-" + std::to_string(getpid()) + ".toml";
};

TEST_F(FlagFileTest, EachLineIsAFlag) {
  ServerConfig config;
  const char* file = File(
      "# of a pod\n"
      "listen = \"unix:/tmp/s\"\n"
      "threads = 3  # of 8\n"
      "max-solve-s = 2.5\n"
      "insecure-listen = true\n"
      "log-level = \"debug\"\n");
  ASSERT_EQ(Read({"--config", file}, &config), std::nullopt);
  EXPECT_EQ(config.listen, "unix:/tmp/s");
  EXPECT_EQ(config.threads, 3);
  EXPECT_EQ(config.admission.client.max_solve_s, 2.5);
  EXPECT_TRUE(config.security.insecure_listen);
  EXPECT_EQ(config.log.level, LogLevel::kDebug);
}

TEST_F(FlagFileTest, TheCommandLineCountsBeforeTheEnvironmentAndThisBeforeTheFile) {
  ServerConfig config;
  const char* file = File("threads = 3\nio-threads = 3\nsolver-nice = 3\n");
  ASSERT_EQ(Read({"--config", file, "--threads=1"}, &config,
                 {"SAP_THREADS=2", "SAP_IO_THREADS=2", "SAP_LISTEN=", "HOME=/"}),
            std::nullopt);
  EXPECT_EQ(config.threads, 1);
  EXPECT_EQ(config.io_threads, 2);
  EXPECT_EQ(config.solver_nice, 3);
  EXPECT_EQ(config.listen, ServerConfig().listen);
}

TEST_F(FlagFileTest, MistakesAreNamed) {
  EXPECT_THAT(ErrorOf("treads = 3\n"),
              testing::StartsWith("--config: 'treads' is not a flag; did you mean 'threads'?\n"));
  EXPECT_THAT(ErrorOf("threads = x\n"), testing::HasSubstr("--threads"));
  EXPECT_THAT(ErrorOf("threads = [1, 2]\n"), testing::HasSubstr("'threads' needs one value"));
  EXPECT_THAT(ErrorOf("[threads]\nmax = 2\n"), testing::HasSubstr("[threads] begins a table"));
  EXPECT_THAT(ErrorOf("tls-key = \"key\"\n"), testing::HasSubstr("--tls-key requires --tls-cert"));
  ServerConfig config;
  EXPECT_EQ(Read({"--config", "/nope"}, &config), kUsageError);
  EXPECT_EQ(Read({}, &config, {"SAP_THREADS=x"}), kUsageError);
}

// An operator finds a flag by its group, as in server/README.md.
TEST(ServerConfigTest, HelpHasGroups) {
  ServerConfig config;
  testing::internal::CaptureStdout();
  EXPECT_EQ(Read({"--help"}, &config), 0);
  const std::string help = testing::internal::GetCapturedStdout();
  size_t at = 0;
  for (const char* group : {"Addresses and threads:", "Security:", "Messages:", "Problems:",
                            "Connections:", "Admission, in total and per client:", "Sessions:",
                            "Worlds:", "Operations:", "Recording:"}) {
    const size_t found = help.find(std::string("\n") + group + "\n");
    ASSERT_NE(found, std::string::npos) << group;
    EXPECT_GT(found, at) << group;
    at = found;
  }
}

// Limits of messages and problems, each with another number.
const std::vector<const char*> kLimitsOfMessages{
    "--max-message-bytes", "5000", "--max-trees",      "6",  "--max-tree-dofs",        "7",
    "--max-contacts",      "8",    "--max-rows",       "21", "--max-row-entries",      "22",
    "--max-row-pairs",     "23",   "--max-iterations", "9",  "--max-solve-memory-mib", "3",
    "--max-derivatives",   "24",
};

// systemd does not start the server again after this code.
TEST(ServerConfigTest, EveryErrorOfTheCommandLineEndsWithTheSameCode) {
  for (const auto& flags :
       {std::vector<const char*>{"--treads", "3"}, std::vector<const char*>{"--threads", "x"},
        std::vector<const char*>{"--threads"}, std::vector<const char*>{"extra"},
        std::vector<const char*>{"--listen", "0.0.0.0:1"},
        std::vector<const char*>{"--tls-key", "key"}}) {
    ServerConfig config;
    EXPECT_EQ(Read(flags, &config), kUsageError) << flags[0];
  }
  for (const char* flag : {"--help", "--version"}) {
    ServerConfig config;
    EXPECT_EQ(Read({flag}, &config), 0);
  }
}

TEST(ServerConfigTest, AMistypedFlagIsNamedWithTheNearestOne) {
  const auto message = [](const std::vector<const char*>& flags) {
    ServerConfig config;
    testing::internal::CaptureStderr();
    Read(flags, &config);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(message({"--treads", "3"}),
              testing::StartsWith("'--treads' is not a flag; did you mean '--threads'?\n"));
  EXPECT_THAT(message({"--record-rul=all"}), testing::HasSubstr("did you mean '--record-rule'?"));
  EXPECT_THAT(message({"--entirely-else"}),
              testing::StartsWith("'--entirely-else' is not a flag\n"));
  EXPECT_THAT(message({"extra"}), testing::StartsWith("'extra' is one argument too many\n"));
  EXPECT_THAT(message({"--threads", "x"}), testing::HasSubstr("--threads"));
}

TEST(ServerConfigTest, DefaultsServeTheLoopbackOnEveryProcessor) {
  ServerConfig config;
  EXPECT_EQ(Read({}, &config), std::nullopt);
  EXPECT_EQ(config.listen, "127.0.0.1:50051");
  EXPECT_GE(config.threads, 1);
  EXPECT_GE(config.io_threads, 1);
  EXPECT_EQ(config.max_message_bytes, 256 * 1024 * 1024);
  EXPECT_EQ(config.inline_below_us, 200);
}

TEST(ServerConfigTest, EveryFlagSetsItsValue) {
  ServerConfig config;
  ASSERT_EQ(Read({"--listen",
                  "unix:/tmp/s",
                  "--threads",
                  "3",
                  "--io-threads",
                  "4",
                  "--idle-spinners",
                  "0",
                  "--max-concurrent-calls",
                  "10",
                  "--inline-below-us",
                  "11",
                  "--drain-timeout-s",
                  "12.5",
                  "--max-batch-problems",
                  "13",
                  "--max-sessions",
                  "14",
                  "--max-client-sessions",
                  "17",
                  "--max-steps-in-flight",
                  "15",
                  "--record",
                  "/tmp/r",
                  "--record-rule",
                  "slower",
                  "--record-slower-than",
                  "0.5",
                  "--record-max-bytes",
                  "16"},
                 &config),
            std::nullopt);
  EXPECT_EQ(config.listen, "unix:/tmp/s");
  EXPECT_EQ(config.threads, 3);
  EXPECT_EQ(config.io_threads, 4);
  EXPECT_EQ(config.idle_spinners, 0);
  EXPECT_EQ(config.admission.all.max_calls, 10);
  EXPECT_EQ(config.inline_below_us, 11);
  EXPECT_EQ(config.drain_timeout_s, 12.5);
  EXPECT_EQ(config.max_batch_problems, 13);
  EXPECT_EQ(config.admission.all.max_sessions, 14);
  EXPECT_EQ(config.admission.client.max_sessions, 17);
  EXPECT_EQ(config.session.max_steps_in_flight, 15);
  EXPECT_EQ(config.recording.directory, "/tmp/r");
  EXPECT_EQ(config.recording.rule, RecordingConfig::Rule::kSlower);
  EXPECT_EQ(config.recording.slower_than_s, 0.5);
  EXPECT_EQ(config.recording.max_bytes, 16);
}

TEST(ServerConfigTest, FlagsOfMessagesSetTheirValues) {
  ServerConfig config;
  std::vector<const char*> flags = kLimitsOfMessages;
  flags.insert(flags.end(), {"--memory-limit-bytes", "25"});
  ASSERT_EQ(Read(flags, &config), std::nullopt);
  EXPECT_EQ(config.max_message_bytes, 5000);
  EXPECT_EQ(config.problem.max_trees, 6);
  EXPECT_EQ(config.problem.max_tree_dofs, 7);
  EXPECT_EQ(config.problem.max_contacts, 8);
  EXPECT_EQ(config.problem.max_rows, 21);
  EXPECT_EQ(config.problem.max_row_entries, 22);
  EXPECT_EQ(config.problem.max_row_pairs, 23);
  EXPECT_EQ(config.max_iterations, 9);
  EXPECT_EQ(config.max_solve_memory_mib, 3);
  EXPECT_EQ(config.max_derivatives, 24);
  EXPECT_EQ(config.memory_limit_bytes, 25);
}

TEST(ServerConfigTest, FlagsOfSecurityConnectionsAndAdmissionSetTheirValues) {
  ServerConfig config;
  ASSERT_EQ(Read({"--tls-cert",
                  "c",
                  "--tls-key",
                  "k",
                  "--tls-client-ca",
                  "a",
                  "--token-file",
                  "t",
                  "--max-streams-per-connection",
                  "1",
                  "--max-header-bytes",
                  "2000",
                  "--handshake-timeout-s",
                  "3",
                  "--keepalive-s",
                  "4",
                  "--keepalive-timeout-s",
                  "5",
                  "--connection-idle-s",
                  "6",
                  "--connection-age-s",
                  "6.5",
                  "--max-watches",
                  "20",
                  "--max-watches-per-connection",
                  "2",
                  "--max-connection-memory-bytes",
                  "7000000",
                  "--max-concurrent-bytes",
                  "8",
                  "--max-concurrent-work-s",
                  "9",
                  "--max-client-calls",
                  "10",
                  "--max-client-bytes",
                  "11",
                  "--max-client-work-s",
                  "12",
                  "--queue-timeout-s",
                  "13"},
                 &config),
            std::nullopt);
  EXPECT_EQ(config.security.tls.certificate, "c");
  EXPECT_EQ(config.security.tls.key, "k");
  EXPECT_EQ(config.security.tls.client_ca, "a");
  EXPECT_EQ(config.security.token_file, "t");
  EXPECT_EQ(config.connection.max_streams, 1);
  EXPECT_EQ(config.connection.max_header_bytes, 2000);
  EXPECT_EQ(config.connection.handshake_timeout_s, 3);
  EXPECT_EQ(config.connection.keepalive_s, 4);
  EXPECT_EQ(config.connection.keepalive_timeout_s, 5);
  EXPECT_EQ(config.connection.idle_s, 6);
  EXPECT_EQ(config.connection.age_s, 6.5);
  EXPECT_EQ(config.connection.max_memory_bytes, 7'000'000);
  EXPECT_EQ(config.connection.max_watches, 20);
  EXPECT_EQ(config.connection.max_watches_per_connection, 2);
  EXPECT_EQ(config.admission.all.max_bytes, 8);
  EXPECT_EQ(config.admission.all.max_work_s, 9);
  EXPECT_EQ(config.admission.client.max_calls, 10);
  EXPECT_EQ(config.admission.client.max_bytes, 11);
  EXPECT_EQ(config.admission.client.max_work_s, 12);
  EXPECT_EQ(config.queue_timeout_s, 13);
}

TEST(ServerConfigTest, FlagsOfSessionsAndOperationsSetTheirValues) {
  ServerConfig config;
  ASSERT_EQ(Read({"--session-idle-s",   "1",           "--write-timeout-s", "2",
                  "--lame-duck-s",      "4",           "--log-level",       "warning",
                  "--log-file",         "f",           "--slow-call-s",     "5",
                  "--metrics-listen",   "127.0.0.1:6", "--admin-listen",    "unix:/a",
                  "--admin-token-file", "t",           "--otlp-collector",  "[::1]:4317"},
                 &config),
            std::nullopt);
  EXPECT_EQ(config.session.idle_s, 1);
  EXPECT_EQ(config.session.write_timeout_s, 2);
  EXPECT_EQ(config.lame_duck_s, 4);
  EXPECT_EQ(config.log.level, LogLevel::kWarning);
  EXPECT_EQ(config.log.file, "f");
  EXPECT_EQ(config.log.slow_call_s, 5);
  EXPECT_EQ(config.operations.metrics_listen, "127.0.0.1:6");
  EXPECT_EQ(config.operations.admin_listen, "unix:/a");
  EXPECT_EQ(config.operations.admin_token_file, "t");
  EXPECT_EQ(config.operations.otlp_collector, "[::1]:4317");
  ServerConfig open;
  EXPECT_NE(Read({"--admin-listen", "0.0.0.0:1"}, &open), std::nullopt);
}

TEST(ServerConfigTest, FlagsOfEntitlementsSetTheirValues) {
  ServerConfig config;
  EXPECT_EQ(config.admission.client.max_solve_s, 60);
  EXPECT_EQ(config.admission.client.max_calls_per_s, 0);
  ASSERT_EQ(Read({"--max-solve-s", "2.5", "--max-client-calls-per-s", "100"}, &config),
            std::nullopt);
  EXPECT_EQ(config.admission.client.max_solve_s, 2.5);
  EXPECT_EQ(config.admission.client.max_calls_per_s, 100);
}

TEST(ServerConfigTest, FlagsOfWorldsSetTheirValues) {
  ServerConfig config;
  EXPECT_EQ(config.worlds.mujoco_library, "");
  EXPECT_EQ(config.admission.client.max_model_bytes, int64_t{256} << 20);
  EXPECT_TRUE(config.admission.client.worlds);
  ASSERT_EQ(Read({"--mujoco-library", "m.so", "--max-model-memory-mib", "7",
                  "--max-client-model-memory-mib", "6", "--max-world-memory-mib", "65",
                  "--max-model-load-s", "3.5", "--max-step-s", "0.25", "--worlds-without-jail"},
                 &config),
            std::nullopt);
  EXPECT_EQ(config.worlds.mujoco_library, "m.so");
  EXPECT_EQ(config.worlds.max_model_memory_mib, 7);
  EXPECT_EQ(config.admission.client.max_model_bytes, 6 << 20);
  EXPECT_EQ(config.worlds.max_world_memory_mib, 65);
  EXPECT_EQ(config.worlds.max_model_load_s, 3.5);
  EXPECT_EQ(config.worlds.max_step_s, 0.25);
  EXPECT_TRUE(config.worlds.without_jail);
}

TEST(ServerConfigTest, HighPriorityIsForListedClientsWhereThereAreTokens) {
  const auto everybody = [](std::vector<const char*> flags) {
    ServerConfig config;
    EXPECT_EQ(Read(flags, &config), std::nullopt);
    return config.admission.client.high_priority;
  };
  EXPECT_TRUE(everybody({}));
  EXPECT_FALSE(everybody({"--token-file", "t"}));
  EXPECT_TRUE(everybody({"--token-file", "t", "--high-priority-clients", "all"}));
  EXPECT_FALSE(everybody({"--high-priority-clients", "listed"}));
  EXPECT_FALSE(everybody({"--token-file", "t", "--high-priority-clients", "auto"}));
}

// A non-local address needs TLS and client authentication, or --insecure-listen.
TEST(ServerConfigTest, ListensBeyondThisMachineOnlyWithCredentialsOrWhenToldSo) {
  const auto accepts = [](const char* address, std::vector<const char*> flags) {
    flags.insert(flags.end(), {"--listen", address});
    ServerConfig config;
    return !Read(flags, &config).has_value();
  };
  for (const char* address : {"0.0.0.0:1", "[::]:1", "192.0.2.1:1", "robot.example:1"}) {
    EXPECT_FALSE(accepts(address, {}));
    EXPECT_FALSE(accepts(address, {"--token-file", "t"}));
    EXPECT_FALSE(accepts(address, {"--tls-cert", "c", "--tls-key", "k"}));
    EXPECT_TRUE(accepts(address, {"--tls-cert", "c", "--tls-key", "k", "--token-file", "t"}));
    EXPECT_TRUE(accepts(address, {"--tls-cert", "c", "--tls-key", "k", "--tls-client-ca", "a"}));
    EXPECT_TRUE(accepts(address, {"--insecure-listen"}));
  }
  for (const char* address : {"127.0.0.1:1", "localhost:1", "[::1]:1", "unix:/tmp/s"}) {
    EXPECT_TRUE(accepts(address, {}));
  }
}

// Operators drain the server and write files, so nothing opens their address to strangers: neither
// the flag for the main address nor a certificate that every client has.
TEST(ServerConfigTest, TheAdminServiceListensBeyondThisMachineOnlyWithTlsAndOperatorTokens) {
  const auto accepts = [](const char* address, std::vector<const char*> flags) {
    flags.insert(flags.end(), {"--admin-listen", address});
    ServerConfig config;
    return !Read(flags, &config).has_value();
  };
  for (const char* address : {"0.0.0.0:1", "[::]:1", "robot.example:1"}) {
    EXPECT_FALSE(accepts(address, {}));
    EXPECT_FALSE(accepts(address, {"--insecure-listen"}));
    EXPECT_FALSE(accepts(address, {"--admin-token-file", "t"}));
    EXPECT_FALSE(accepts(address, {"--admin-token-file", "t", "--insecure-listen"}));
    EXPECT_FALSE(accepts(address, {"--tls-cert", "c", "--tls-key", "k", "--tls-client-ca", "a"}));
    EXPECT_FALSE(accepts(address, {"--tls-cert", "c", "--tls-key", "k", "--token-file", "t"}));
    EXPECT_TRUE(accepts(address, {"--tls-cert", "c", "--tls-key", "k", "--admin-token-file", "t"}));
  }
  for (const char* address : {"127.0.0.1:1", "unix:/tmp/s"}) {
    EXPECT_TRUE(accepts(address, {}));
  }
}

// A help text or an error with control characters would change the terminal of whoever reads it.
TEST(ServerConfigTest, HelpAndErrorsOfNamedValuesArePlainText) {
  for (const std::vector<const char*>& flags :
       {std::vector<const char*>{"--help"}, std::vector<const char*>{"--log-level", "foo"},
        std::vector<const char*>{"--record", "d", "--record-rule", "foo"}}) {
    ServerConfig config;
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    EXPECT_TRUE(Read(flags, &config).has_value());
    const std::string printed =
        testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
    EXPECT_GT(printed.size(), 0u);
    for (const char c : printed) {
      EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << flags[0] << ": " << static_cast<int>(c);
    }
  }
}

// Less than a second would close connections all the time.
TEST(ServerConfigTest, TheAgeOfConnectionsIsNoneOrAtLeastASecond) {
  for (const char* age : {"0", "0.0", "1", "300"}) {
    ServerConfig config;
    EXPECT_EQ(Read({"--connection-age-s", age}, &config), std::nullopt) << age;
  }
  for (const char* age : {"1e-9", "0.999", "-1", "nan", "inf", "soon"}) {
    ServerConfig config;
    testing::internal::CaptureStderr();
    EXPECT_TRUE(Read({"--connection-age-s", age}, &config).has_value()) << age;
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                testing::StartsWith("--connection-age-s: '" + std::string(age) +
                                    "' is not 0 or FLOAT in [1 - 1e+06]\n"));
  }
}

TEST(ServerConfigTest, AnErrorOfANamedValueTellsTheNames) {
  ServerConfig config;
  testing::internal::CaptureStderr();
  EXPECT_TRUE(Read({"--log-level", "foo"}, &config).has_value());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("'foo' is not one of debug, error, info, warning"));
}

// A client can find out every limit before it meets it.
TEST(ServerConfigTest, ServerInfoTellsEveryLimit) {
  ServerConfig config;
  std::vector<const char*> flags = kLimitsOfMessages;
  flags.insert(flags.end(), {"--threads",
                             "2",
                             "--max-concurrent-calls",
                             "10",
                             "--max-batch-problems",
                             "11",
                             "--max-sessions",
                             "12",
                             "--max-steps-in-flight",
                             "13",
                             "--max-client-calls",
                             "14",
                             "--max-concurrent-bytes",
                             "15",
                             "--max-client-bytes",
                             "16",
                             "--queue-timeout-s",
                             "17",
                             "--max-client-sessions",
                             "18",
                             "--read-timeout-s",
                             "19"});
  ASSERT_EQ(Read(flags, &config), std::nullopt);
  const v1::GetServerInfoResponse info = RequestHandler(config).Info();
  EXPECT_EQ(info.limits().max_message_bytes(), 5000u);
  EXPECT_EQ(info.limits().max_trees(), 6u);
  EXPECT_EQ(info.limits().max_tree_dofs(), 7u);
  EXPECT_EQ(info.limits().max_contacts(), 8u);
  EXPECT_EQ(info.limits().max_rows(), 21u);
  EXPECT_EQ(info.limits().max_row_entries(), 22u);
  EXPECT_EQ(info.limits().max_row_pairs(), 23u);
  EXPECT_EQ(info.limits().max_iterations(), 9u);
  EXPECT_EQ(info.limits().max_solve_memory_bytes(), 3u << 20);
  EXPECT_EQ(info.limits().max_derivatives(), 24u);
  EXPECT_EQ(info.limits().max_concurrent_calls(), 10u);
  EXPECT_EQ(info.limits().max_batch_problems(), 11u);
  EXPECT_EQ(info.limits().max_sessions(), 12u);
  EXPECT_EQ(info.limits().max_client_sessions(), 18u);
  EXPECT_EQ(info.limits().max_steps_in_flight(), 13u);
  EXPECT_EQ(info.limits().max_client_calls(), 14u);
  EXPECT_EQ(info.limits().max_held_bytes(), 15u);
  EXPECT_EQ(info.limits().max_client_bytes(), 16u);
  EXPECT_EQ(info.limits().queue_timeout_s(), 17);
  EXPECT_EQ(info.limits().read_timeout_s(), 19);
  EXPECT_EQ(info.solver_threads(), 2u);
  EXPECT_FALSE(info.version().empty() || info.instruction_set().empty());
}

class RefusedFlagsTest : public testing::TestWithParam<std::vector<const char*>> {};

TEST_P(RefusedFlagsTest, ExitsWithAnErrorThatNamesTheFlag) {
  ServerConfig config;
  testing::internal::CaptureStderr();
  const std::optional<int> exit_code = Read(GetParam(), &config);
  const std::string printed = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(exit_code.has_value());
  EXPECT_NE(*exit_code, 0);
  EXPECT_THAT(printed, testing::HasSubstr(GetParam()[0]));
}

INSTANTIATE_TEST_SUITE_P(
    Flags, RefusedFlagsTest,
    testing::Values(std::vector<const char*>{"--threads", "0"},
                    std::vector<const char*>{"--threads", "many"},
                    std::vector<const char*>{"--io-threads", "-1"},
                    std::vector<const char*>{"--max-message-bytes", "0"},
                    std::vector<const char*>{"--max-message-bytes", "2147483648"},
                    std::vector<const char*>{"--max-trees", "0"},
                    std::vector<const char*>{"--max-tree-dofs", "100000"},
                    std::vector<const char*>{"--max-contacts", "0"},
                    std::vector<const char*>{"--max-rows", "0"},
                    std::vector<const char*>{"--max-row-entries", "0"},
                    std::vector<const char*>{"--max-row-pairs", "-1"},
                    std::vector<const char*>{"--max-iterations", "0"},
                    std::vector<const char*>{"--max-solve-memory-mib", "0"},
                    std::vector<const char*>{"--max-concurrent-calls", "0"},
                    std::vector<const char*>{"--inline-below-us", "-1"},
                    std::vector<const char*>{"--max-batch-problems", "0"},
                    std::vector<const char*>{"--max-derivatives", "0"},
                    std::vector<const char*>{"--max-sessions", "0"},
                    std::vector<const char*>{"--max-solve-s", "0"},
                    std::vector<const char*>{"--max-client-calls-per-s", "-1"},
                    std::vector<const char*>{"--high-priority-clients", "some"},
                    std::vector<const char*>{"--max-steps-in-flight", "0"},
                    std::vector<const char*>{"--record-rule", "some"},
                    std::vector<const char*>{"--record-rule", "failed"},
                    std::vector<const char*>{"--record-max-bytes", "0"},
                    std::vector<const char*>{"--record-slower-than", "1", "--record", "d"},
                    std::vector<const char*>{"--drain-timeout-s", "-1"},
                    std::vector<const char*>{"--drain-timeout-s", "nan"},
                    std::vector<const char*>{"--read-timeout-s", "-NaN"},
                    std::vector<const char*>{"--max-solve-s", "inf"},
                    std::vector<const char*>{"--listen", "50051"},
                    std::vector<const char*>{"--listen", ":50051"},
                    std::vector<const char*>{"--listen", "localhost"},
                    std::vector<const char*>{"--listen", "localhost:65536"},
                    std::vector<const char*>{"--listen", "localhost:http"},
                    std::vector<const char*>{"--listen", "unix:"},
                    std::vector<const char*>{"--metrics-listen", "unix:/m"},
                    std::vector<const char*>{"--log-level", "loud"},
                    std::vector<const char*>{"--max-step-s", "0"},
                    std::vector<const char*>{"--max-world-memory-mib", "1"},
                    std::vector<const char*>{"--worlds-without-jail"},
                    std::vector<const char*>{"--no-such-flag", "1"}));

}  // namespace
}  // namespace sap
