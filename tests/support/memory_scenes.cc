#include "tests/support/memory_scenes.h"

#include <utility>

#include "tests/support/random_constraints.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

ProblemArrays Trees(int count, int dofs) {
  ProblemArrays problem;
  const Eigen::MatrixXd A = Eigen::MatrixXd::Identity(dofs, dofs);
  const Eigen::VectorXd v_star = Eigen::VectorXd::Ones(dofs);
  for (int i = 0; i < count; ++i) problem.AddTree(A, v_star);
  return problem;
}

// A row for each velocity, as of a limit.
ProblemArrays WithLimits(ProblemArrays problem) {
  const auto velocities = static_cast<uint32_t>(problem.trees.free_motion_velocity.size());
  for (uint32_t i = 0; i < velocities; ++i) problem.AddRow({i}, {1.0});
  return problem;
}

// A row for each pair of neighbours, as of a coupler.
ProblemArrays WithCouplers(ProblemArrays problem) {
  const auto velocities = static_cast<uint32_t>(problem.trees.free_motion_velocity.size());
  for (uint32_t i = 1; i < velocities; ++i) problem.AddRow({i - 1, i}, {1.0, -1.0});
  return problem;
}

// One row over all trees: as many blocks of the Hessian as there are pairs.
ProblemArrays WithOneWideRow(ProblemArrays problem, int dofs) {
  std::vector<uint32_t> velocities;
  for (int i = 0; i < problem.num_trees(); ++i) velocities.push_back(i * dofs);
  problem.AddRow(velocities, std::vector<double>(velocities.size(), 1.0));
  return problem;
}

ProblemArrays FreeBodies(int count) {
  ProblemArrays problem;
  for (int i = 0; i < count; ++i) {
    problem.AddBody(1, {1, 1, 1}, {3.0 * i, 0, 0}, Eigen::Matrix<double, 6, 1>::Ones());
  }
  return problem;
}

// Each on four points of the ground: islands of one body.
ProblemArrays BodiesOnTheGround(int count) {
  ProblemArrays problem = FreeBodies(count);
  for (int i = 0; i < count; ++i) {
    for (const double x : {-0.5, 0.5}) {
      for (const double y : {-0.5, 0.5}) {
        problem.AddBodyContact(i, -1, {3.0 * i + x, y, -0.5}, {0, 0, 1}, {});
      }
    }
  }
  return problem;
}

ProblemArrays HubOfTrees(int count, int dofs) {
  ProblemArrays problem = Trees(count, dofs);
  const ProblemArrays::Jacobian J = ProblemArrays::Jacobian::Constant(3, dofs, 0.1);
  for (int i = 1; i < count; ++i) problem.AddContact(0, J, i, J, {});
  return problem;
}

}  // namespace

std::vector<MemoryScene> MemoryScenes(int scale) {
  std::vector<MemoryScene> scenes;
  const auto add = [&](std::string name, ProblemArrays problem) {
    scenes.push_back({std::move(name), std::move(problem)});
  };
  add("trees of a dof", Trees(20'000 * scale, 1));
  add("trees of 30 dofs", Trees(200 * scale, 30));
  add("trees of a dof, limits", WithLimits(Trees(10'000 * scale, 1)));
  add("trees of a dof, couplers", WithCouplers(Trees(10'000 * scale, 1)));
  add("trees of 30 dofs, limits", WithLimits(Trees(100 * scale, 30)));
  add("trees of 30 dofs, couplers", WithCouplers(Trees(100 * scale, 30)));
  add("a row over 300 trees", WithOneWideRow(Trees(300, 6), 6));
  add("hub of trees of 30 dofs", HubOfTrees(100 * scale, 30));
  add("every kind of constraint",
      RandomConstraintsOfEveryKind(
          1, {.contacts = {.trees = 400 * scale, .contacts = 1000 * scale}, .rows = 500 * scale}));
  add("free bodies", FreeBodies(5000 * scale));
  add("bodies on the ground", BodiesOnTheGround(2000 * scale));
  add("bodies in heaps of 5", Heaps(1, 200 * scale, 5));
  add("bodies in a pile", HeapsBeforeAPile(0, 500 * scale));
  add("a pile among heaps", HeapsBeforeAPile(300 * scale, 200 * scale));
  add("bodies thrown together", RandomBodiesInContact(1, 300 * scale, 3000 * scale));
  return scenes;
}

}  // namespace sap::test
