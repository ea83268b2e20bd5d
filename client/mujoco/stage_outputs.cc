#include "client/mujoco/stage_outputs.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "client/mujoco/effective_metric.h"

namespace sap::mujoco {
namespace {

// mjSolverStat.
struct Statistics {
  double improvement;
  double gradient;
  double lineslope;
  int32_t nactive;
  int32_t nchange;
  int32_t neval;
  int32_t nupdate;
};

void MultiplyJacobian(const Fields& fields, bool is_sparse, const double* x, double* product) {
  for (int64_t row = 0; row < fields.nefc; ++row) {
    double sum = 0.0;
    if (is_sparse) {
      const int64_t begin = fields.efc_J_rowadr[row];
      for (int64_t k = begin; k < begin + fields.efc_J_rownnz[row]; ++k) {
        sum += fields.efc_J[k] * x[fields.efc_J_colind[k]];
      }
    } else {
      const double* values = fields.efc_J + row * fields.nv;
      for (int64_t dof = 0; dof < fields.nv; ++dof) sum += values[dof] * x[dof];
    }
    product[row] = sum;
  }
}

// M has the entries of its lower triangle, row by row.
void AddProductOfM(const Fields& fields, const double* x, double* product) {
  for (int64_t i = 0; i < fields.nv; ++i) {
    const int64_t diagonal = fields.M_rowadr[i] + fields.M_rownnz[i] - 1;
    for (int64_t k = fields.M_rowadr[i]; k < diagonal; ++k) {
      const int32_t j = fields.M_colind[k];
      product[i] += fields.M[k] * x[j];
      product[j] += fields.M[k] * x[i];
    }
    product[i] += fields.M[diagonal] * x[i];
  }
}

// MuJoCo's island of a tree; -1: none. Without islands there is one of all trees.
int32_t IslandOf(const Fields& fields, const ContactSolution& solution, int64_t tree) {
  return fields.nisland > 0 ? solution.island_of_tree[tree] : 0;
}

template <typename Value>
void Gather(const Value* from, const int32_t* places, int64_t count, Value* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[places[i]];
}

}  // namespace

void StoreIslandArrays(const Fields& fields, bool is_sparse) {
  if (fields.nefc == 0) return;
  MultiplyJacobian(fields, is_sparse, fields.qacc_smooth, fields.efc_b);
  for (int64_t row = 0; row < fields.nefc; ++row) fields.efc_b[row] -= fields.efc_aref[row];
  if (fields.nisland == 0) return;
  const int32_t* dofs = fields.map_idof2dof;
  Gather(fields.qacc, dofs, fields.nidof, fields.iacc);
  Gather(fields.qacc_smooth, dofs, fields.nidof, fields.iacc_smooth);
  Gather(fields.qfrc_smooth, dofs, fields.nidof, fields.ifrc_smooth);
  Gather(fields.qfrc_constraint, dofs, fields.nidof, fields.ifrc_constraint);
  const int32_t* rows = fields.map_iefc2efc;
  Gather(fields.efc_force, rows, fields.nefc, fields.iefc_force);
  Gather(fields.efc_aref, rows, fields.nefc, fields.iefc_aref);
  Gather(fields.efc_state, rows, fields.nefc, fields.iefc_state);
}

void StoreIterations(const Fields& fields, const ContactSolution& solution) {
  std::ranges::fill(fields.solver_niter, 0);
  for (size_t i = 0; i < solution.islands.size(); ++i) {
    const size_t place = fields.nisland > 0 ? i : 0;
    if (place >= fields.solver_niter.size()) break;
    int32_t& iterations = fields.solver_niter[place];
    iterations = std::max<int32_t>(iterations, solution.islands[i].iterations);
  }
}

void SolverStatistics::Store(const Fields& fields, const Trees& trees,
                             const ContactSolution& solution, bool is_sparse) {
  StoreIterations(fields, solution);
  std::ranges::fill(fields.solver_nnz, 0);
  islands_.assign(fields.nisland > 0 ? solution.islands.size() : 1, Island{});
  SumDofs(fields, trees, solution);
  SumRows(fields);
  if (is_sparse) CountNonZeros(fields, trees, solution);
  const size_t most_islands = fields.solver_niter.size();
  const std::span<Statistics> all = {reinterpret_cast<Statistics*>(fields.solver_stat.data()),
                                     fields.solver_stat.size() / sizeof(Statistics)};
  const size_t most_iterations = all.size() / most_islands;
  for (size_t i = 0; i < std::min(islands_.size(), most_islands); ++i) {
    const Island& island = islands_[i];
    fields.solver_nnz[i] =
        static_cast<int32_t>(is_sparse ? island.non_zeros : island.dofs * island.dofs);
    const size_t stored = std::min<size_t>(fields.solver_niter[i], most_iterations);
    if (stored == 0) continue;
    const auto statistics = all.subspan(i * most_iterations, stored);
    std::ranges::fill(statistics, Statistics{});
    statistics.back().gradient = std::sqrt(island.gradient_squared) / island.inertia;
    statistics.back().nactive = island.active;
  }
}

// grad = A (a - a_smooth) - J' f.
void SolverStatistics::SumDofs(const Fields& fields, const Trees& trees,
                               const ContactSolution& solution) {
  const auto nv = static_cast<size_t>(fields.nv);
  change_.resize(nv);
  gradient_.assign(nv, 0.0);
  for (size_t i = 0; i < nv; ++i) change_[i] = fields.qacc[i] - fields.qacc_smooth[i];
  if (IsDiscrete(fields)) MultiplyMetric(fields, change_.data(), gradient_.data());
  AddProductOfM(fields, change_.data(), gradient_.data());
  for (int64_t i = 0; i < fields.nv; ++i) {
    const int32_t of_tree = IslandOf(fields, solution, trees.OfDof(i));
    if (of_tree < 0) continue;
    Island& island = islands_[of_tree];
    const double gradient = gradient_[i] - fields.qfrc_constraint[i];
    island.gradient_squared += gradient * gradient;
    island.inertia += fields.M[fields.M_rowadr[i] + fields.M_rownnz[i] - 1];
    ++island.dofs;
  }
}

void SolverStatistics::SumRows(const Fields& fields) {
  for (int64_t row = 0; row < fields.nefc; ++row) {
    const int32_t island = fields.nisland > 0 ? fields.efc_island[row] : 0;
    if (island < 0 || island >= static_cast<int32_t>(islands_.size())) continue;
    islands_[island].active += fields.efc_state[row] != mjCNSTRSTATE_SATISFIED;
  }
}

void SolverStatistics::CountNonZeros(const Fields& fields, const Trees& trees,
                                     const ContactSolution& solution) {
  const int64_t count = trees.count();
  pairs_.clear();
  for (int64_t tree = 0; tree < count; ++tree) pairs_.push_back(tree * count + tree);
  std::vector<int64_t> of_row;
  for (int64_t row = 0; row < fields.nefc; ++row) {
    of_row.clear();
    const int64_t begin = fields.efc_J_rowadr[row];
    for (int64_t k = begin; k < begin + fields.efc_J_rownnz[row]; ++k) {
      const int64_t tree = trees.OfDof(fields.efc_J_colind[k]);
      if (of_row.empty() || of_row.back() != tree) of_row.push_back(tree);
    }
    for (size_t i = 1; i < of_row.size(); ++i) {
      for (size_t j = 0; j < i; ++j) pairs_.push_back(of_row[i] * count + of_row[j]);
    }
  }
  std::ranges::sort(pairs_);
  pairs_.erase(std::unique(pairs_.begin(), pairs_.end()), pairs_.end());
  for (const int64_t pair : pairs_) {
    const int32_t of_tree = IslandOf(fields, solution, pair / count);
    if (of_tree < 0) continue;
    const int64_t rows = trees.Size(pair / count);
    const int64_t columns = trees.Size(pair % count);
    const bool is_diagonal = pair / count == pair % count;
    islands_[of_tree].non_zeros += is_diagonal ? rows * (rows + 1) / 2 : rows * columns;
  }
}

}  // namespace sap::mujoco
