#include "server/ops/process_status.h"

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <sstream>
#include <system_error>

#include "server/listen_address.h"
#include "solver/engine/control_groups.h"

namespace sap {
namespace {

using std::filesystem::path;

// The number after a word, as in "btime 1763900000"; 0: there is none.
int64_t NumberAfter(const std::string& text, const std::string& word) {
  const size_t place = text.find(word);
  int64_t number = 0;
  if (place != std::string::npos) std::istringstream(text.substr(place + word.size())) >> number;
  return number;
}

int64_t ResidentBytes(const path& root) {
  std::istringstream sizes(ReadText(root / "proc/self/statm"));
  int64_t size = 0, resident = 0;
  sizes >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// The smallest limit of this process's groups.
int64_t MemoryLimit(const path& root) {
  int64_t limit = sysconf(_SC_PHYS_PAGES) * int64_t{sysconf(_SC_PAGESIZE)};
  for (const path& folder : GroupFolders(root, "memory")) {
    for (const char* file : {"memory.max", "memory.limit_in_bytes"}) {
      std::istringstream text(ReadText(folder / file));
      if (int64_t bytes = 0; text >> bytes) limit = std::min(limit, bytes);
    }
  }
  return limit;
}

int OpenDescriptors(const path& root) {
  std::error_code error;
  const std::filesystem::directory_iterator files(root / "proc/self/fd", error);
  // One of them is that of this look.
  return error ? 0 : static_cast<int>(std::distance(begin(files), end(files))) - 1;
}

double StartTime(const path& root) {
  // The name of the program, in parentheses, may contain blanks.
  const std::string stat = ReadText(root / "proc/self/stat");
  std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
  constexpr int kFieldsBefore = 19;  // of the start time, after the name
  std::string skipped;
  for (int i = 0; i < kFieldsBefore; ++i) fields >> skipped;
  double ticks = 0;
  fields >> ticks;
  const auto boot = static_cast<double>(NumberAfter(ReadText(root / "proc/stat"), "btime "));
  return boot + ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// The name of a socket; of the family AF_UNSPEC if it has none, or if this is no socket.
template <typename Ask>
sockaddr_storage NameOf(Ask ask, int fd) {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  if (ask(fd, reinterpret_cast<sockaddr*>(&name), &length) != 0) name.ss_family = AF_UNSPEC;
  return name;
}

// The port of an address of TCP, else 0.
unsigned PortOf(const sockaddr_storage& name) {
  if (name.ss_family != AF_INET && name.ss_family != AF_INET6) return 0;
  // It has the same place in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&name)->sin_port);
}

}  // namespace

ProcessMemory ReadProcessMemory(int64_t limit, const path& root) {
  const int64_t least = MemoryLimit(root);
  return {.resident_bytes = ResidentBytes(root),
          .limit_bytes = limit > 0 ? std::min(limit, least) : least};
}

ProcessStatus ReadProcessStatus(const path& root) {
  rlimit descriptors{};
  getrlimit(RLIMIT_NOFILE, &descriptors);
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return {.open_descriptors = OpenDescriptors(root),
          .max_descriptors = static_cast<int64_t>(descriptors.rlim_cur),
          .start_time_s = StartTime(root),
          .processor_s = Seconds(use.ru_utime) + Seconds(use.ru_stime)};
}

int CountConnections(const std::string& address) {
  const bool is_unix = IsUnixSocket(address);
  const std::string path = is_unix ? UnixPath(address) : "";
  unsigned port = 0;
  const size_t colon = address.rfind(':') + 1;
  std::from_chars(address.data() + colon, address.data() + address.size(), port);
  const auto is_here = [&](const sockaddr_storage& name) {
    if (!is_unix) return port != 0 && PortOf(name) == port;
    return name.ss_family == AF_UNIX &&
           path == reinterpret_cast<const sockaddr_un*>(&name)->sun_path;
  };
  int count = 0;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string digits = file.path().filename();
    int fd = -1;
    std::from_chars(digits.data(), digits.data() + digits.size(), fd);
    // Sockets that listen have no peer.
    if (is_here(NameOf(getsockname, fd)) && NameOf(getpeername, fd).ss_family != AF_UNSPEC) ++count;
  }
  return count;
}

}  // namespace sap
