#include "client/mujoco/moment_arms.h"

namespace sap::mujoco {
namespace {

MomentArms Arms(const int32_t* begin, const int32_t* count, const int32_t* dofs,
                const double* values, int64_t i) {
  return {{dofs + begin[i], static_cast<size_t>(count[i])}, values + begin[i]};
}

}  // namespace

double MomentArms::Times(const double* velocity) const {
  double sum = 0.0;
  for (size_t k = 0; k < dofs.size(); ++k) sum += values[k] * velocity[dofs[k]];
  return sum;
}

MomentArms ArmsOfOutput(const Fields& fields, int64_t output) {
  return Arms(fields.moment_rowadr, fields.moment_rownnz, fields.moment_colind,
              fields.actuator_moment, output);
}

MomentArms ArmsOfTendon(const Fields& fields, int64_t tendon) {
  return Arms(fields.ten_J_rowadr, fields.ten_J_rownnz, fields.ten_J_colind, fields.ten_J, tendon);
}

}  // namespace sap::mujoco
