#include "client/c/drake/dynamics.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "client/c/drake/plant.h"
#include "client/c/tree_factorization.h"

namespace sap::drake {
namespace {

// Writes A of the tree with velocities `order` [n].
void WriteBlock(const sap_drake_plant& plant, const PlantState& state, const int64_t* order,
                int64_t n, double* block) {
  for (int64_t i = 0; i < n; ++i) {
    const double* row = state.mass + plant.velocities * order[i];
    for (int64_t j = 0; j < n; ++j) block[i * n + j] = row[order[j]];
    block[i * n + i] += plant.time_step * state.damping[order[i]];
  }
}

}  // namespace

void WriteDynamics(const sap_drake_plant& plant, const PlantState& state, double* blocks,
                   double* v_star, double* diagonal) {
  std::vector<double> factors;
  std::vector<double> change;  // dt A^-1 tau_0
  for (int64_t tree = 0; tree < plant.trees; ++tree) {
    const int64_t begin = plant.first[tree];
    const int64_t n = TreeSize(plant, tree);
    const int64_t* order = plant.order + begin;
    WriteBlock(plant, state, order, n, blocks);
    factors.assign(blocks, blocks + n * n);
    change.resize(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      diagonal[begin + i] = blocks[i * n + i];
      change[static_cast<size_t>(i)] = plant.time_step * state.force[order[i]];
    }
    SolveInPlace(factors, change);
    for (int64_t i = 0; i < n; ++i) {
      v_star[begin + i] = state.v_0[order[i]] + change[static_cast<size_t>(i)];
    }
    blocks += n * n;
  }
}

}  // namespace sap::drake
