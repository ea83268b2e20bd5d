#pragma once

namespace sap {

// A sum of costs [J].
struct CostSum {
  double value{0};
  double magnitude{0};  // the sum of the sizes of its terms, which can have either sign
};

}  // namespace sap
