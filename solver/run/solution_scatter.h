// Between the order of the problem and that of the constraint graph: the guess in, the answer out,
// one island at a time.
#pragma once

#include <vector>

#include "solver/newton/sap_data.h"
#include "solver/problem/constraint_graph.h"
#include "solver/problem/contact_problem.h"
#include "solver/problem/contact_solution.h"

namespace sap {

// Sizes the arrays of the answer. Trees without an island have their answer, v*.
void PrepareSolution(const ContactProblem& problem, const ConstraintGraph& graph,
                     ContactSolution* solution);

// The guess of an island, into velocities in the order of the graph: v* where nothing but couplings
// touches its trees, as that is the answer.
void GatherGuess(const ContactProblem& problem, const ConstraintGraph& graph, int island,
                 std::vector<double>* v);

// The guess of an island as its answer, without impulses.
void ScatterGuess(const ContactProblem& problem, const ConstraintGraph& graph, int island,
                  ContactSolution* solution);

// The last iterate of an island as its answer, masses in the unit of the problem again. Numbers of
// a failed island that are not finite are written as 0.
void ScatterIterate(const ContactProblem& problem, const IslandView& view, const SapData& data,
                    ContactSolution* solution);

}  // namespace sap
