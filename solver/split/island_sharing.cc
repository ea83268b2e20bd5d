#include "solver/split/island_sharing.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "solver/split/neighbours.h"

namespace sap {
namespace {

// The shards of a problem of which islands were found.
constexpr int kRemainder = 0;
constexpr int kFound = 1;

int64_t CountConstraints(const ContactProblemView& problem) {
  return CountContacts(problem.contacts) +
         static_cast<int64_t>(problem.body_contacts.body_a.size() + problem.rows.entries.size());
}

// Whether the answer is the one that any solve of the island with these options finds, however long
// it may take.
bool IsFinal(const IslandReport& report, const SolverOptions& options) {
  const bool as_asked = !report.swept || options.newton == NewtonMethod::kGaussSeidel;
  return as_asked && report.status != SolveStatus::kDeadline &&
         report.status != SolveStatus::kCancelled;
}

}  // namespace

void IslandSharing::Clear() {
  shared_ = nullptr;
  num_found_ = 0;
  missed_.clear();
}

ContactProblemView IslandSharing::Remainder(const ContactProblemView& problem,
                                            SharedIslands* shared) {
  Clear();
  shared_ = shared;
  if (CountConstraints(problem) < shared->least_constraints() || !FindCandidates(problem)) {
    return problem;
  }
  LookUp(problem);
  if (num_found_ == 0) return problem;
  std::ranges::transform(found_, shard_of_island_.begin(), [](const ContactSolution* answer) {
    return answer != nullptr ? kFound : kRemainder;
  });
  parts_.Build(problem, layout_, islands_.island_of_tree(), shard_of_island_, 2,
               /*free_trees=*/kRemainder);
  parts_.Extract(kRemainder, &arrays_);
  return ViewOf(arrays_);
}

bool IslandSharing::FindCandidates(const ContactProblemView& problem) {
  if (!layout_.Read(problem)) return false;
  islands_.Find(layout_.joined(), /*split=*/true);
  CountByIsland(layout_, islands_, &constraints_);
  for (const CoupledPair& pair : layout_.coupled) {
    constraints_[islands_.island_of_tree()[pair.a]] = 0;
  }
  for (int& constraints : constraints_) {
    if (constraints < shared_->least_constraints()) constraints = 0;
  }
  return std::ranges::any_of(constraints_, [](int constraints) { return constraints > 0; });
}

void IslandSharing::LookUp(const ContactProblemView& problem) {
  const int count = islands_.count();
  shard_of_island_.resize(count);
  std::iota(shard_of_island_.begin(), shard_of_island_.end(), 0);
  alone_.Build(problem, layout_, islands_.island_of_tree(), shard_of_island_, count + 1,
               /*free_trees=*/count);
  found_.assign(count, nullptr);
  for (int island = 0; island < count; ++island) {
    if (constraints_[island] == 0) continue;
    alone_.Extract(island, &arrays_);
    SharedIslands::MakeKey(arrays_, &key_);
    found_[island] = shared_->Find(key_);
    if (found_[island] != nullptr) {
      ++num_found_;
    } else if (shared_->HasRoom(key_.bytes.size())) {
      missed_.push_back({island, key_});
    }
  }
}

void IslandSharing::Complete(const SolverOptions& options, ContactSolution* solution) {
  if (num_found_ > 0) PlaceFound(solution);
  for (Missed& missed : missed_) {
    if (!IsFinal(solution->islands[missed.island], options)) continue;
    ContactSolution answer;
    alone_.Pick(missed.island, *solution, &answer);
    shared_->Add(std::move(missed.key), std::move(answer));
  }
  missed_.clear();
}

void IslandSharing::PlaceFound(ContactSolution* solution) {
  std::swap(*solution, remainder_);
  parts_.Prepare(solution);
  parts_.Place(kRemainder, remainder_, solution);
  for (size_t island = 0; island < found_.size(); ++island) {
    if (found_[island] == nullptr) continue;
    alone_.Place(static_cast<int>(island), *found_[island], solution);
    solution->shared_constraints += constraints_[island];
  }
  solution->shared_islands = num_found_;
  for (const IslandReport& report : solution->islands) solution->cost += report.cost;
  solution->times = remainder_.times;
}

size_t IslandSharing::storage_bytes() const {
  size_t bytes = StorageBytes(layout_, islands_, constraints_, shard_of_island_, alone_, parts_,
                              key_.bytes, found_, remainder_) +
                 missed_.capacity() * sizeof(Missed);
  for (const Missed& missed : missed_) bytes += missed.key.bytes.capacity();
  ForEachArray(
      [&](std::string_view, const auto&, const auto& array) { bytes += StorageBytes(array); },
      arrays_);
  return bytes;
}

}  // namespace sap
