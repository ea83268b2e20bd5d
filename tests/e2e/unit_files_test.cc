// The units of deploy/ as systemd reads them, and the server with the flags of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "client/cpp/transport/message_conversion.h"
#include "tests/e2e/server_process.h"
#include "tests/support/scenes.h"

namespace sap::test {
namespace {

using testing::HasSubstr;

// With the places that an installation makes in a directory.
class UnitFilesTest : public testing::Test {
 protected:
  UnitFilesTest() {
    for (const std::string name : {"sap-server.service", "sap-proxy.service"}) {
      std::string unit = Text(name);
      Replace("/usr/local/bin/sap-server", SAP_SERVER_BINARY, &unit);
      Write(name, unit);
    }
    Write("tokens", "alice a-token-0123456789\n");
    Write("token", "a-token-0123456789\n");
  }

  // Of a file as it ships.
  static std::string Text(const std::string& name) {
    std::stringstream text;
    text << std::ifstream(std::string(SAP_DEPLOY_DIRECTORY) + "/" + name).rdbuf();
    return text.str();
  }

  static void Replace(const std::string& from, const std::string& to, std::string* text) {
    for (size_t at = text->find(from); at != std::string::npos;
         at = text->find(from, at + to.size())) {
      text->replace(at, from.size(), to);
    }
  }

  std::string Path(const std::string& name) const { return directory_ / name; }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
  }

  // What ExecStart says, but for its lines' ends and variables.
  std::vector<std::string> FlagsOfTheServer() const {
    std::ifstream file(Path("sap-server.service"));
    std::string line;
    while (std::getline(file, line) && !line.starts_with("ExecStart=")) {
    }
    std::vector<std::string> flags;
    for (bool more = true; more; more = line.ends_with('\\') && std::getline(file, line)) {
      std::stringstream words(line);
      for (std::string word; words >> word;) {
        if (word == "\\" || word.starts_with("ExecStart=") || word.starts_with('$')) continue;
        Replace("/run/sap-server", Path(""), &word);
        Replace("/etc/sap-server", Path(""), &word);
        Replace(":9464", ":0", &word);
        flags.push_back(word);
      }
    }
    return flags;
  }

  TemporaryDirectory directory_;
};

TEST_F(UnitFilesTest, SystemdFindsNothingWrong) {
  const ProcessResult verified = RunProcess(
      {"/usr/bin/systemd-analyze", "verify", Path("sap-server.service"), Path("sap-proxy.service")},
      kPatience);
  EXPECT_EQ(verified.exit_code, 0);
  EXPECT_EQ(verified.out + verified.err, "");
}

TEST_F(UnitFilesTest, SystemdWouldSayWhatIsWrong) {
  Write("wrong.service", "[Service]\nExecStart=/bin/true\nLimitNOFILES=1\n");
  const ProcessResult verified =
      RunProcess({"/usr/bin/systemd-analyze", "verify", Path("wrong.service")}, kPatience);
  EXPECT_THAT(verified.err, HasSubstr("LimitNOFILES"));
}

// The rotation relies on the unit to pass on a hang-up, and on the directory that it makes.
TEST_F(UnitFilesTest, TheUnitReloadsAndLogsWhereTheRotationExpectsIt) {
  const std::string unit = Text("sap-server.service");
  const std::string rotation = Text("sap-server.logrotate");
  EXPECT_THAT(unit, HasSubstr("\nExecReload=/bin/kill -HUP $MAINPID\n"));
  EXPECT_THAT(unit, HasSubstr("\nLogsDirectory=sap-server\n"));
  EXPECT_THAT(unit, HasSubstr("\nUser=sap-server\n"));
  EXPECT_THAT(rotation, HasSubstr("\n/var/log/sap-server/*.log {\n  su sap-server "));
  EXPECT_THAT(rotation, HasSubstr("systemctl reload sap-server\n"));
}

TEST_F(UnitFilesTest, TheServerServesWithTheFlagsOfItsUnit) {
  ServerProcess server(FlagsOfTheServer());
  EXPECT_THAT(server.address(), HasSubstr("/socket"));
  client::ConnectOptions options{.connect_timeout = kPatience};
  auto stranger = client::Client::Connect(server.address(), options);
  options.credentials.token_file = Path("token");
  auto alice = client::Client::Connect(server.address(), options);
  ASSERT_TRUE(stranger.has_value() && alice.has_value());
  const auto problem = client::FromMessage(MixedProblem());
  EXPECT_EQ(stranger->Solve(*problem).error().code, client::ErrorCode::kUnauthenticated);
  EXPECT_TRUE(alice->Solve(*problem).has_value());
  server.Terminate();
  EXPECT_EQ(server.Wait().exit_code, 0);
}

}  // namespace
}  // namespace sap::test
