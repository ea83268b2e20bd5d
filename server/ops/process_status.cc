#include "server/ops/process_status.h"

#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <vector>

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

// Lines with these two words at their places.
int CountLines(const path& file, size_t first_place, const std::string& first, size_t second_place,
               const std::string& second) {
  std::ifstream lines(file);
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream stream(line);
    const std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
    if (words.size() <= std::max(first_place, second_place)) continue;
    if (words[first_place].ends_with(first) && words[second_place] == second) ++count;
  }
  return count;
}

}  // namespace

ProcessStatus ReadProcessStatus(const path& root) {
  rlimit descriptors{};
  getrlimit(RLIMIT_NOFILE, &descriptors);
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return {.resident_bytes = ResidentBytes(root),
          .memory_limit_bytes = MemoryLimit(root),
          .open_descriptors = OpenDescriptors(root),
          .max_descriptors = static_cast<int64_t>(descriptors.rlim_cur),
          .start_time_s = StartTime(root),
          .processor_s = Seconds(use.ru_utime) + Seconds(use.ru_stime)};
}

// Formats: proc(5). Local addresses end in the port, as hexadecimal digits; 01 is established, and
// 03 connected, in the tables of TCP and of Unix sockets.
int CountConnections(const std::string& address, const path& root) {
  const path tables = root / "proc/self/net";
  if (IsUnixSocket(address)) {
    return CountLines(tables / "unix", 7, UnixPath(address), 5, "03");
  }
  const std::string digits = address.substr(address.rfind(':') + 1);
  unsigned port = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), port);
  std::array<char, 8> ending;
  std::snprintf(ending.data(), ending.size(), ":%04X", port & 0xffffU);
  return CountLines(tables / "tcp", 1, ending.data(), 3, "01") +
         CountLines(tables / "tcp6", 1, ending.data(), 3, "01");
}

}  // namespace sap
