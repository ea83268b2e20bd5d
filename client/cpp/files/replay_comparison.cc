#include "client/cpp/files/replay_comparison.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <set>
#include <string_view>
#include <type_traits>

#include "client/cpp/transport/message_conversion.h"
#include "proto/codec/problem_decoder.h"
#include "solver/problem/derivatives.h"
#include "solver/problem/solver_options.h"

namespace sap::client {
namespace {

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

template <typename Value>
std::string CompareEntry(const char* name, size_t i, Value now, Value recorded) {
  using Wide = std::conditional_t<std::is_same_v<Value, double>, double, int64_t>;
  return CompareValue<Wide>(std::string(name) + "[" + std::to_string(i) + "]", now, recorded);
}

// The entries [begin, end) of an array.
template <typename Value>
std::string CompareRange(const char* name, const std::vector<Value>& now,
                         const std::vector<Value>& recorded, size_t begin, size_t end) {
  std::string difference;
  for (size_t i = begin; difference.empty() && i < end; ++i) {
    difference = CompareEntry(name, i, now[i], recorded[i]);
  }
  return difference;
}

// Whether a replay has the same number: times differ, and a cut island may have started one more
// factorization.
bool IsCompared(std::string_view name, bool is_cut) {
  return name != "solve_time_s" && !(is_cut && name == "factorizations");
}

// For each OutputPer the islands of its entities, in the order of the problem; -1: none.
using IslandsOfOutputs = std::array<std::vector<int>, 4>;

// Adds contact i, which is in this island.
void AddContact(const ContactProblemView::Law& law, size_t i, int island,
                IslandsOfOutputs* islands) {
  const auto positive = [](std::span<const double> values, size_t k) {
    return !values.empty() && values[k] > 0;
  };
  (*islands)[static_cast<size_t>(OutputPer::kContact)].push_back(island);
  if (positive(law.torsional_friction, i) || positive(law.rolling_friction, 2 * i) ||
      positive(law.rolling_friction, 2 * i + 1)) {
    (*islands)[static_cast<size_t>(OutputPer::kAngularContact)].push_back(island);
  }
}

// All trees of a contact or row are in one island.
IslandsOfOutputs FindIslands(const ContactProblemView& problem,
                             const std::vector<int32_t>& island_of_tree) {
  constexpr int kBodyDofs = 6;
  const size_t trees = problem.trees.dofs.size();
  IslandsOfOutputs islands;
  std::vector<int>& of_velocity = islands[static_cast<size_t>(OutputPer::kVelocity)];
  for (size_t tree = 0; tree < island_of_tree.size(); ++tree) {
    const size_t dofs = tree < trees ? problem.trees.dofs[tree] : kBodyDofs;
    of_velocity.insert(of_velocity.end(), dofs, island_of_tree[tree]);
  }
  const ContactProblemView::Contacts& contacts = problem.contacts;
  size_t part = 0;
  for (size_t i = 0; i < static_cast<size_t>(CountContacts(contacts)); ++i) {
    const bool by_parts = !contacts.parts.empty();
    const int tree = by_parts ? contacts.part_tree[part] : contacts.tree_a[i];
    AddContact(contacts.law, i, island_of_tree[tree], &islands);
    if (by_parts) part += contacts.parts[i];
  }
  const ContactProblemView::BodyContacts& body_contacts = problem.body_contacts;
  for (size_t i = 0; i < body_contacts.body_a.size(); ++i) {
    AddContact(body_contacts.law, i, island_of_tree[trees + body_contacts.body_a[i]], &islands);
  }
  size_t entry = 0;
  for (const uint32_t entries : problem.rows.entries) {
    const int island = of_velocity[problem.rows.velocity_index[entry]];
    islands[static_cast<size_t>(OutputPer::kRow)].push_back(island);
    entry += entries;
  }
  return islands;
}

}  // namespace

ReplayComparison::ReplayComparison(const v1::RecordedSolve& record) : record_(record) {
  auto recorded = FromMessage(record.outcome().solution());
  if (!recorded) return;
  recorded_ = *std::move(recorded);
  complete_ = true;
  PlanRuns(record.options().newton(), /*swept=*/false);
  first_swept_run_ = runs_.size();
  PlanRuns(v1::NEWTON_METHOD_GAUSS_SEIDEL, /*swept=*/true);
}

// Runs for the islands that were swept, or for the others; for the latter at least one.
void ReplayComparison::PlanRuns(v1::NewtonMethod method, bool swept) {
  std::set<uint32_t> limits;
  uint32_t most_needed = 0;
  bool any_uncut = !swept;
  for (int island = 0; island < std::ssize(recorded_.islands); ++island) {
    if (recorded_.islands[island].swept != swept) continue;
    if (IsCut(island)) {
      limits.insert(recorded_.islands[island].iterations);
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

bool ReplayComparison::IsCut(int island) const {
  const SolveStatus status = recorded_.islands[island].status;
  return status == SolveStatus::kDeadline || status == SolveStatus::kCancelled;
}

// The smallest limit with which an island that was not cut ends as recorded. The iteration in which
// the Hessian cannot be factored is not counted in the record, hence one more.
uint32_t ReplayComparison::IterationsNeeded(int island) const {
  const Island& report = recorded_.islands[island];
  const bool failed = report.status == SolveStatus::kNumericalFailure;
  return static_cast<uint32_t>(report.iterations) + (failed ? 1 : 0);
}

// The runs of a method have the limit of each cut island, and a last one that is sufficient for all
// other islands.
const Solution& ReplayComparison::RunOf(int island) const {
  if (island < 0) return solutions_[0];
  const bool swept = recorded_.islands[island].swept;
  const auto begin = runs_.begin() + (swept ? first_swept_run_ : 0);
  const auto end = swept ? runs_.end() : runs_.begin() + first_swept_run_;
  const auto run =
      std::ranges::lower_bound(begin, end, IterationsNeeded(island), {}, &Run::iteration_limit);
  return solutions_[(run == end ? end - 1 : run) - runs_.begin()];
}

std::string ReplayComparison::FirstDifference() const {
  const std::vector<int32_t>& islands = recorded_.island_of_tree;
  std::string difference = CompareSizes();
  if (difference.empty()) {
    difference =
        CompareRange("island_of_tree", solutions_[0].island_of_tree, islands, 0, islands.size());
  }
  if (difference.empty()) difference = CompareIslands();
  if (difference.empty()) difference = CompareOutputs();
  // A sum over all islands, hence of one run.
  if (difference.empty() && solutions_.size() == 1) {
    difference = CompareValue<double>("cost", solutions_[0].cost, recorded_.cost);
  }
  return difference;
}

// After this check, every index of a run exists in the record.
std::string ReplayComparison::CompareSizes() const {
  const Solution& now = solutions_[0];
  std::string difference;
  const auto compare = [&](const std::string& name, const auto& array, const auto& recorded) {
    if (!difference.empty()) return;
    difference =
        CompareValue<int64_t>("the length of " + name, std::ssize(array), std::ssize(recorded));
  };
#define SAP_OUTPUT(name, ...) compare(#name, now.name, recorded_.name);
#include "solver/problem/solution_fields.inc"
  // Records of servers without this field have none.
  if (!recorded_.delassus_estimate.empty()) {
    compare("delassus_estimate", now.delassus_estimate, recorded_.delassus_estimate);
  }
  compare("island_of_tree", now.island_of_tree, recorded_.island_of_tree);
  compare("islands.status", now.islands, recorded_.islands);
  return difference;
}

std::string ReplayComparison::CompareIslands() const {
  const v1::IslandReports& sent = record_.outcome().solution().islands();
  std::string difference;
  for (int i = 0; i < std::ssize(recorded_.islands) && difference.empty(); ++i) {
    const Island& recorded = recorded_.islands[i];
    const Island& now = RunOf(i).islands[i];
    // A cut island is solved again with an iteration limit.
    const SolveStatus status = IsCut(i) ? SolveStatus::kIterationLimit : recorded.status;
    if (now.status != status) {
      return "islands.status[" + std::to_string(i) + "] is " + Name(now.status) + ", recorded as " +
             Name(status);
    }
#define SAP_REPORT(type, name, ...)                                                \
  if (difference.empty() && IsCompared(#name, IsCut(i)) && !sent.name().empty()) { \
    difference = CompareEntry<type>("islands." #name, i, now.name, recorded.name); \
  }
#include "solver/problem/solution_fields.inc"
  }
  return difference;
}

std::string ReplayComparison::CompareOutputs() const {
  const auto problem = DecodeProblem(record_.problem());
  if (!problem) return problem.error().message;
  const IslandsOfOutputs islands = FindIslands(*problem, recorded_.island_of_tree);
  std::string difference;
  const auto compare = [&](const char* name, size_t columns, OutputPer per,
                           std::vector<double> ContactSolution::*array) {
    const std::vector<int>& of_entities = islands[static_cast<size_t>(per)];
    for (size_t i = 0; difference.empty() && i < of_entities.size(); ++i) {
      difference = CompareRange(name, RunOf(of_entities[i]).*array, recorded_.*array, i * columns,
                                (i + 1) * columns);
    }
  };
#define SAP_OUTPUT(name, columns, per) \
  compare(#name, columns, OutputPer::per, &ContactSolution::name);
#include "solver/problem/solution_fields.inc"
  if (!recorded_.delassus_estimate.empty()) {
    compare("delassus_estimate", 1, OutputPer::kContact, &ContactSolution::delassus_estimate);
  }
  return difference;
}

}  // namespace sap::client
