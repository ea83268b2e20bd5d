// The units of deploy/ as systemd reads them, and the server with the flags of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "client/cpp/transport/message_conversion.h"
#include "tests/e2e/server_process.h"
#include "tests/support/await.h"
#include "tests/support/scenes.h"

namespace sap::test {
namespace {

using testing::HasSubstr;

// Text of a file as it ships.
std::string Text(const std::string& name) {
  std::stringstream text;
  text << std::ifstream(std::string(SAP_DEPLOY_DIRECTORY) + "/" + name).rdbuf();
  return text.str();
}

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

  // The flags of ExecStart, except for its lines' ends and variables.
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

// systemctl start returns when the server serves, and fails where it cannot.
TEST_F(UnitFilesTest, TheServerTellsSystemdWhenItServes) {
  EXPECT_THAT(Text("sap-server.service"), HasSubstr("\nType=notify\n"));
  const std::string path = Path("notify");
  const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof name.sun_path - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  const auto told = [fd] {
    std::array<char, 64> state{};
    const ssize_t size = recv(fd, state.data(), state.size(), MSG_DONTWAIT);
    return std::string(state.data(), std::max<ssize_t>(size, 0));
  };
  const std::string variable = "NOTIFY_SOCKET=" + path;
  const ProcessResult failed = RunProcess(
      {"/usr/bin/env", variable, SAP_SERVER_BINARY, "--token-file", Path("absent")}, kPatience);
  EXPECT_NE(failed.exit_code, 0);
  EXPECT_EQ(told(), "");
  ServerProcess server({}, {"/usr/bin/env", variable});
  std::string state;
  EXPECT_TRUE(Await([&] { return (state = told()) != ""; }));
  EXPECT_EQ(state, "READY=1");
  server.Terminate();
  EXPECT_EQ(server.Wait().exit_code, 0);
  EXPECT_EQ(told(), "STOPPING=1");
  close(fd);
}

// One line, not those of gRPC's internals.
TEST_F(UnitFilesTest, ATakenPortIsOneLine) {
  const ServerProcess server;
  const ProcessResult second =
      RunProcess({SAP_SERVER_BINARY, "--listen", server.address()}, kPatience);
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_EQ(std::ranges::count(second.err, '\n'), 1) << second.err;
  EXPECT_THAT(second.err, HasSubstr("another server uses this address"));
}

// Such a start fails again, whenever it is repeated: one error of systemctl start, and no loop.
TEST_F(UnitFilesTest, AMistakeOfTheConfigurationIsNotStartedAgain) {
  EXPECT_THAT(Text("sap-server.service"), HasSubstr("\nRestartPreventExitStatus=2\n"));
  Write("empty", "");
  for (const auto& flags : std::vector<std::vector<std::string>>{
           {"--treads", "3"},
           {"--threads", "many"},
           {"--listen", "0.0.0.0:0"},
           {"--token-file", Path("absent")},
           {"--tls-cert", Path("absent"), "--tls-key", Path("absent")},
           {"--tls-cert", Path("empty"), "--tls-key", Path("empty")},
           {"--log-file", Path("absent") + "/log"},
           {"--record", Path("absent")}}) {
    std::vector<std::string> command{SAP_SERVER_BINARY, "--listen", "127.0.0.1:0"};
    if (flags[0] == "--listen") command.resize(1);
    command.insert(command.end(), flags.begin(), flags.end());
    const ProcessResult result = RunProcess(command, kPatience);
    EXPECT_EQ(result.exit_code, 2) << flags[0] << " " << flags[1] << ": " << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err, "");
  }
  EXPECT_FALSE(std::filesystem::exists(Path("absent")));
}

// Lines of the journal are JSON, each of them: the line for scripts is left out there.
TEST_F(UnitFilesTest, TheJournalHasNoLineForScripts) {
  const std::string address = "unix:" + Path("server");
  ChildProcess server({"/bin/sh", "-c",
                       "exec 3>&1; JOURNAL_STREAM=$(stat -L -c %d:%i /dev/fd/3) exec \"$0\" \"$@\"",
                       SAP_SERVER_BINARY, "--listen", address});
  auto client = client::Client::Connect(address, {.connect_timeout = kPatience});
  ASSERT_TRUE(client.has_value()) << client.error().message;
  server.Signal(SIGTERM);
  const ProcessResult result = server.Wait(kPatience);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("\"message\":\"listening on " + address + "\"}\n"));
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

// Users and groups of a unit's process; without User= it is one of its own.
struct Identity {
  std::string user;
  std::set<std::string> groups;
};

Identity IdentityOf(const std::string& unit) {
  Identity identity;
  std::stringstream lines(unit);
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = line.find('=');
    const std::string key = line.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : line.substr(equals + 1);
    if (key == "User") identity.user = value;
    if (key == "Group" || key == "SupplementaryGroups") {
      std::stringstream names(value);
      for (std::string name; names >> name;) identity.groups.insert(name);
    }
  }
  return identity;
}

// The table of owners and modes in deploy/README.md.
class FileModes {
 public:
  FileModes() {
    std::stringstream readme(Text("README.md"));
    const std::regex row(R"(^\| (`/.*`) \| ([\w-]+):([\w-]+) \| ([0-7]{3}) \|.*)");
    const std::regex path("`([^`]+)`");
    std::smatch cells;
    for (std::string line; std::getline(readme, line);) {
      if (!std::regex_match(line, cells, row)) continue;
      const std::string paths = cells[1];
      for (std::sregex_iterator i(paths.begin(), paths.end(), path), end; i != end; ++i) {
        files_[(*i)[1]] = {cells[2], cells[3], std::stoi(cells[4], nullptr, 8)};
      }
    }
  }

