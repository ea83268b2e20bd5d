// H x = b of one island, H not symmetric, by GMRES [Saad, Schultz 1986], preconditioned by a factor
// M of a symmetric matrix nearby.
//
//   x = M^-1 D^-1 Q y,   |D (b - H x)| = min over y,   Q' Q = 1,   D = diag(A)^-1/2
//
// Q spans the Krylov space of D H M^-1 D^-1, orthogonalized by modified Gram-Schmidt. Products with
// H and all sums are in double precision, whatever the precision of M.
#pragma once

#include <array>
#include <cmath>
#include <vector>

#include "solver/newton/conjugate_gradients.h"
#include "solver/parallel/storage_bytes.h"

namespace sap {

inline constexpr int kMaxGmresProducts = 20;

// Vectors of the iteration, over all islands. Storage only grows.
struct KrylovVectors {
  std::array<std::vector<double>, kMaxGmresProducts + 1> basis;  // q
  std::vector<double> scaled, preconditioned;
  std::vector<double> slot_sums;  // partial sums by chunks of slots

  void Resize(const ConstraintGraph& graph);
  size_t storage_bytes() const { return StorageBytes(basis, scaled, preconditioned, slot_sums); }
};

// The least-squares problem min |beta e_1 - h y| of the Hessenberg matrix h, by Givens rotations,
// one column at a time.
class HessenbergLeastSquares {
 public:
  explicit HessenbergLeastSquares(double beta) { right_side_[0] = beta; }

  // Entry (i, k) of the column that comes next, i <= k + 1.
  double& at(int i) { return columns_[size_][i]; }
  void AddColumn();
  int size() const { return size_; }
  double residual() const { return std::abs(right_side_[size_]); }
  // y; not finite where the matrix is singular.
  std::array<double, kMaxGmresProducts> Solution() const;

 private:
  int size_{0};
  std::array<std::array<double, kMaxGmresProducts + 1>, kMaxGmresProducts> columns_;
  std::array<double, kMaxGmresProducts> cosines_, sines_;
  std::array<double, kMaxGmresProducts + 1> right_side_{};
};

// Solves for b until |D (b - H x)| <= residual |D b|, by at most kMaxGmresProducts products with H;
// x is the best iterate of their space in any case. precondition(r, &z) and multiply(z, &Hz) return
// false if they were stopped. kNotPositiveDefinite where x is not finite.
template <typename Precondition, typename Multiply>
StepStatus SolveByGmres(const IslandView& view, double residual, const std::vector<double>& b,
                        Precondition&& precondition, Multiply&& multiply, KrylovVectors* vectors,
                        std::vector<double>* x) {
  auto& [Q, scaled, z, sums] = *vectors;
  const std::span<const double> D = view.model.D();
  const int begin = view.range().velocity_begin;
  const int end = view.range().velocity_end;
  const auto dot = [&view, &sums = sums](const std::vector<double>& u,
                                         const std::vector<double>& w) {
    return Dot(view, u, w, &sums);
  };
  for (int i = begin; i < end; ++i) Q[0][i] = D[i] * b[i];
  const double beta = std::sqrt(dot(Q[0], Q[0]));
  for (int i = begin; i < end; ++i) (*x)[i] = 0;
  if (beta == 0) return StepStatus::kOk;
  if (!std::isfinite(beta)) return StepStatus::kNotPositiveDefinite;
  for (int i = begin; i < end; ++i) Q[0][i] /= beta;
  HessenbergLeastSquares h(beta);
  while (h.size() < kMaxGmresProducts) {
    const int k = h.size();
    std::vector<double>& next = Q[k + 1];
    for (int i = begin; i < end; ++i) scaled[i] = Q[k][i] / D[i];
    if (!precondition(scaled, &z) || !multiply(z, &next)) return StepStatus::kStopped;
    for (int i = begin; i < end; ++i) next[i] *= D[i];
    for (int j = 0; j <= k; ++j) {
      const double along = h.at(j) = dot(next, Q[j]);
      for (int i = begin; i < end; ++i) next[i] -= along * Q[j][i];
    }
    const double norm = h.at(k + 1) = std::sqrt(dot(next, next));
    h.AddColumn();
    if (!std::isfinite(norm)) return StepStatus::kNotPositiveDefinite;
    if (h.residual() <= residual * beta || norm == 0) break;
    for (int i = begin; i < end; ++i) next[i] /= norm;
  }
  const auto y = h.Solution();
  for (int i = begin; i < end; ++i) {
    double sum = 0;
    for (int k = 0; k < h.size(); ++k) sum += y[k] * Q[k][i];
    scaled[i] = sum / D[i];
  }
  if (!precondition(scaled, x)) return StepStatus::kStopped;
  return std::isfinite(dot(*x, *x)) ? StepStatus::kOk : StepStatus::kNotPositiveDefinite;
}

}  // namespace sap
