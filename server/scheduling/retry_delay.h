// The delay after which a rejected client should retry.
#pragma once

#include <algorithm>

namespace sap {

// Bounds a predicted delay. The lower bound keeps retries from becoming the load; the upper bound
// keeps clients from staying away after a prediction that was too long.
inline double BoundedRetryDelay(double seconds) { return std::clamp(seconds, 0.01, 10.0); }

}  // namespace sap
