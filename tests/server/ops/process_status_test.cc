// Contents of /proc and control groups, written down here, and of this process.
#include "server/ops/process_status.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <vector>

#include "tests/support/child_process.h"

namespace sap::test {
namespace {

void Write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

TEST(ProcessStatusTest, TheSmallestLimitOfTheGroupsCounts) {
  const TemporaryDirectory directory;
  const std::filesystem::path root = directory / "";
  Write(root / "proc/self/cgroup", "1:cpu:/other\n0::/system.slice/sap-server.service\n");
  Write(root / "sys/fs/cgroup/memory.max", "max\n");
  Write(root / "sys/fs/cgroup/system.slice/memory.max", "3000000\n");
  Write(root / "sys/fs/cgroup/system.slice/sap-server.service/memory.max", "2000000\n");
  EXPECT_EQ(ReadProcessMemory(0, root).limit_bytes, 2'000'000);
  Write(root / "sys/fs/cgroup/system.slice/sap-server.service/memory.max", "max\n");
  EXPECT_EQ(ReadProcessMemory(0, root).limit_bytes, 3'000'000);
  EXPECT_EQ(ReadProcessMemory(4'000'000, root).limit_bytes, 3'000'000);
  EXPECT_EQ(ReadProcessMemory(1'000'000, root).limit_bytes, 1'000'000);
}

// As in containers on machines whose kernel still has version 1.
TEST(ProcessStatusTest, TheLimitOfAGroupOfVersion1Counts) {
  const TemporaryDirectory directory;
  const std::filesystem::path root = directory / "";
  Write(root / "proc/self/cgroup", "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/\n");
  Write(root / "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write(root / "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "2000000\n");
  EXPECT_EQ(ReadProcessMemory(0, root).limit_bytes, 2'000'000);
}

TEST(ProcessStatusTest, TheStartIsReadBehindTheNameOfTheProgram) {
  const TemporaryDirectory directory;
  const std::filesystem::path root = directory / "";
  Write(root / "proc/self/stat",
        "7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 9 0 4200 1000 10 99\n");
  Write(root / "proc/stat", "cpu 1 2 3\nbtime 1700000000\nprocesses 7\n");
  EXPECT_DOUBLE_EQ(ReadProcessStatus(root).start_time_s,
                   1'700'000'000 + 4200.0 / static_cast<double>(sysconf(_SC_CLK_TCK)));
}

TEST(ProcessStatusTest, ThisProcessSeesItself) {
  const ProcessStatus before = ReadProcessStatus();
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_LT(before.start_time_s, now + 1);
  EXPECT_GT(before.start_time_s, now - 86'400);
  EXPECT_GT(ReadProcessMemory(0).resident_bytes, 1 << 20);
  const int descriptor = dup(STDERR_FILENO);
  EXPECT_EQ(ReadProcessStatus().open_descriptors, before.open_descriptors + 1);
  close(descriptor);
}

// A socket that listens at the address, and how many connections it has accepted.
void ExpectToCountConnections(int listener, const std::string& address,
                              const std::function<int()>& connect_to_it) {
  EXPECT_EQ(CountConnections(address), 0);
  std::vector<int> ends;
  for (int i = 0; i < 2; ++i) ends.push_back(connect_to_it());
  ends.push_back(accept(listener, nullptr, nullptr));
  EXPECT_EQ(CountConnections(address), 1) << "the other one waits to be accepted";
  ends.push_back(accept(listener, nullptr, nullptr));
  EXPECT_EQ(CountConnections(address), 2);
  close(ends.back());
  EXPECT_EQ(CountConnections(address), 1);
  ends.pop_back();
  for (const int fd : ends) close(fd);
  close(listener);
}

TEST(ProcessStatusTest, ConnectionsOfTheAddressAreCounted) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof name;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&name), length), 0);
  ASSERT_EQ(listen(listener, 4), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&name), &length), 0);
  ExpectToCountConnections(listener, "127.0.0.1:" + std::to_string(ntohs(name.sin_port)), [&] {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&name), length), 0);
    return fd;
  });
}

TEST(ProcessStatusTest, ConnectionsOfAUnixSocketAreCounted) {
  const TemporaryDirectory directory;
  const std::string path = (directory / "socket").string();
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof name.sun_path);
  path.copy(name.sun_path, path.size());
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(listen(listener, 4), 0);
  ExpectToCountConnections(listener, "unix://" + path, [&] {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
    return fd;
  });
}

}  // namespace
}  // namespace sap::test
