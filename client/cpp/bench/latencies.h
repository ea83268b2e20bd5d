// Durations of many calls, and what is to be said about them.
#pragma once

#include <cstddef>
#include <vector>

namespace sap::client {

// Every duration is kept, so that percentiles are exact.
class Latencies {
 public:
  void Add(double seconds) { seconds_.push_back(seconds); }
  void Add(const Latencies& other);
  size_t count() const { return seconds_.size(); }

  // The smallest duration that at least this share of all does not exceed [s]; share in [0, 1]. 0
  // if there are none.
  double Percentile(double share) const;

 private:
  mutable std::vector<double> seconds_;  // sorted when asked
};

}  // namespace sap::client
