// Durations of many calls and their percentiles.
#pragma once

#include <cstddef>
#include <vector>

namespace sap::client {

// Keeps every duration, so that percentiles are exact.
class Latencies {
 public:
  void Add(double seconds) { seconds_.push_back(seconds); }
  void Add(const Latencies& other);
  size_t count() const { return seconds_.size(); }

  // Nearest rank: the smallest duration that at least this share of all does not exceed [s]; share
  // in [0, 1]. 0 without durations.
  double Percentile(double share) const;

 private:
  mutable std::vector<double> seconds_;  // sorted by Percentile
};

}  // namespace sap::client
