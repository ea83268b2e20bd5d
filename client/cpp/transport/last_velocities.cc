#include "client/cpp/transport/last_velocities.h"

#include <algorithm>
#include <vector>

#include "client/cpp/transport/request_bytes.h"
#include "proto/codec/problem_decoder.h"
#include "solver/problem/named_velocities.h"

namespace sap::client {
namespace {

// The trees and bodies of a problem as a server numbers them. A ProblemLayout has them too, but not
// of every problem that is solved.
class TreesOf {
 public:
  explicit TreesOf(const ContactProblemView& view) {
    constexpr int kBodyDofs = 6;
    const auto add = [this](std::span<const uint32_t> names, size_t i, int dofs) {
      name_.push_back(i < names.size() ? static_cast<int64_t>(names[i]) : -1);
      dofs_.push_back(dofs);
      velocity_start_.push_back(velocity_start_.back() + dofs);
    };
    for (size_t i = 0; i < view.trees.dofs.size(); ++i) {
      add(view.trees.tree_id, i, static_cast<int>(view.trees.dofs[i]));
    }
    for (size_t i = 0; i < view.bodies.mass.size(); ++i) add(view.bodies.body_id, i, kBodyDofs);
  }

  NamedTrees named() const { return {name_, velocity_start_, dofs_}; }
  int num_velocities() const { return velocity_start_.back(); }
  bool Fits(const ContactSolution& solution) const {
    const auto islands = std::ssize(solution.islands);
    return std::ssize(solution.velocity) == num_velocities() &&
           solution.island_of_tree.size() == name_.size() &&
           std::ranges::all_of(solution.island_of_tree, [&](int i) { return i < islands; });
  }

 private:
  std::vector<int64_t> name_;
  std::vector<int> velocity_start_{0};
  std::vector<int> dofs_;
};

}  // namespace

void LastVelocities::Remember(const grpc::ByteBuffer& step, const ContactSolution& solution) {
  step_ = step;
  solution_.velocity = solution.velocity;
  solution_.island_of_tree = solution.island_of_tree;
  solution_.islands = solution.islands;
  known_ = true;
}

bool LastVelocities::SetGuess(v1::ContactProblem* problem) const {
  NamedVelocities velocities;
  if (known_) {
    const v1::SolveSessionRequest step = ParseStep(step_);
    const TreesOf trees(DecodeDirection(step.step().problem()));
    if (!trees.Fits(solution_)) return false;
    velocities.Remember(trees.named(), solution_);
  }
  const ContactProblemView view = DecodeDirection(*problem);
  const TreesOf trees(view);
  const auto& of_trees = view.trees.free_motion_velocity;
  const auto& of_bodies = view.bodies.free_motion_velocity;
  std::vector<double> guess(of_trees.begin(), of_trees.end());
  guess.insert(guess.end(), of_bodies.begin(), of_bodies.end());
  if (std::ssize(guess) != trees.num_velocities()) return false;  // the server will refuse it
  const bool any = velocities.FillGuess(view, trees.named(), guess);
  const auto bodies_begin = guess.begin() + std::ssize(of_trees);
  // A problem without bodies keeps none.
  if (!of_trees.empty() && view.trees.guess_velocity.empty()) {
    problem->mutable_trees()->mutable_guess_velocity()->Add(guess.begin(), bodies_begin);
  }
  if (!of_bodies.empty() && view.bodies.guess_velocity.empty()) {
    problem->mutable_bodies()->mutable_guess_velocity()->Add(bodies_begin, guess.end());
  }
  return any;
}

}  // namespace sap::client
