#include "client/cpp/transport/replay_comparison.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <set>
#include <string_view>
#include <utility>

#include "proto/codec/problem_messages.h"
#include "solver/problem/contact_solution.h"
#include "solver/problem/solver_options.h"

namespace sap::client {
namespace {

using google::protobuf::RepeatedField;

std::string ToText(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return {text, end};
}

std::string ToText(int64_t value) { return std::to_string(value); }

uint64_t Bits(double value) { return std::bit_cast<uint64_t>(value); }
uint64_t Bits(int64_t value) { return static_cast<uint64_t>(value); }

template <typename Value>
std::string CompareValue(const std::string& name, Value now, Value recorded) {
  if (Bits(now) == Bits(recorded)) return "";
  return name + " is " + ToText(now) + ", recorded as " + ToText(recorded);
}

// The entries [begin, end) of an array.
template <typename Value>
std::string CompareRange(const char* name, const RepeatedField<Value>& now,
                         const RepeatedField<Value>& recorded, int begin, int end) {
  for (int i = begin; i < end; ++i) {
    using Wide = std::conditional_t<std::is_same_v<Value, double>, double, int64_t>;
    std::string difference =
        CompareValue<Wide>(std::string(name) + "[" + std::to_string(i) + "]", now[i], recorded[i]);
    if (!difference.empty()) return difference;
  }
  return "";
}

// The first difference that is not empty.
template <typename... Comparisons>
std::string First(const Comparisons&... comparisons) {
  std::string difference;
  static_cast<void>(((difference = comparisons(), difference.empty()) && ...));
  return difference;
}

// Whether a report has the same numbers in a replay: times differ, and a cut island may have started
// one more factorization.
bool IsCompared(std::string_view name, bool is_cut) {
  return name != "solve_time_s" && !(is_cut && name == "factorizations");
}

// What is not always sent may be missing.
bool HasEqualLengths(const v1::IslandReports& islands) {
  const auto fits = [&](Sent sent, int size) {
    return size == islands.status_size() || (size == 0 && sent != Sent::kAlways);
  };
#define SAP_REPORT(type, name, sent, none) \
  if (IsCompared(#name, false) && !fits(Sent::sent, islands.name##_size())) return false;
#include "solver/problem/solution_fields.inc"
  return true;
}

// Whether contact i has a torsional or rolling coefficient > 0, and with it an angular impulse.
template <typename Contacts>
bool HasAngularAxes(const Contacts& contacts, int i) {
  const auto positive = [](const RepeatedField<double>& values, int k) {
    return !values.empty() && values[k] > 0;
  };
  return positive(contacts.torsional_friction(), i) ||
         positive(contacts.rolling_friction(), 2 * i) ||
         positive(contacts.rolling_friction(), 2 * i + 1);
}

// First velocity of each tree, then of each body.
std::vector<uint32_t> VelocityStarts(const v1::ContactProblem& problem) {
  std::vector<uint32_t> starts;
  uint32_t start = 0;
  for (const uint32_t dofs : problem.trees().dofs()) {
    starts.push_back(start);
    start += dofs;
  }
  for (int body = 0; body < problem.bodies().mass_size(); ++body) {
    starts.push_back(start + 6 * static_cast<uint32_t>(body));
  }
  return starts;
}

// The first tree of each contact by Jacobian.
std::vector<int> FirstTrees(const v1::Contacts& contacts) {
  if (contacts.parts().empty()) return {contacts.tree_a().begin(), contacts.tree_a().end()};
  std::vector<int> trees;
  int64_t start = 0;
  for (const uint32_t parts : contacts.parts()) {
    trees.push_back(start < contacts.part_tree_size() ? contacts.part_tree(static_cast<int>(start))
                                                      : 0);
    start += parts;
  }
  return trees;
}

}  // namespace

ReplayComparison::ReplayComparison(const v1::RecordedSolve& record)
    : record_(record),
      solution_(record.outcome().solution()),
      complete_(HasEqualLengths(solution_.islands())) {
  if (!complete_) return;
  first_trees_ = FirstTrees(record.problem().contacts());
  PlanRuns(record.options().newton(), /*swept=*/false);
  first_swept_run_ = runs_.size();
  PlanRuns(v1::NEWTON_METHOD_GAUSS_SEIDEL, /*swept=*/true);
}

// Runs for the islands that were swept, or for the others; for the latter at least one.
void ReplayComparison::PlanRuns(v1::NewtonMethod method, bool swept) {
  std::set<uint32_t> limits;
  uint32_t most_needed = 0;
  bool any_uncut = !swept;
  for (int island = 0; island < solution_.islands().status_size(); ++island) {
    if (IsSwept(island) != swept) continue;
    if (IsCut(island)) {
      limits.insert(solution_.islands().iterations(island));
    } else {
      any_uncut = true;
      most_needed = std::max(most_needed, IterationsNeeded(island));
    }
  }
  if (any_uncut && (limits.empty() || most_needed > *limits.rbegin())) {
    const v1::SolveOptions& options = record_.options();
    limits.insert(options.has_max_iterations()
                      ? options.max_iterations()
                      : static_cast<uint32_t>(SolverOptions().max_iterations));
  }
  for (const uint32_t limit : limits) runs_.push_back({method, limit});
}

bool ReplayComparison::IsSwept(int island) const {
  return std::ranges::binary_search(solution_.islands().swept(), static_cast<uint32_t>(island));
}

bool ReplayComparison::IsCut(int island) const {
  const auto status = solution_.islands().status(island);
  return status == v1::ISLAND_STATUS_DEADLINE || status == v1::ISLAND_STATUS_CANCELLED;
}

// The smallest limit with which an island that was not cut ends as recorded. The iteration in which
// the Hessian cannot be factored is not counted in the record, hence one more.
uint32_t ReplayComparison::IterationsNeeded(int island) const {
  const v1::IslandReports& islands = solution_.islands();
  const bool failed = islands.status(island) == v1::ISLAND_STATUS_NUMERICAL_FAILURE;
  return islands.iterations(island) + (failed ? 1 : 0);
}

// The runs of a method have the limit of each cut island, and a last one that is sufficient for all
// other islands.
const v1::ContactSolution& ReplayComparison::RunOf(int island) const {
  if (island < 0) return solutions_[0];
  const bool swept = IsSwept(island);
  const auto begin = runs_.begin() + (swept ? first_swept_run_ : 0);
  const auto end = swept ? runs_.end() : runs_.begin() + first_swept_run_;
  const auto run =
      std::ranges::lower_bound(begin, end, IterationsNeeded(island), {}, &Run::iteration_limit);
  return solutions_[(run == end ? end - 1 : run) - runs_.begin()];
}

std::string ReplayComparison::FirstDifference() const {
  return First([&] { return CompareSizes(); },
               [&] {
                 return CompareRange("island_of_tree", solutions_[0].island_of_tree(),
                                     solution_.island_of_tree(), 0,
                                     solution_.island_of_tree_size());
               },
               [&] { return CompareIslands(); }, [&] { return CompareVelocities(); },
               [&] { return CompareContacts(); }, [&] { return CompareAngularImpulses(); },
               [&] { return CompareRows(); },
               // A sum over all islands, hence of one run.
               [&] {
                 if (solutions_.size() > 1) return std::string();
                 return CompareValue<double>("cost", solutions_[0].cost(), solution_.cost());
               });
}

// After this check, every index of a run exists in the record.
std::string ReplayComparison::CompareSizes() const {
  const v1::ContactSolution& now = solutions_[0];
  const auto size = [](const char* name, int64_t now_size, int64_t recorded_size) {
    return CompareValue<int64_t>("the length of " + std::string(name), now_size, recorded_size);
  };
  return First(
      [&] { return size("velocity", now.velocity_size(), solution_.velocity_size()); },
      [&] { return size("impulse", now.impulse_size(), solution_.impulse_size()); },
      [&] {
        return size("contact_velocity", now.contact_velocity_size(),
                    solution_.contact_velocity_size());
      },
      [&] { return size("row_impulse", now.row_impulse_size(), solution_.row_impulse_size()); },
      [&] { return size("row_velocity", now.row_velocity_size(), solution_.row_velocity_size()); },
      [&] {
        return size("angular_impulse", now.angular_impulse_size(),
                    solution_.angular_impulse_size());
      },
      [&] {
        // Records of servers without this field have none.
        if (solution_.delassus_estimate().empty()) return std::string();
        return size("delassus_estimate", now.delassus_estimate_size(),
                    solution_.delassus_estimate_size());
      },
      [&] {
        return size("island_of_tree", now.island_of_tree_size(), solution_.island_of_tree_size());
      },
      [&] {
        return size("islands.status", now.islands().status_size(),
                    solution_.islands().status_size());
      });
}

std::string ReplayComparison::CompareIslands() const {
  const v1::IslandReports& recorded = solution_.islands();
  for (int i = 0; i < recorded.status_size(); ++i) {
    const v1::IslandReports& now = RunOf(i).islands();
    const auto array = [i](const char* name, const auto& now_values, const auto& recorded_values) {
      const bool has_both = !now_values.empty() && !recorded_values.empty();
      return has_both ? CompareRange(name, now_values, recorded_values, i, i + 1) : std::string();
    };
    // A cut island is solved again with an iteration limit.
    const int64_t status = IsCut(i) ? v1::ISLAND_STATUS_ITERATION_LIMIT : recorded.status(i);
    std::string difference = CompareValue<int64_t>("islands.status[" + std::to_string(i) + "]",
                                                   now.status(i), status);
#define SAP_REPORT(type, name, ...)                                  \
  if (difference.empty() && IsCompared(#name, IsCut(i))) {           \
    difference = array("islands." #name, now.name(), recorded.name()); \
  }
#include "solver/problem/solution_fields.inc"
    if (!difference.empty()) return difference;
  }
  return "";
}

std::string ReplayComparison::CompareVelocities() const {
  const v1::ContactProblem& problem = record_.problem();
  const int num_trees = problem.trees().dofs_size();
  int begin = 0;
  for (int tree = 0; tree < solution_.island_of_tree_size(); ++tree) {
    const int dofs = tree < num_trees ? static_cast<int>(problem.trees().dofs(tree)) : 6;
    std::string difference =
        CompareRange("velocity", RunOf(solution_.island_of_tree(tree)).velocity(),
                     solution_.velocity(), begin, begin + dofs);
    if (!difference.empty()) return difference;
    begin += dofs;
  }
  return "";
}

// The run of the island of contact i, counted over contacts, then body contacts.
const v1::ContactSolution& ReplayComparison::RunOfContact(int i) const {
  const v1::ContactProblem& problem = record_.problem();
  const int num_contacts = CountContacts(problem.contacts());
  const int tree = i < num_contacts ? first_trees_[i]
                                    : problem.trees().dofs_size() +
                                          problem.body_contacts().body_a(i - num_contacts);
  return RunOf(solution_.island_of_tree(tree));
}

std::string ReplayComparison::CompareContacts() const {
  for (int i = 0; i < solution_.impulse_size() / 3; ++i) {
    const v1::ContactSolution& now = RunOfContact(i);
    std::string difference = First(
        [&] {
          return CompareRange("impulse", now.impulse(), solution_.impulse(), 3 * i, 3 * i + 3);
        },
        [&] {
          return CompareRange("contact_velocity", now.contact_velocity(),
                              solution_.contact_velocity(), 3 * i, 3 * i + 3);
        },
        [&] {
          if (solution_.delassus_estimate().empty()) return std::string();
          return CompareRange("delassus_estimate", now.delassus_estimate(),
                              solution_.delassus_estimate(), i, i + 1);
        });
    if (!difference.empty()) return difference;
  }
  return "";
}

std::string ReplayComparison::CompareAngularImpulses() const {
  const v1::ContactProblem& problem = record_.problem();
  const int num_contacts = CountContacts(problem.contacts());
  int begin = 0;
  for (int i = 0; 3 * i < solution_.impulse_size() && begin < solution_.angular_impulse_size();
       ++i) {
    const bool has_angular_axes = i < num_contacts
                                      ? HasAngularAxes(problem.contacts(), i)
                                      : HasAngularAxes(problem.body_contacts(), i - num_contacts);
    if (!has_angular_axes) continue;
    std::string difference = CompareRange("angular_impulse", RunOfContact(i).angular_impulse(),
                                          solution_.angular_impulse(), begin, begin + 3);
    if (!difference.empty()) return difference;
    begin += 3;
  }
  return "";
}

std::string ReplayComparison::CompareRows() const {
  const v1::ConstraintRows& rows = record_.problem().rows();
  const std::vector<uint32_t> starts = VelocityStarts(record_.problem());
  int entry = 0;
  for (int row = 0; row < solution_.row_impulse_size(); ++row) {
    // All trees of a row are in one island.
    const auto next_tree = std::ranges::upper_bound(starts, rows.velocity_index(entry));
    const auto tree = static_cast<int>(next_tree - starts.begin()) - 1;
    const v1::ContactSolution& now = RunOf(solution_.island_of_tree(tree));
    std::string difference = First(
        [&] {
          return CompareRange("row_impulse", now.row_impulse(), solution_.row_impulse(), row,
                              row + 1);
        },
        [&] {
          return CompareRange("row_velocity", now.row_velocity(), solution_.row_velocity(), row,
                              row + 1);
        });
    if (!difference.empty()) return difference;
    entry += static_cast<int>(rows.entries(row));
  }
  return "";
}

}  // namespace sap::client
