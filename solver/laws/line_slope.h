#pragma once

namespace sap {

// First and second derivative of a cost along a line.
struct LineSlope {
  double first{0};
  double second{0};
};

inline void AddTo(LineSlope* sum, const LineSlope& part) {
  sum->first += part.first;
  sum->second += part.second;
}

}  // namespace sap
