#include "client/c/drake/contact_jacobian.h"

#include <algorithm>

#include "client/c/drake/plant.h"

namespace sap::drake {
namespace {

// Calls use(row, column, value) for each value of J.
template <typename Use>
void ForValues(const sap_drake_plant& plant, const ContactJacobian& J, const Use& use) {
  const double* value = J.values;
  for (int64_t i = 0; i < J.count; ++i) {
    for (const int32_t tree : {J.tree_a[i], J.tree_b[i]}) {
      if (tree == kWorld) continue;
      for (int64_t row = 3 * i; row < 3 * i + 3; ++row) {
        for (int64_t column = plant.first[tree]; column < plant.first[tree + 1]; ++column) {
          use(row, column, *value++);
        }
      }
    }
  }
}

}  // namespace

void WriteGeneralizedImpulse(const sap_drake_plant& plant, const ContactJacobian& J,
                             const double* impulse, double* result) {
  std::fill_n(result, ProblemVelocities(plant), 0.0);
  ForValues(plant, J, [&](int64_t row, int64_t column, double value) {
    result[column] += value * impulse[row];
  });
}

void WriteContactVelocity(const sap_drake_plant& plant, const ContactJacobian& J,
                          const double* velocity, double* result) {
  std::fill_n(result, 3 * J.count, 0.0);
  ForValues(plant, J, [&](int64_t row, int64_t column, double value) {
    result[row] += value * velocity[column];
  });
}

}  // namespace sap::drake
