// Memory, descriptors, start and connections of this process, from the kernel. Linux only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "server/service/memory_guard.h"

namespace sap {

struct ProcessStatus {
  int open_descriptors{0};
  int64_t max_descriptors{0};
  double start_time_s{0};  // since the epoch
  double processor_s{0};   // user and system time
};

// Resident memory and its limit: that of the control groups or of the machine, or `limit` where
// that is given (not 0) and less.
ProcessMemory ReadProcessMemory(int64_t limit, const std::filesystem::path& root = "/");

// Values that cannot be read are 0. `root` has proc and sys/fs/cgroup.
ProcessStatus ReadProcessStatus(const std::filesystem::path& root = "/");

// Connections of this process that were accepted at this listen address: unix:PATH, or HOST:PORT
// with the port that the kernel assigned. Looks at the process's own descriptors; the kernel's
// table of connections holds those of the whole machine.
int CountConnections(const std::string& address);

}  // namespace sap
