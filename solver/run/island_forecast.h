// Predicted times of a warm solve on one core [s], from the sizes of the islands: for scheduling,
// admission, and dealing islands to servers.
#pragma once

#include <vector>

#include "solver/problem/contact_problem.h"
#include "solver/problem/problem_layout.h"

namespace sap {

struct IslandForecast {
  std::vector<int> island_of_tree;   // [T], -1: no constraint; numbered as in a solution
  std::vector<double> solve_time_s;  // per island
};

// Costs little more than a search for the islands. The storage of *forecast is reused.
void ForecastIslands(const ProblemLayout& layout, IslandForecast* forecast);

// The sum over all islands.
double PredictedSolveTime(const ContactProblem& problem);
// As above, where the islands are known.
double PredictedSolveTime(const ProblemLayout& layout, const Islands& islands);

}  // namespace sap
