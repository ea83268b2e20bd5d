// Exact Coulomb friction (laws/coulomb_cone.h) in one island, by rounds of convex solves.
//
//   F(v) = A (v - v*) - J' gamma(v),   gamma by the exact law
//   until |D F| <= eps_a + eps_r max(|D A v|, |D J' gamma|)
//
// The answer of the convex model is where they start. An island in which it is exact already, all
// of its contacts stick or are out of reach, needs no round. Else every round solves a convex
// problem in which one number per contact is held, so that the answer is its fixed point:
//
//   lagged    the bound n_0 of friction;   n_0 := p_n(v)
//   shifted   the drift s of v_hat_n;      s := E - rho q at v
//
// Taken at the v of the round before these iterations converge slowly, by a factor of
// 1 - a / W_nn and 1 - a / (W_nn - 2 mu W_nt + mu^2 W_tt) per round for one contact that slides,
// with W = J A^-1 J' + R along the slip and the normal, a = W_nn - mu W_nt. So they are taken at
// v + dv after a Newton step on the exact law,
//
//   H_x dv = -F,   H_x = A + J' G J with the G of the exact law, not symmetric
//
// by GMRES with a factor of the symmetric lagged Hessian (G_tn = 0). The convex round starts there,
// and checks and repairs what the step predicts. A step after which |F|_{A^-1} is not less is taken
// back, and 1, 2, 4, 8, 16, 16, ... rounds without a step follow, which are slow and almost never
// stuck. The first round has n_0 of the convex answer.
//
// Lagged rounds come first: they need fewer. Where they have not ended shifted ones go on, which
// cannot cycle unless 9 W_nt^2 > 8 W_nn W_tt. The answer need not be unique: it is the one that
// these rounds reach, a function of problem, guess and options.
//
// Where the island is handed over to the interior-point method (interior_point.h), that has the
// exact law by De Saxce's shift (laws/de_saxce.h). Rounds come first while the convex solve and
// they have taken few iterations, and go on from the better point where the method does not end.
#pragma once

#include "solver/newton/sap_solver.h"

namespace sap {

// Whether the exact law is another one than the convex law in this island.
bool HasCoulombFriction(const IslandRange& range);

// |F|_{A^-1} at the v at which `data` was evaluated last, with an allowance for rounding errors
// [kg^1/2 m/s, in the unit of the problem].
double CoulombDefect(const IslandView& view, const StopToken& stop, SapData* data,
                     SapScratch* scratch);

// Goes on from workspace->data, where SolveIsland has left the answer of the convex model, and
// leaves the iterate of least |F|_{A^-1} there, with the impulses of the exact law. `model` is that
// of the view: its cones keep the exact law. The report is that of the convex solve at first; its
// iterations go on. Needs options.coulomb.
void SolveCoulombRounds(const IslandView& view, const SolverOptions& options, const StopToken& stop,
                        const SweepOrder& sweep_order, const PlannedFactors& factorization,
                        SapModel* model, SapWorkspace* workspace, IslandReport* report);

}  // namespace sap
