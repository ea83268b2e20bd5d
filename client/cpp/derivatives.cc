#include "client/cpp/derivatives.h"

#include <algorithm>

namespace sap::client {

const char* Name(AdjointStatus status) {
  switch (status) {
    case AdjointStatus::kDifferentiated:
      return "DIFFERENTIATED";
    case AdjointStatus::kInaccurate:
      return "INACCURATE";
    case AdjointStatus::kDeadline:
      return "DEADLINE";
    case AdjointStatus::kNumericalFailure:
      return "NUMERICAL_FAILURE";
  }
  return "UNKNOWN";
}

bool Derivatives::Accurate() const {
  return std::ranges::all_of(adjoint_status, [](AdjointStatus status) {
    return status == AdjointStatus::kDifferentiated;
  });
}

}  // namespace sap::client
