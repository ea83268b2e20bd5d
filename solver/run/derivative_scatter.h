// The parts of derivatives outside islands: their shape, trees that no constraint touches,
// and sums over islands.
#pragma once

#include <span>

#include "solver/derivatives/island_derivatives.h"
#include "solver/problem/constraint_graph.h"

namespace sap {

// Sizes the arrays and fills them with zeros, except for trees without constraints, where v = v*:
// dv = dv*, v*_bar = v_bar, and A^-1 v_bar for the gradient with respect to an impulse.
void PrepareDerivatives(const ContactProblem& problem, const ConstraintGraph& graph,
                        const DerivativeRequest& request, Derivatives* derivatives);

// Inputs that islands share, and costs: by island, then by cotangent or direction. Summed in the
// order of islands.
void SumOverIslands(int islands, std::span<const SharedInputs> shared,
                    std::span<const double> tangent_costs, Derivatives* derivatives);

}  // namespace sap
