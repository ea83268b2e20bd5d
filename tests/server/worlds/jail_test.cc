#include "server/worlds/worker/jail.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "client/mujoco/sap_mujoco.h"
#include "server/worlds/worker_process.h"
#include "tests/server/worlds/mujoco_worlds.h"

namespace sap {
namespace {

constexpr int kNoJail = 100;

// Exit status of a jailed child that runs a body; of one that is killed, minus its signal.
int StatusInJail(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    if (!EnterJail()) _exit(kNoJail);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

// EPERM if the call fails so, otherwise another number.
int ErrorOf(int64_t result) { return result >= 0 ? 0 : errno; }

TEST(JailTest, HasNoFilesSocketsOrProcesses) {
  const std::pair<const char*, std::function<int()>> attempts[] = {
      {"open", [] { return ErrorOf(open("/etc/passwd", O_RDONLY)); }},
      {"create", [] { return ErrorOf(open("/tmp/jail", O_WRONLY | O_CREAT, 0600)); }},
      {"stream", [] { return std::ifstream("/etc/passwd").good() ? 0 : EPERM; }},
      {"access", [] { return ErrorOf(access("/etc/passwd", R_OK)); }},
      {"socket", [] { return ErrorOf(socket(AF_INET, SOCK_STREAM, 0)); }},
      {"fork", [] { return ErrorOf(fork()); }},
      {"signal", [] { return ErrorOf(raise(SIGUSR1) == 0 ? 0 : -1); }},
      {"limit",
       [] {
         const rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
         return ErrorOf(setrlimit(RLIMIT_AS, &all));
       }},
      {"prctl", [] { return ErrorOf(prctl(PR_SET_DUMPABLE, 1)); }},
      {"code",
       [] {
         void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         return page == MAP_FAILED ? errno : 0;
       }},
      {"code later",
       [] {
         void* const page =
             mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         return ErrorOf(mprotect(page, 4096, PROT_READ | PROT_EXEC));
       }},
  };
  for (const auto& [name, attempt] : attempts) EXPECT_EQ(StatusInJail(attempt), EPERM) << name;
}

TEST(JailTest, EndsAProcessThatTriesWhatNoLibraryDoes) {
  const std::pair<const char*, std::function<int()>> attempts[] = {
      {"exec", [] { return ErrorOf(execl("/bin/true", "true", nullptr)); }},
      {"kill", [] { return ErrorOf(kill(getppid(), SIGUSR1)); }},
      {"ptrace", [] { return ErrorOf(ptrace(PTRACE_ATTACH, getppid(), 0, 0)); }},
      {"memory of others",
       [] { return ErrorOf(syscall(SYS_process_vm_readv, getppid(), 0, 0, 0, 0, 0)); }},
      {"copy", [] { return ErrorOf(dup(0)); }},
      {"pipe",
       [] {
         int ends[2];
         return ErrorOf(pipe(ends));
       }},
      {"truncate", [] { return ErrorOf(ftruncate(0, 0)); }},
      {"unlink", [] { return ErrorOf(unlink("/tmp/jail")); }},
      {"connect", [] { return ErrorOf(connect(0, nullptr, 0)); }},
      {"filter", [] { return ErrorOf(syscall(SYS_seccomp, 0, 0, 0)); }},
  };
  for (const auto& [name, attempt] : attempts) EXPECT_EQ(StatusInJail(attempt), -SIGSYS) << name;
}

TEST(JailTest, HasMemoryThreadsAndTheEnd) {
  EXPECT_EQ(StatusInJail([] {
              std::vector<double> numbers(10'000'000, 1.0);
              numbers.resize(20'000'000);
              return numbers[15'000'000] == 0 ? 7 : 0;
            }),
            7);
  EXPECT_EQ(StatusInJail([] {
              int sum = 0;
              for (int i = 0; i < 3; ++i) std::thread([&] { sum += 3; }).join();
              return sum;
            }),
            9);
  EXPECT_EQ(StatusInJail([]() -> int { abort(); }), -SIGSEGV);  // it cannot signal itself
}

// A server that is killed leaves no worker, also none that is within a step.
TEST(JailTest, AWorkerEndsWithItsServer) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t server = fork();
  if (server == 0) {
    const auto worker = test::StartWorker();
    const int number = worker->pid();
    [[maybe_unused]] const ssize_t written = write(ends[1], &number, sizeof number);
    test::SliceOfAll slice(test::RolloutOf("clutter", 1, 1000000000, SAP_MUJOCO_SAP));
    [[maybe_unused]] const auto status = worker->Advance(slice.get(), test::kNever);
    _exit(1);
  }
  int worker = 0;
  ASSERT_EQ(read(ends[0], &worker, sizeof worker), static_cast<ssize_t>(sizeof worker));
  kill(server, SIGKILL);
  ASSERT_EQ(waitpid(server, nullptr, 0), server);
  int status = 0;
  ASSERT_EQ(waitpid(worker, &status, 0), worker);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  close(ends[0]);
  close(ends[1]);
}

// The kernel of this process has no filters from now on.
void RefuseFilters() {
  const sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_SECCOMP, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {std::size(code), const_cast<sock_filter*>(code)};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

// Where the kernel has no jail, workers start only if they may do without, and step all the same.
TEST(JailTest, AWorkerSaysThatItHasNone) {
  const pid_t child = fork();
  if (child == 0) {
    RefuseFilters();
    WorkerConfig config = test::ConfigOfWorker();
    const auto refused = WorkerProcess::Start(config);
    if (refused || refused.error().find("no jail: the kernel does not filter system calls") ==
                       std::string::npos) {
      _exit(1);
    }
    config.without_jail = true;
    const auto worker = WorkerProcess::Start(config);
    if (!worker || (*worker)->greeting().is_jailed) _exit(2);
    const test::Rollout rollout = test::RolloutOf("arm", 1, 3, SAP_MUJOCO_SAP);
    const auto there = test::ComputeThere(worker->get(), rollout, 1, 3);
    const bool is_equal =
        there && test::HaveEqualBits(there->states, test::ComputeHere(rollout).states);
    _exit(is_equal ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
}

// A worker has its channel and standard streams, and nothing of the server's environment.
TEST(JailTest, AWorkerInheritsNothing) {
  setenv("SAP_SECRET", "secret", 1);
  const auto worker = test::StartWorker();
  unsetenv("SAP_SECRET");
  ASSERT_NE(worker, nullptr);
  const auto process = std::filesystem::path("/proc") / std::to_string(worker->pid());
  std::ifstream status(process / "status");
  const std::string text(std::istreambuf_iterator<char>(status), {});
  EXPECT_NE(text.find("Seccomp:\t2"), std::string::npos);
  EXPECT_NE(text.find("NoNewPrivs:\t1"), std::string::npos);
  EXPECT_NE(text.find("Threads:\t1"), std::string::npos);
  if (geteuid() != 0) {  // nobody but root sees more
    std::error_code error;
    std::filesystem::directory_iterator(process / "fd", error);
    EXPECT_EQ(error, std::errc::permission_denied);
    return;
  }
  std::vector<std::string> descriptors;
  for (const auto& each : std::filesystem::directory_iterator(process / "fd")) {
    descriptors.push_back(each.path().filename());
  }
  std::ranges::sort(descriptors);
  // Also the file that tells its memory.
  EXPECT_EQ(descriptors, (std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6"}));
  std::ifstream environment(process / "environ");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(environment), {}), "");
}

}  // namespace
}  // namespace sap
