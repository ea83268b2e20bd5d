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
// momentum_error,penetration,kinetic_energy,bodies,long_step_bodies,woken_by_pair,woken_by_input,
// long_steps,long_steps_refused: the last six of bodies that are left out at rest, `bodies` those
// that took a step, wakes and long steps counted in islands.
std::string StepsAsCsv(std::span<const StepStatistics> steps);

// One line per quantity, with the columns mean, p50, p99 and largest.
std::string SummaryTable(std::span<const StepStatistics> steps);

// Result of leaving out bodies at rest: the share of body steps that were solved, wakes by reason,
// refused long steps.
std::string RestSummary(std::span<const StepStatistics> steps, size_t bodies);

}  // namespace sap::simulation
