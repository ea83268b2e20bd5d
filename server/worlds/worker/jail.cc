#include "server/worlds/worker/jail.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

namespace sap {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "sap-worlds is for x86-64 and arm64"
#endif

// Calls that are made. Numbers of another architecture, as those of x32, are in no list.
constexpr uint32_t kAllowed[] = {
    // The channel, and memory.
    SYS_read, SYS_write, SYS_pread64, SYS_close, SYS_munmap, SYS_mremap, SYS_brk, SYS_madvise,
    // Threads and time.
    SYS_futex, SYS_set_robust_list, SYS_rseq, SYS_sched_yield, SYS_getpid, SYS_gettid,
    SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_restart_syscall, SYS_clock_gettime, SYS_gettimeofday,
    SYS_getrandom, SYS_exit, SYS_exit_group};

// Calls that map memory, by the argument that has its protection: without PROT_EXEC.
constexpr uint32_t kMapping[] = {SYS_mmap, SYS_mprotect};
constexpr int kProtectionArgument = 2;

// Calls that libraries try and can do without: they fail with EPERM.
constexpr uint32_t kFailing[] = {
#ifdef SYS_open  // not on arm64
    SYS_open,       SYS_stat,       SYS_lstat,
    SYS_access,     SYS_readlink,   SYS_time,
    SYS_getrlimit,
#endif
    SYS_openat,     SYS_newfstatat, SYS_fstat,
    SYS_statx,      SYS_faccessat,  SYS_faccessat2,
    SYS_readlinkat, SYS_getcwd,     SYS_getdents64,
    SYS_ioctl,      SYS_fcntl,      SYS_lseek,
    SYS_uname,      SYS_sysinfo,    SYS_sched_getaffinity,
    SYS_prlimit64,  SYS_tgkill,     SYS_rt_sigaction,
    SYS_nanosleep,  SYS_prctl,      SYS_clock_nanosleep,
    SYS_socket};

// Flags of a thread of this process, as the C library starts one: no process, no namespace.
constexpr uint32_t kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                             CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |
                             CLONE_CHILD_CLEARTID;

// A filter of system calls, as the kernel's virtual machine runs it.
class Filter {
 public:
  Filter() {
    Load(offsetof(seccomp_data, arch));
    Unless(kArchitecture, SECCOMP_RET_KILL_PROCESS);
    Load(offsetof(seccomp_data, nr));
  }

  void Answer(uint32_t call, uint32_t action) {
    Jump(BPF_JEQ, call, 0, 1);
    Return(action);
  }

  // Allows a call whose argument has none of the bits; with one of them it fails.
  void AllowWithout(uint32_t call, int argument, uint32_t bits) {
    Choose(call, argument, BPF_JSET, bits, SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW);
  }

  // Allows a call whose argument is the value; otherwise it fails.
  void AllowWith(uint32_t call, int argument, uint32_t value) {
    Choose(call, argument, BPF_JEQ, value, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EPERM);
  }

  void Return(uint32_t action) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, action)); }

  tl::expected<void, std::string> Install() {
    const sock_fprog program = {static_cast<unsigned short>(code_.size()), code_.data()};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0) return {};
    return tl::unexpected(std::string("the kernel does not filter system calls: ") +
                          std::strerror(errno));
  }

 private:
  void Load(size_t offset) {
    code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)));
  }
  void Jump(uint16_t condition, uint32_t value, uint8_t if_true, uint8_t if_false) {
    code_.push_back(
        BPF_JUMP(static_cast<uint16_t>(BPF_JMP | condition | BPF_K), value, if_true, if_false));
  }
  void Unless(uint32_t value, uint32_t action) {
    Jump(BPF_JEQ, value, 1, 0);
    Return(action);
  }
  void Choose(uint32_t call, int argument, uint16_t condition, uint32_t value, uint32_t if_true,
              uint32_t if_false) {
    Jump(BPF_JEQ, call, 0, 4);
    Load(offsetof(seccomp_data, args) + 8 * static_cast<size_t>(argument));
    Jump(condition, value, 0, 1);
    Return(if_true);
    Return(if_false);
  }

  std::vector<sock_filter> code_;
};

tl::expected<void, std::string> Refuse(const char* what) {
  return tl::unexpected(std::string(what) + ": " + std::strerror(errno));
}

}  // namespace

tl::expected<void, std::string> EnterJail() {
  const rlimit none = {0, 0};
  for (const auto limit : {RLIMIT_CORE, RLIMIT_FSIZE, RLIMIT_NOFILE}) {
    if (setrlimit(limit, &none) != 0) return Refuse("the kernel sets no limits");
  }
  if (prctl(PR_SET_DUMPABLE, 0) != 0) return Refuse("the process stays open to debuggers");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Refuse("privileges can be gained");
  Filter filter;
  for (const uint32_t call : kAllowed) filter.Answer(call, SECCOMP_RET_ALLOW);
  for (const uint32_t call : kMapping) filter.AllowWithout(call, kProtectionArgument, PROT_EXEC);
  filter.AllowWith(SYS_clone, 0, kThread);
  filter.Answer(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);  // then it is SYS_clone
  for (const uint32_t call : kFailing) filter.Answer(call, SECCOMP_RET_ERRNO | EPERM);
  filter.Return(SECCOMP_RET_KILL_PROCESS);
  return filter.Install();
}

}  // namespace sap
