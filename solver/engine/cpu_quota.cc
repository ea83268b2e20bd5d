#include "solver/engine/cpu_quota.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "solver/engine/control_groups.h"

namespace sap {
namespace {

std::optional<double> Ratio(double quota, double period) {
  if (!(quota > 0 && period > 0)) return std::nullopt;
  return quota / period;
}

std::optional<double> Smaller(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
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

std::optional<double> CpuQuota(const std::filesystem::path& root) {
  std::optional<double> smallest;
  for (const std::filesystem::path& folder : GroupFolders(root, "cpu")) {
    smallest = Smaller(smallest, ParseCpuMax(ReadText(folder / "cpu.max")));
    smallest = Smaller(smallest, ParseCfsQuota(ReadText(folder / "cpu.cfs_quota_us"),
                                               ReadText(folder / "cpu.cfs_period_us")));
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
