#include "solver/engine/cpu_quota.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

namespace sap {
namespace {

using std::filesystem::path;

std::string ReadText(const path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::optional<double> Ratio(double quota, double period) {
  if (!(quota > 0 && period > 0)) return std::nullopt;
  return quota / period;
}

std::optional<double> Smaller(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

// The smallest quota of a group and of those above it, up to the mount point of its hierarchy. A
// container sees its own group as the mount point, and its path may be one outside of it.
std::optional<double> QuotaUpwards(const path& mount_point, path group) {
  std::optional<double> smallest;
  for (group = group.relative_path();; group = group.parent_path()) {
    const path folder = mount_point / group;
    smallest = Smaller(smallest, ParseCpuMax(ReadText(folder / "cpu.max")));
    smallest = Smaller(smallest, ParseCfsQuota(ReadText(folder / "cpu.cfs_quota_us"),
                                               ReadText(folder / "cpu.cfs_period_us")));
    if (group.empty()) return smallest;
  }
}

// Where the hierarchy of a line of /proc/self/cgroup may be mounted: version 2 has no controllers
// in its line, and is mounted next to version 1 on some systems.
std::vector<path> MountPoints(const path& hierarchies, const std::string& controllers) {
  if (controllers.empty()) return {hierarchies, hierarchies / "unified"};
  const bool schedules_processors = ("," + controllers + ",").find(",cpu,") != std::string::npos;
  if (!schedules_processors) return {};
  if (controllers == "cpu") return {hierarchies / "cpu"};
  return {hierarchies / controllers, hierarchies / "cpu"};
}

}  // namespace

std::optional<double> ParseCpuMax(const std::string& cpu_max) {
  std::istringstream text(cpu_max);
  int64_t quota_us = 0, period_us = 0;
  if (!(text >> quota_us >> period_us)) return std::nullopt;
  return Ratio(static_cast<double>(quota_us), static_cast<double>(period_us));
}

std::optional<double> ParseCfsQuota(const std::string& quota_us, const std::string& period_us) {
  return ParseCpuMax(quota_us + " " + period_us);
}

std::optional<double> CpuQuota(const path& root) {
  std::istringstream groups(ReadText(root / "proc/self/cgroup"));
  std::optional<double> smallest;
  // Lines are "ID:CONTROLLERS:PATH".
  for (std::string line; std::getline(groups, line);) {
    std::istringstream fields(line);
    std::string id, controllers, group;
    if (!std::getline(fields, id, ':') || !std::getline(fields, controllers, ':')) continue;
    std::getline(fields, group);
    for (const path& mount_point : MountPoints(root / "sys/fs/cgroup", controllers)) {
      smallest = Smaller(smallest, QuotaUpwards(mount_point, group));
    }
  }
  return smallest;
}

int ThreadsWithin(int processors, std::optional<double> quota) {
  const double limit = std::min<double>(processors, quota ? std::ceil(*quota) : processors);
  return std::max(1, static_cast<int>(limit));
}

int SpinnersWithin(int processors, std::optional<double> quota) {
  return quota ? 0 : ThreadsWithin(processors, quota);
}

}  // namespace sap
