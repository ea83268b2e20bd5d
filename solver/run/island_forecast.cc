#include "solver/run/island_forecast.h"

#include <algorithm>
#include <cmath>

#include "solver/problem/islands.h"

namespace sap {

namespace {

// Fitted to warm sequences of piles of 40 to 2000 bodies and of hundreds of heaps of three.
constexpr double kPerContact = 0.8e-6;
constexpr double kPerRow = 0.3e-6;

// Time of the trees of an island, without constraints.
double TimeOfTrees(std::span<const int> dofs_of_tree, const Islands& islands, int island) {
  constexpr double kPerFill = 1e-7;
  constexpr double kFreeOfFill = 4;  // sqrt of the dofs of an island that is solved as one block
  // By the cube of a tree's dofs; large trees are factored by the kernel of the fronts.
  constexpr int kLargeTree = 64;
  constexpr double kPerScalarFlop = 1e-9;
  constexpr double kPerBlockedFlop = 7e-11;
  double time = 0;
  double n = 0;
  for (int slot = islands.first_slot()[island]; slot < islands.first_slot()[island + 1]; ++slot) {
    const double dofs = dofs_of_tree[islands.tree_of_slot()[slot]];
    n += dofs;
    time += (dofs > kLargeTree ? kPerBlockedFlop : kPerScalarFlop) * dofs * dofs * dofs;
  }
  return time + kPerFill * n * std::max(0.0, std::sqrt(n) - kFreeOfFill);
}

double TimeOfAll(std::span<const int> dofs_of_tree, const Islands& islands, int contacts,
                 int rows) {
  double time = kPerContact * contacts + kPerRow * rows;
  for (int island = 0; island < islands.count(); ++island) {
    time += TimeOfTrees(dofs_of_tree, islands, island);
  }
  return time;
}

}  // namespace

void ForecastIslands(const ProblemLayout& layout, IslandForecast* forecast) {
  thread_local Islands islands;
  islands.Find(layout.joined(), /*split=*/true);
  const std::span<const int> island_of_tree = islands.island_of_tree();
  forecast->island_of_tree.assign(island_of_tree.begin(), island_of_tree.end());
  std::vector<double>& time = forecast->solve_time_s;
  time.resize(islands.count());
  for (int island = 0; island < islands.count(); ++island) {
    time[island] = TimeOfTrees(layout.dofs, islands, island);
  }
  for (int contact = 0; contact < layout.num_contacts(); ++contact) {
    time[island_of_tree[layout.contact_trees[layout.contact_start[contact]]]] += kPerContact;
  }
  for (int row = 0; row < layout.num_rows(); ++row) {
    time[island_of_tree[layout.row_entries[layout.row_start[row]].tree]] += kPerRow;
  }
}

double PredictedSolveTime(const ContactProblem& problem) {
  return TimeOfAll(problem.dofs(), problem.islands(), problem.num_contacts(), problem.num_rows());
}

double PredictedSolveTime(const ProblemLayout& layout, const Islands& islands) {
  return TimeOfAll(layout.dofs, islands, layout.num_contacts(), layout.num_rows());
}

}  // namespace sap
