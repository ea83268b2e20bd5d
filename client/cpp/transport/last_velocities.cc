#include "client/cpp/transport/last_velocities.h"

#include <algorithm>
#include <unordered_map>

#include "client/cpp/transport/request_bytes.h"

namespace sap::client {
namespace {

constexpr int kBodyDofs = 6;

using Names = google::protobuf::RepeatedField<uint32_t>;
using Values = google::protobuf::RepeatedField<double>;

// The dofs of a tree or body of a problem; bodies follow trees.
int DofsOf(const v1::ContactProblem& problem, int tree) {
  const int num_trees = problem.trees().dofs_size();
  return tree < num_trees ? static_cast<int>(problem.trees().dofs(tree)) : kBodyDofs;
}

// The name of a tree or body, or -1.
int64_t NameOf(const v1::ContactProblem& problem, int tree) {
  const int num_trees = problem.trees().dofs_size();
  const Names& names = tree < num_trees ? problem.trees().tree_id() : problem.bodies().body_id();
  const int index = tree < num_trees ? tree : tree - num_trees;
  return index < names.size() ? static_cast<int64_t>(names[index]) : -1;
}

struct Velocity {
  const double* values;
  int dofs;
};
using VelocityByName = std::unordered_map<int64_t, Velocity>;

// Sets the guess of the trees or bodies from `first` to `last` in the order of the problem.
bool SetGuessOf(const v1::ContactProblem& problem, int first, int last,
                const VelocityByName& velocities, const Values& v_star, Values* guess) {
  if (!guess->empty()) return false;
  Values values = v_star;
  bool any = false;
  for (int tree = first, start = 0; tree < last; ++tree) {
    const int dofs = DofsOf(problem, tree);
    if (start + dofs > values.size()) return false;  // the server will refuse the problem
    const auto found = velocities.find(NameOf(problem, tree));
    if (found != velocities.end() && found->second.dofs == dofs) {
      std::copy_n(found->second.values, dofs, values.begin() + start);
      any = true;
    }
    start += dofs;
  }
  guess->Swap(&values);
  return any;
}

}  // namespace

void LastVelocities::Remember(const grpc::ByteBuffer& step, const v1::ContactSolution& solution) {
  step_ = step;
  velocity_ = solution.velocity();
  island_of_tree_ = solution.island_of_tree();
  status_ = solution.islands().status();
  known_ = true;
}

bool LastVelocities::SetGuess(v1::ContactProblem* problem) const {
  const v1::SolveSessionRequest step = ParseStep(step_);
  const v1::ContactProblem& last = step.step().problem();
  const int last_count = known_ ? last.trees().dofs_size() + last.bodies().mass_size() : 0;
  if (known_ && island_of_tree_.size() != last_count) return false;
  VelocityByName velocities;
  for (int tree = 0, start = 0; tree < last_count; ++tree) {
    const int dofs = DofsOf(last, tree);
    if (start + dofs > velocity_.size()) return false;
    const int island = island_of_tree_[tree];
    const bool solved = island < 0 || (island < status_.size() &&
                                       status_[island] != v1::ISLAND_STATUS_NUMERICAL_FAILURE);
    const int64_t name = NameOf(last, tree);
    if (solved && name >= 0) velocities[name] = {velocity_.data() + start, dofs};
    start += dofs;
  }
  const int num_trees = problem->trees().dofs_size();
  const int count = num_trees + problem->bodies().mass_size();
  // A problem without bodies keeps none.
  bool any = false;
  if (num_trees > 0) {
    any |= SetGuessOf(*problem, 0, num_trees, velocities, problem->trees().free_motion_velocity(),
                      problem->mutable_trees()->mutable_guess_velocity());
  }
  if (count > num_trees) {
    any |=
        SetGuessOf(*problem, num_trees, count, velocities, problem->bodies().free_motion_velocity(),
                   problem->mutable_bodies()->mutable_guess_velocity());
  }
  return any;
}

}  // namespace sap::client
