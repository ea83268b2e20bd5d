#include "client/cpp/simulation/run_report.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>

#include "client/cpp/simulation/text_format.h"

namespace sap::simulation {
namespace {

struct Line {
  const char* name;
  const char* format;  // of one number
  std::function<double(const StepStatistics&)> value;
};

const std::vector<Line>& Lines() {
  using Step = StepStatistics;
  static const std::vector<Line> lines = {
      {"contacts", "%.0f", [](const Step& step) { return step.contacts; }},
      {"islands", "%.0f", [](const Step& step) { return step.islands; }},
      {"largest island, dofs", "%.0f", [](const Step& step) { return step.largest_island_dofs; }},
      {"iterations (largest of islands)", "%.2f", [](const Step& step) { return step.iterations; }},
      {"iterations (mean by dofs)", "%.2f",
       [](const Step& step) { return step.iterations_weighted; }},
      {"solve, ms", "%.3f", [](const Step& step) { return 1e3 * step.solve_s; }},
      {"round trip, ms", "%.3f", [](const Step& step) { return 1e3 * step.round_trip_s; }},
      {"collision, ms", "%.3f", [](const Step& step) { return 1e3 * step.collision_s; }},
      {"momentum error", "%.1e", [](const Step& step) { return step.momentum_error; }},
      {"largest penetration, mm", "%.3f", [](const Step& step) { return 1e3 * step.penetration; }},
  };
  return lines;
}

}  // namespace

double Percentile(std::vector<double> values, double percent) {
  if (values.empty()) return 0;
  const double rank = std::ceil(percent / 100 * static_cast<double>(values.size()));
  const auto place = values.begin() + std::max(0, static_cast<int>(rank) - 1);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

std::string StepsAsCsv(std::span<const StepStatistics> steps) {
  std::string text =
      "step,contacts,islands,largest_island_dofs,iterations,iterations_weighted,solve_s,"
      "round_trip_s,momentum_error,penetration,kinetic_energy,bodies,long_step_bodies,"
      "woken_by_pair,woken_by_input,long_steps,long_steps_refused\n";
  for (const StepStatistics& step : steps) {
    const client::RestCounts& rest = step.rest;
    text +=
        Format("%d,%d,%d,%d,%d,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%d,%d,%" PRId64 ",%" PRId64 ",%" PRId64
               ",%" PRId64 "\n",
               step.step, step.contacts, step.islands, step.largest_island_dofs, step.iterations,
               step.iterations_weighted, step.solve_s, step.round_trip_s, step.momentum_error,
               step.penetration, step.kinetic_energy, step.bodies, step.long_step_bodies,
               rest.woken_by_pair, rest.woken_by_input, rest.long_steps, rest.long_steps_refused);
  }
  return text;
}

std::string SummaryTable(std::span<const StepStatistics> steps) {
  std::string text =
      Format("%-32s %10s %10s %10s %10s\n", "per step", "mean", "p50", "p99", "largest");
  for (const Line& line : Lines()) {
    std::vector<double> values;
    for (const StepStatistics& step : steps) values.push_back(line.value(step));
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    const double mean = values.empty() ? 0 : sum / static_cast<double>(values.size());
    text += Format("%-32s", line.name);
    for (const double number :
         {mean, Percentile(values, 50), Percentile(values, 99), Percentile(values, 100)}) {
      text += Format(" %10s", Format(line.format, number).c_str());
    }
    text += "\n";
  }
  return text;
}

std::string RestSummary(std::span<const StepStatistics> steps, size_t bodies) {
  double steps_taken = 0, long_steps_taken = 0;  // of bodies
  client::RestCounts sum;
  for (const StepStatistics& step : steps) {
    steps_taken += step.bodies;
    long_steps_taken += step.long_step_bodies;
    sum.woken_by_pair += step.rest.woken_by_pair;
    sum.woken_by_input += step.rest.woken_by_input;
    sum.long_steps += step.rest.long_steps;
    sum.long_steps_refused += step.rest.long_steps_refused;
  }
  const double all = std::max(1.0, static_cast<double>(steps.size() * bodies));
  return Format(
      "body steps solved: %.2f %%, and long steps %.2f %%\n"
      "islands woken by a pair: %" PRId64 ", by an input: %" PRId64 ", by the horizon: %" PRId64
      " (long steps refused, of %" PRId64 ")\n",
      100 * steps_taken / all, 100 * long_steps_taken / all, sum.woken_by_pair, sum.woken_by_input,
      sum.long_steps_refused, sum.long_steps);
}

}  // namespace sap::simulation
