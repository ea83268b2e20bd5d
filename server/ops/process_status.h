// What the kernel tells about this process: memory, descriptors, start, connections. Linux only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace sap {

struct ProcessStatus {
  int64_t resident_bytes{0};
  int64_t memory_limit_bytes{0};  // of its control groups, else of the machine
  int open_descriptors{0};
  int64_t max_descriptors{0};
  double start_time_s{0};  // since the epoch
  double processor_s{0};   // user and system time
};

// Values that cannot be read are 0. `root` has proc and sys/fs/cgroup.
ProcessStatus ReadProcessStatus(const std::filesystem::path& root = "/");

// Connections of this process that were accepted at this listen address: unix:PATH, or HOST:PORT
// with the port that the kernel assigned. Looks at the process's own descriptors; the kernel's
// table of connections holds those of the whole machine.
int CountConnections(const std::string& address);

}  // namespace sap
