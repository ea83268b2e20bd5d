// The processor time that control groups (containers, systemd units) grant to this process. A
// process that runs more threads than its quota allows is stopped by the kernel for the rest of
// each period, so defaults of thread counts depend on it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace sap {

// Quotas are in processors, as 1.5; nothing: unlimited.
//
// Parses cpu.max (control groups version 2), "QUOTA PERIOD" or "max PERIOD". Other text
// is no quota.
std::optional<double> ParseCpuMax(const std::string& cpu_max);
// Parses cpu.cfs_quota_us and cpu.cfs_period_us (version 1); quota -1 is none.
std::optional<double> ParseCfsQuota(const std::string& quota_us, const std::string& period_us);

// The smallest quota of this process's groups and those above them, from /proc/self/cgroup and
// /sys/fs/cgroup below the root.
std::optional<double> CpuQuota(const std::filesystem::path& root = "/");

// Threads that the quota can keep busy, at least 1 and at most the number of processors.
int ThreadsWithin(int processors, std::optional<double> quota);
// Idle-priority spinners: as many as threads, but none with a quota, which they would use up.
int SpinnersWithin(int processors, std::optional<double> quota);

}  // namespace sap
