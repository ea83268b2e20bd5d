// Report of a simulation: its steps as CSV, and a table of means, percentiles and maxima.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "client/cpp/simulation/simulation.h"

namespace sap::simulation {

// Nearest rank: the smallest value that at least `percent` of all values do not exceed. 0 without
// values.
double Percentile(std::vector<double> values, double percent);

// One row per step, with the columns
// step,contacts,islands,largest_island_dofs,iterations,iterations_weighted,solve_s,round_trip_s,
// momentum_error,penetration,kinetic_energy
std::string StepsAsCsv(std::span<const StepStatistics> steps);

// One line per quantity, with the columns mean, p50, p99 and largest.
std::string SummaryTable(std::span<const StepStatistics> steps);

}  // namespace sap::simulation
