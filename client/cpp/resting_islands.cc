#include "client/cpp/resting_islands.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

namespace sap::client {
namespace {

constexpr int64_t kMostHorizonSteps = 10'000;

tl::unexpected<Error> Invalid(std::string field, const std::string& rest) {
  std::string message = field + rest;
  return tl::unexpected(Error{ErrorCode::kInvalidArgument, std::move(message), std::move(field)});
}

tl::expected<void, Error> CheckPositive(const char* name, double value) {
  if (std::isfinite(value) && value > 0) return {};
  return Invalid(name, " is " + std::to_string(value) + "; it must be finite and > 0");
}

tl::unexpected<Error> WrongLength(std::string field, size_t length, size_t expected) {
  return Invalid(std::move(field), " has " + std::to_string(length) + " values; " +
                                       std::to_string(expected) + " are needed");
}

std::string BodyIdField(size_t body) { return "bodies.body_id[" + std::to_string(body) + "]"; }

}  // namespace

// An answer, read for the bodies of its problem.
struct RestingIslands::Answer {
  std::span<const uint32_t> body_ids{};
  std::vector<std::array<double, 6>> velocities{};
  std::vector<std::vector<int>> islands{};  // bodies of each island without trees
  std::vector<double> drifts{};             // of each of these
  std::vector<int> unbound{};               // bodies that no constraint touches
};

tl::expected<RestingIslands, Error> RestingIslands::Make(const RestRules& rules) {
  RestingIslands resting;
  if (const auto set = resting.SetRules(rules); !set) return tl::unexpected(set.error());
  return resting;
}

tl::expected<void, Error> RestingIslands::SetRules(const RestRules& rules) {
  for (const auto& checked :
       {CheckPositive("horizon", rules.horizon), CheckPositive("tolerance", rules.tolerance),
        CheckPositive("time_step", rules.time_step)}) {
    if (!checked) return checked;
  }
  const double steps = std::max(1.0, std::round(rules.horizon / rules.time_step));
  if (!(steps <= static_cast<double>(kMostHorizonSteps))) {
    return Invalid("horizon",
                   " is longer than " + std::to_string(kMostHorizonSteps) + " time steps");
  }
  time_step_ = rules.time_step;
  tolerance_ = rules.tolerance;
  horizon_steps_ = static_cast<int64_t>(steps);
  due_.assign(static_cast<size_t>(horizon_steps_), {});
  due_bodies_.assign(static_cast<size_t>(horizon_steps_), 0);
  return {};
}

int RestingIslands::IslandOf(uint32_t body_id) const {
  const auto found = island_of_.find(body_id);
  return found == island_of_.end() ? -1 : found->second;
}

std::vector<BodyMove> RestingIslands::Due() const {
  std::vector<BodyMove> bodies;
  for (const int number : due_[static_cast<size_t>(steps_ % horizon_steps_)]) {
    const Island& island = islands_[number];
    if (island.due != steps_) continue;
    for (size_t i = 0; i < island.bodies.size(); ++i) {
      bodies.push_back({island.bodies[i], 0, island.velocities[i]});
    }
  }
  return bodies;
}

std::vector<BodyMove> RestingIslands::Wake(std::span<const uint32_t> body_ids, WakeReason reason) {
  std::vector<BodyMove> woken;
  for (const uint32_t id : body_ids) {
    const int number = IslandOf(id);
    if (number < 0) continue;
    const Island island = Release(number);
    const double passed =
        island.of_long_step ? static_cast<double>(steps_ - island.since) * time_step_ : 0;
    for (size_t i = 0; i < island.bodies.size(); ++i) {
      woken.push_back({island.bodies[i], passed, island.velocities[i]});
    }
    ++(reason == WakeReason::kPair ? counts_.woken_by_pair : counts_.woken_by_input);
  }
  return woken;
}

tl::expected<std::vector<BodyMove>, Error> RestingIslands::SetTimeStep(double time_step) {
  RestingIslands next;
  const auto set =
      next.SetRules({.horizon = horizon(), .tolerance = tolerance_, .time_step = time_step});
  if (!set) return tl::unexpected(set.error());
  std::vector<uint32_t> ids;
  for (const Island& island : islands_) {
    ids.insert(ids.end(), island.bodies.begin(), island.bodies.end());
  }
  std::vector<BodyMove> woken = Wake(ids, WakeReason::kInput);
  next.counts_ = counts_;
  *this = std::move(next);
  return woken;
}

tl::expected<RestingIslands::Answer, Error> RestingIslands::Read(const ContactProblemView& problem,
                                                                 const ContactSolution& solution,
                                                                 double time_step) const {
  const size_t trees = problem.trees.dofs.size();
  const size_t bodies = problem.bodies.mass.size();
  const size_t start = std::accumulate(problem.trees.dofs.begin(), problem.trees.dofs.end(),
                                       size_t{0});  // of the velocities of bodies
  if (problem.time_step != time_step) {
    return Invalid("time_step", " is " + std::to_string(problem.time_step) + "; steps of " +
                                    std::to_string(time_step) + " s are counted");
  }
  if (problem.bodies.body_id.size() != bodies) {
    return WrongLength("bodies.body_id", problem.bodies.body_id.size(), bodies);
  }
  if (solution.velocity.size() != start + 6 * bodies) {
    return WrongLength("velocity", solution.velocity.size(), start + 6 * bodies);
  }
  if (solution.island_of_tree.size() != trees + bodies) {
    return WrongLength("island_of_tree", solution.island_of_tree.size(), trees + bodies);
  }
  Answer answer{.body_ids = problem.bodies.body_id};
  answer.velocities.resize(bodies);
  std::vector<std::vector<int>> islands(solution.islands.size());
  std::vector<char> has_tree(islands.size(), 0);
  for (size_t i = 0; i < trees + bodies; ++i) {
    const int island = solution.island_of_tree[i];
    if (island < -1 || island >= static_cast<int>(islands.size())) {
      return Invalid("island_of_tree[" + std::to_string(i) + "]",
                     " is " + std::to_string(island) + "; there are " +
                         std::to_string(islands.size()) + " reports of islands");
    }
    if (i < trees && island >= 0) has_tree[island] = 1;
    if (i < trees) continue;
    const int body = static_cast<int>(i - trees);
    std::copy_n(solution.velocity.begin() + static_cast<int64_t>(start + 6 * (i - trees)), 6,
                answer.velocities[body].begin());
    (island < 0 ? answer.unbound : islands[island]).push_back(body);
  }
  for (size_t i = 0; i < islands.size(); ++i) {
    const double drift = solution.islands[i].rest_drift;
    if (!(drift >= 0)) {
      return Invalid("islands.rest_drift", " is missing; options.rest asks for it");
    }
    if (has_tree[i]) continue;
    answer.islands.push_back(std::move(islands[i]));
    answer.drifts.push_back(drift);
  }
  return answer;
}

tl::expected<void, Error> RestingIslands::CheckDue(std::span<const uint32_t> body_ids) const {
  std::unordered_map<int, size_t> given;  // bodies of each island
  for (size_t body = 0; body < body_ids.size(); ++body) {
    const int number = IslandOf(body_ids[body]);
    if (number < 0 || islands_[number].due != steps_) {
      return Invalid(BodyIdField(body),
                     " is " + std::to_string(body_ids[body]) + ", which is not due");
    }
    ++given[number];
  }
  for (const auto& [number, count] : given) {
    if (count == islands_[number].bodies.size()) continue;
    return Invalid("bodies.body_id", " has " + std::to_string(count) + " bodies of an island of " +
                                         std::to_string(islands_[number].bodies.size()));
  }
  return {};
}

tl::expected<LongSteps, Error> RestingIslands::TakeLongSteps(const ContactProblemView& problem,
                                                             const ContactSolution& solution) {
  const auto answer = Read(problem, solution, horizon());
  if (!answer) return tl::unexpected(answer.error());
  if (const auto due = CheckDue(answer->body_ids); !due) return tl::unexpected(due.error());

  std::unordered_map<uint32_t, BodyMove> kept;
  for (const uint32_t id : answer->body_ids) {
    const int number = IslandOf(id);
    if (number < 0) continue;
    const Island island = Release(number);
    const double passed = static_cast<double>(steps_ - island.since) * time_step_;
    for (size_t i = 0; i < island.bodies.size(); ++i) {
      kept[island.bodies[i]] = {island.bodies[i], passed, island.velocities[i]};
    }
  }
  LongSteps steps;
  const auto refuse = [&](std::span<const int> bodies) {
    for (const int body : bodies) {
      const uint32_t id = answer->body_ids[body];
      steps.woken.push_back({id, 0, kept[id].velocity});
      awake_until_[id] = steps_ + horizon_steps_;
    }
    ++counts_.long_steps;
    ++counts_.long_steps_refused;
  };
  for (size_t i = 0; i < answer->islands.size(); ++i) {
    const std::vector<int>& bodies = answer->islands[i];
    // The drift contains the motion by the velocity itself, horizon times |v|.
    if (!(answer->drifts[i] <= tolerance_)) {
      refuse(bodies);
      continue;
    }
    Island island{.since = steps_, .due = steps_ + horizon_steps_, .of_long_step = true};
    for (const int body : bodies) {
      const uint32_t id = answer->body_ids[body];
      steps.resting.push_back({id, kept[id].duration, answer->velocities[body]});
      island.bodies.push_back(id);
      island.velocities.push_back(answer->velocities[body]);
    }
    Rest(std::move(island));
    ++counts_.long_steps;
  }
  for (const int& body : answer->unbound) refuse({&body, 1});
  return steps;
}

tl::expected<std::vector<BodyMove>, Error> RestingIslands::TakeStep(
    const ContactProblemView& problem, const ContactSolution& solution) {
  const auto answer = Read(problem, solution, time_step_);
  if (!answer) return tl::unexpected(answer.error());
  for (size_t body = 0; body < answer->body_ids.size(); ++body) {
    if (!Rests(answer->body_ids[body])) continue;
    return Invalid(BodyIdField(body), " is " + std::to_string(answer->body_ids[body]) +
                                          ", which rests: it has to wake first");
  }
  if (const auto due = Due(); !due.empty()) {
    return tl::unexpected(Error{ErrorCode::kFailedPrecondition,
                                std::to_string(due.size()) + " bodies are due for a long step"});
  }
  ++steps_;
  const auto must_stay_awake = [&](uint32_t id) {
    const auto found = awake_until_.find(id);
    if (found == awake_until_.end()) return false;
    if (steps_ < found->second) return true;
    awake_until_.erase(found);
    return false;
  };
  std::vector<BodyMove> resting;
  for (size_t i = 0; i < answer->islands.size(); ++i) {
    if (!(answer->drifts[i] <= tolerance_)) continue;
    Island island{.since = steps_};
    for (const int body : answer->islands[i]) {
      island.bodies.push_back(answer->body_ids[body]);
      island.velocities.push_back(answer->velocities[body]);
    }
    if (std::any_of(island.bodies.begin(), island.bodies.end(), must_stay_awake)) continue;
    island.due = ChooseDue();
    for (size_t k = 0; k < island.bodies.size(); ++k) {
      resting.push_back({island.bodies[k], 0, island.velocities[k]});
    }
    Rest(std::move(island));
  }
  return resting;
}

// The step within a horizon in which the fewest bodies are due, of equals the last: spread forward,
// long steps do not all fall on one step.
int64_t RestingIslands::ChooseDue() const {
  int64_t best = steps_ + horizon_steps_;
  for (int64_t due = best - 1; due > steps_; --due) {
    if (due_bodies_[due % horizon_steps_] < due_bodies_[best % horizon_steps_]) best = due;
  }
  return best;
}

void RestingIslands::Rest(Island island) {
  if (free_numbers_.empty()) {
    free_numbers_.push_back(static_cast<int>(islands_.size()));
    islands_.emplace_back();
  }
  const int number = free_numbers_.back();
  free_numbers_.pop_back();
  for (const uint32_t id : island.bodies) island_of_[id] = number;
  const auto place = static_cast<size_t>(island.due % horizon_steps_);
  due_[place].insert(number);
  due_bodies_[place] += static_cast<int64_t>(island.bodies.size());
  islands_[number] = std::move(island);
}

RestingIslands::Island RestingIslands::Release(int number) {
  Island island = std::exchange(islands_[number], {});
  for (const uint32_t id : island.bodies) island_of_.erase(id);
  const auto place = static_cast<size_t>(island.due % horizon_steps_);
  due_[place].erase(number);
  due_bodies_[place] -= static_cast<int64_t>(island.bodies.size());
  free_numbers_.push_back(number);
  return island;
}

}  // namespace sap::client
