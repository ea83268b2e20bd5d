// A primal-dual interior-point method for one island, for small R, where Newton's method on the
// primal cost meets a kink at nearly every step. In scaled axes (laws/scaled_cone.h):
//
//   A (v - v*) - B' z + J_n' c - J_r' g = 0,   u = Rb z + B v - e_0,
//   z, u in K,   z o u = m (1, 0)
//
// and rows likewise (laws/box_barrier.h), solved for m -> 0 by a predictor and a corrector
// [Mehrotra 1992] with the scaling W of Nesterov and Todd (laws/cone_scaling.h). Eliminating z and
// u leaves the matrix of Newton's method with other blocks, on the same plan:
//
//   H = A + B' (Rb + W^2)^-1 B + rows,   H dv = -r_d + B' M (W (l \ d) - r_p),   l \ (l o x) = x
//
// The distance to the optimum is certified by v and z together (pair_certificate.h). Near it a
// Newton step through y of the pair and a few of the primal cost give v with its exact active set.
#pragma once

#include <memory>

#include "solver/newton/newton_control.h"
#include "solver/newton/newton_step.h"
#include "solver/newton/pair_certificate.h"
#include "solver/newton/sap_solver.h"

namespace sap {

enum class InteriorPointEnd : uint8_t {
  kConverged,  // by the test of Newton's method, or by the certificate of the pair
  kNoProgress,
  kIterationLimit,
  kStopped,
};

// After how many iterations of the accelerated method an island is handed over. It goes first: at
// rest, started from the last velocity, it needs one at any R. With a guess of impulses, from which
// the interior-point method needs fewer iterations, it has fewer to do so.
inline constexpr int kHandOverGuess = 2, kHandOverSmallR = 4, kHandOverLargeR = 12;
inline constexpr double kLeastOfLargeR = 5e-4;
int IterationsBeforeHandOver(double least_R_over_w, const IslandView& view);

// Whether an island may be handed over after exactly so many iterations. least_R_over_w() is the
// least R / w of its contacts.
template <typename Least>
bool MayHandOverAfter(int iterations, const SolverOptions& options, const IslandView& view,
                      Least&& least_R_over_w) {
  if (!MayHandOver(options)) return false;
  if (options.interior_point == InteriorPoint::kAlways) return iterations == 0;
  if (iterations != kHandOverGuess && iterations != kHandOverSmallR &&
      iterations != kHandOverLargeR) {
    return false;
  }
  return iterations == IterationsBeforeHandOver(least_R_over_w(), view);
}
// Whether it is. Never one with laws without a cone, nor one without inequalities, nor in rounds of
// exact friction.
bool HandsOverAfter(int iterations, const SolverOptions& options, const IslandView& view);
// After how many iterations exact friction is: the largest int where it never is. At large R rounds
// (coulomb_rounds.h) take more iterations and less time, since its solves are by GMRES.
int IterationsBeforeExactHandOver(const SolverOptions& options, const IslandView& view);

class InteriorPointSolve {
 public:
  // `factor` is that of the Newton steps, which counts factorizations. Of the workspace, whatever
  // is not in use between two steps is overwritten: everything but v_before and v_before_sweep.
  InteriorPointSolve(const IslandView& view, const SolverOptions& options, const StopToken& stop,
                     HessianFactor* factor, SapWorkspace* workspace);
  ~InteriorPointSolve();

  // Iterates from the guess of impulses that the problem has, and where there is none, or that does
  // not end, from a start of its own, until *iterations, to which it adds one per factorization,
  // reaches the limit. Leaves the iterate of least bound in the workspace's v, evaluated, with its
  // norms; where it ends without one, v is not changed.
  InteriorPointEnd Run(int* iterations, IslandNorms* norms);

  // Bound on l(v) - min l at the v of the workspace by the impulses of the best iterate, with
  // allowances for rounding; infinite where there is none. Needs data evaluated at v; overwrites
  // gamma and the gradient.
  double GapBound();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sap
