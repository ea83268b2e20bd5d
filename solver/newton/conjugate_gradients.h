// H x = b of one island by conjugate gradients, preconditioned by a factor M of H: in single
// precision, or of the H of a velocity nearby.
//
//   z = M^-1 r,   r = b - H x
//
// Products with H and all sums are in double precision. Where M is H except for rounding errors one
// to three iterations suffice; each constraint that has changed its region since M was factored
// takes another one.
#pragma once

#include <cmath>
#include <vector>

#include "solver/newton/hessian.h"
#include "solver/parallel/storage_bytes.h"

namespace sap {

// Vectors of the iteration, over all islands. Storage only grows.
struct ConjugateVectors {
  std::vector<double> residual, preconditioned, direction, product;
  std::vector<double> slot_sums;  // partial sums by chunks of slots

  void Resize(const ConstraintGraph& graph);
  size_t storage_bytes() const {
    return StorageBytes(residual, preconditioned, direction, product, slot_sums);
  }
};

// When the iteration ends. A share of 0 is not tested.
struct ConjugateGoal {
  int max_products;    // with H
  double residual{0};  // |D r| over |D b|
  double error2{0};    // z'r, the squared error of x in the norm of M, over that of the first z
  // M is H except for rounding errors: the last z still corrects x, and z'r is compared as it will
  // be after that.
  bool corrects{false};
};

// Calls body(i) for the velocities of the island, by chunks of slots.
template <typename View, typename Body>
void ForVelocities(const View& view, Body&& body) {
  const std::span<const int> start = view.graph.velocity_start();
  ForChunks(view.arena, view.range().slot_begin, view.range().slot_end, kDotSlots,
            [&](int begin, int end, int) {
              for (int i = start[begin]; i < start[end]; ++i) body(i);
            });
}

// sum_i a_i b_i over the island, by chunks of slots.
double Dot(const IslandView& view, const std::vector<double>& a, const std::vector<double>& b,
           std::vector<double>* slot_sums);

// |D r|^2, summed likewise.
double ScaledNorm2(const IslandView& view, const std::vector<double>& r,
                   std::vector<double>* slot_sums);

// Solves H x = b for the b that vectors->residual holds. precondition(r, &z) and multiply(p, &Hp)
// return false if they were stopped. kNotPositiveDefinite where the goal is out of reach: x is then
// the last iterate.
template <typename Precondition, typename Multiply>
StepStatus SolveByConjugateGradients(const IslandView& view, const ConjugateGoal& goal,
                                     Precondition&& precondition, Multiply&& multiply,
                                     ConjugateVectors* vectors, std::vector<double>* x) {
  auto& [r, z, p, Hp, sums] = *vectors;
  ForVelocities(view, [&, &p = p](int i) { (*x)[i] = p[i] = 0; });
  const bool tests_residual = goal.residual > 0;
  const double least2 =
      tests_residual ? goal.residual * goal.residual * ScaledNorm2(view, r, &sums) : 0;
  double first_rz = 0, last_rz = 0;
  for (int products = 0;; ++products) {
    if (tests_residual && products > 0 && ScaledNorm2(view, r, &sums) <= least2) {
      return StepStatus::kOk;
    }
    if (products == goal.max_products) return StepStatus::kNotPositiveDefinite;
    if (!precondition(r, &z)) return StepStatus::kStopped;
    const double rz = Dot(view, r, z, &sums);
    if (!(rz >= 0) || !std::isfinite(rz)) return StepStatus::kNotPositiveDefinite;
    if (products == 0) {
      first_rz = last_rz = rz;
    } else if (goal.error2 > 0) {
      const double least = goal.error2 * first_rz;
      const bool corrects = goal.corrects && rz * (rz / last_rz) <= least;
      if (corrects) ForVelocities(view, [&, &z = z](int i) { (*x)[i] += z[i]; });
      if (corrects || rz <= least) return StepStatus::kOk;
    }
    if (rz == 0) return StepStatus::kNotPositiveDefinite;
    const double beta = products == 0 ? 0.0 : rz / last_rz;
    last_rz = rz;
    ForVelocities(view, [&, &z = z, &p = p](int i) { p[i] = z[i] + beta * p[i]; });
    if (!multiply(p, &Hp)) return StepStatus::kStopped;
    const double curvature = Dot(view, p, Hp, &sums);
    if (!(curvature > 0)) return StepStatus::kNotPositiveDefinite;
    const double alpha = rz / curvature;
    ForVelocities(view, [&, &r = r, &p = p, &Hp = Hp](int i) {
      (*x)[i] += alpha * p[i];
      r[i] -= alpha * Hp[i];
    });
  }
}

}  // namespace sap
