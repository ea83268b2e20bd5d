#include "client/cpp/bench/latencies.h"

#include <algorithm>
#include <cmath>

namespace sap::client {

void Latencies::Add(const Latencies& other) {
  seconds_.insert(seconds_.end(), other.seconds_.begin(), other.seconds_.end());
}

double Latencies::Percentile(double share) const {
  if (seconds_.empty()) return 0;
  std::ranges::sort(seconds_);
  const double rank = std::ceil(share * static_cast<double>(seconds_.size()));
  const auto index = static_cast<size_t>(std::max(rank, 1.0)) - 1;
  return seconds_[std::min(index, seconds_.size() - 1)];
}

}  // namespace sap::client
