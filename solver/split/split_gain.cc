#include "solver/split/split_gain.h"

#include <algorithm>
#include <numeric>

namespace sap {

double TimeOnServer(std::span<const double> times_s, std::span<const int> islands, int threads) {
  double sum = 0;
  double largest = 0;
  for (const int island : islands) {
    sum += times_s[island];
    largest = std::max(largest, times_s[island]);
  }
  return std::max(sum / threads, largest);
}

double CostOfSplit(size_t problem_bytes) {
  // A call over loopback, and two copies.
  constexpr double kCalls_s = 3e-4;
  constexpr double kPerByte_s = 1e-9;
  return kCalls_s + kPerByte_s * static_cast<double>(problem_bytes);
}

bool PaysOff(std::span<const double> times_s, const std::vector<std::vector<int>>& dealt,
             int threads, size_t problem_bytes) {
  if (dealt.size() < 2) return false;
  std::vector<int> all(times_s.size());
  std::iota(all.begin(), all.end(), 0);
  double longest = 0;
  for (const std::vector<int>& islands : dealt) {
    longest = std::max(longest, TimeOnServer(times_s, islands, threads));
  }
  return TimeOnServer(times_s, all, threads) - longest > CostOfSplit(problem_bytes);
}

}  // namespace sap