  int ModeOf(const std::string& path) const { return files_.at(path).mode; }
  std::string GroupOf(const std::string& path) const { return files_.at(path).group; }

  // Permission bits (4 read, 2 write, 1 execute) of an identity on a file of the table; 0 if it may
  // not enter the directory.
  int Bits(const Identity& who, const std::filesystem::path& path) const {
    const auto directory = files_.find(path.parent_path());
    if (directory != files_.end() && (Bits(who, directory->second) & 1) == 0) return 0;
    return Bits(who, files_.at(path));
  }

 private:
  struct File {
    std::string owner, group;
    int mode;
  };

  static int Bits(const Identity& who, const File& file) {
    if (who.user == file.owner) return file.mode >> 6 & 7;
    return (who.groups.contains(file.group) ? file.mode >> 3 : file.mode) & 7;
  }

  std::map<std::string, File> files_;
};

TEST_F(UnitFilesTest, TheProxyReadsNoTokensNorKeysOfTheServer) {
  const FileModes files;
  const Identity server = IdentityOf(Text("sap-server.service"));
  const Identity proxy = IdentityOf(Text("sap-proxy.service"));
  EXPECT_EQ(server.user, "sap-server");
  EXPECT_EQ(proxy.user, "");
  for (const char* secret : {"/etc/sap-server/tokens", "/etc/sap-server/server.key"}) {
    EXPECT_EQ(files.Bits(server, secret), 4) << secret;
    EXPECT_EQ(files.Bits(proxy, secret), 0) << secret;
  }
  for (const char* own : {"/etc/sap-proxy/proxy.pem", "/etc/sap-proxy/haproxy.cfg"}) {
    EXPECT_EQ(files.Bits(proxy, own), 4) << own;
    EXPECT_THAT(Text("sap-proxy.service"), HasSubstr(own));
  }
  // To connect takes the permission to write.
  EXPECT_EQ(files.Bits(proxy, "/run/sap-server/socket") & 2, 2);
  for (const char* others :
       {"/run/sap-server/admin", "/var/lib/sap-server", "/var/log/sap-server"}) {
    EXPECT_EQ(files.Bits(proxy, others), 0) << others;
    EXPECT_EQ(files.Bits(server, others), 7) << others;
  }
}

TEST_F(UnitFilesTest, TheUnitMakesItsDirectoriesAsTheDocumentsSay) {
  const FileModes files;
  const std::string unit = Text("sap-server.service");
  for (const auto& [path, mode] :
       std::map<std::string, std::string>{{"/run/sap-server", "RuntimeDirectoryMode"},
                                          {"/var/lib/sap-server", "StateDirectoryMode"},
                                          {"/var/log/sap-server", "LogsDirectoryMode"}}) {
    EXPECT_EQ(files.GroupOf(path), "sap-socket");
    std::stringstream octal;
    octal << std::oct << files.ModeOf(path);
    EXPECT_THAT(unit, HasSubstr("\n" + mode + "=0" + octal.str() + "\n"));
  }
  EXPECT_THAT(unit, HasSubstr("\nGroup=sap-socket\n"));
}

TEST_F(UnitFilesTest, SocketsHaveTheModesOfTheDocuments) {
  const FileModes files;
  EXPECT_THAT(Text("sap-server.service"), HasSubstr("\nUMask=0007\n"));
  const ServerProcess server(FlagsOfTheServer(),
                             {"/bin/sh", "-c", "umask 0007; exec \"$0\" \"$@\""});
  for (const std::string name : {"socket", "admin"}) {
    EXPECT_EQ(static_cast<int>(std::filesystem::status(Path(name)).permissions()),
              files.ModeOf("/run/sap-server/" + name));
  }
}

// Runs them in another place, without the users and groups of an installation.
TEST_F(UnitFilesTest, TheCommandsOfTheDocumentsMakeTheModesOfTheDocuments) {
  std::string section = Text("README.md");
  section = section.substr(section.find("\n## One server\n"));
  std::string commands =
      "set -eu; umask 022\nuseradd() { :; }\ngroupadd() { :; }\nchgrp() { :; }\n";
  // Without "-g GROUP", and not into /usr.
  commands +=
      "install() {\n  case \"$*\" in *sbin*|*/usr/*|*/systemd/*) return ;; esac\n"
      "  command install $(echo \"$*\" | sed 's/-g [a-z-]* //')\n}\n";
  std::stringstream lines(section);
  bool inside = false, first = true;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      if (inside) first = false;
      inside = line == "```sh";
    } else if (inside && (first || line.find("/etc/sap-proxy") != std::string::npos)) {
      commands += line + "\n";
    }
  }
  Replace("/etc/sap-", Path("") + "etc-sap-", &commands);
  Replace("~/", Path(""), &commands);
  Replace("deploy/", std::string(SAP_DEPLOY_DIRECTORY) + "/", &commands);
  const ProcessResult run = RunProcess({"/bin/sh", "-c", commands}, kPatience);
  ASSERT_EQ(run.exit_code, 0) << run.err << commands;
  const FileModes files;
  for (const char* name : {"server", "server/server.key", "server/tokens", "server/server.crt",
                           "server/ca.crt", "proxy", "proxy/proxy.pem", "proxy/haproxy.cfg"}) {
    EXPECT_EQ(static_cast<int>(
                  std::filesystem::status(Path(std::string("etc-sap-") + name)).permissions()),
              files.ModeOf(std::string("/etc/sap-") + name))
        << name;
  }
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
