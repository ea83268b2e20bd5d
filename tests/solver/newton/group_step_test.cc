#include "solver/newton/group_step.h"

#include <gtest/gtest.h>

#include <cmath>

#include "solver/newton/sweep_order.h"
#include "tests/solver/dense_vectors.h"
#include "tests/solver/prepared_problem.h"
#include "tests/support/dense_algebra.h"
#include "tests/support/random_constraints.h"

namespace sap::test {
namespace {

// Constraints of every kind over small trees, so that many of them are joined, at a guess.
class GroupStepTest : public ::testing::TestWithParam<int> {
 protected:
  GroupStepTest()
      : arrays_(RandomConstraintsOfEveryKind(
            GetParam(), {.contacts = {.trees = 14, .contacts = 35, .max_dofs = 6}, .rows = 20})),
        dense_(arrays_),
        p_(arrays_) {
    order_.Build(p_.graph);
    for (int island = 0; island < p_.graph.islands().count(); ++island) {
      Evaluate(p_.View(island), &p_.data, &p_.scratch);
    }
  }
  // Calls body(view, group) for the groups of every island.
  template <typename Body>
  void ForGroups(Body&& body) {
    int number = 0;
    for (int island = 0; island < p_.graph.islands().count(); ++island) {
      for (int i = 0; i < order_.num_groups(island); ++i) {
        body(p_.View(island), order_.group(number++));
      }
    }
  }
  int Dofs(const TreeGroup& group) const {
    int dofs = 0;
    for (const int slot : group.slots) dofs += p_.graph.dofs()[slot];
    return dofs;
  }
  void Step(const IslandView& view, const TreeGroup& group) {
    const int n = Dofs(group);
    std::vector<double> scratch(n * (n + 3));
    StepGroup(view, group, n, StopToken(), scratch.data(), &p_.data, &p_.step);
  }
  // The velocities of a group in the order of the problem.
  std::vector<int> VelocitiesOf(const TreeGroup& group) const {
    std::vector<int> velocities;
    for (const int slot : group.slots) {
      for (int i = 0; i < p_.graph.dofs()[slot]; ++i) {
        velocities.push_back(p_.StartInProblem(slot) + i);
      }
    }
    return velocities;
  }

  const ProblemArrays arrays_;
  const DenseProblem dense_;
  PreparedProblem p_;
  SweepOrder order_;
};

// Along the Newton step of the group by itself, with H by differences, to where the slope has
// fallen to a tenth.
TEST_P(GroupStepTest, IsTheNewtonStepOfTheGroupAlone) {
  ForGroups([&](const IslandView& view, const TreeGroup& group) {
    const std::vector<int> of_group = VelocitiesOf(group);
    const VectorL before = p_.Velocity();
    const VectorL gradient = dense_.Gradient(before)(of_group);
    const MatrixL H = dense_.Hessian(before, of_group);
    const VectorL newton = -SolutionOf(H, gradient);
    Step(view, group);
    const VectorL after = p_.Velocity();
    VectorL elsewhere = after - before;
    const VectorL moved = elsewhere(of_group);
    elsewhere(of_group).setZero();
    EXPECT_EQ(elsewhere.cwiseAbs().maxCoeff(), 0);
    const long double alpha = moved.dot(H * newton) / newton.dot(H * newton);
    const VectorL across = moved - alpha * newton;
    EXPECT_LE(across.dot(H * across), 1e-12L * moved.dot(H * moved));
    EXPECT_GT(alpha, 0);
    const long double slope = dense_.Gradient(after)(of_group).dot(newton);
    EXPECT_LE(std::abs(slope), 1.001L * kLocalTolerance * -gradient.dot(newton));
  });
}

TEST_P(GroupStepTest, NeverRaisesTheCost) {
  long double cost = dense_.Cost(p_.Velocity());
  for (int round = 0; round < 3; ++round) {
    ForGroups([&](const IslandView& view, const TreeGroup& group) {
      Step(view, group);
      const VectorL v = p_.Velocity();
      const long double next = dense_.Cost(v);
      EXPECT_LE(next - cost, 1e-14L * dense_.CostSize(v)) << "group " << group.number;
      cost = next;
    });
  }
}

TEST_P(GroupStepTest, RepeatedLeadsTheGroupToWhereItsGradientVanishes) {
  ForGroups([&](const IslandView& view, const TreeGroup& group) {
    const std::vector<int> of_group = VelocitiesOf(group);
    const VectorL D = dense_.A().diagonal().cwiseSqrt().cwiseInverse()(of_group);
    const auto norm = [&] {
      return D.cwiseProduct(dense_.Gradient(p_.Velocity())(of_group)).norm();
    };
    const long double first = norm();
    for (int step = 0; step < 60; ++step) Step(view, group);
    EXPECT_LE(norm(), 1e-7L * first) << "group " << group.number;
  });
}

TEST_P(GroupStepTest, KeepsTheVelocitiesOfConstraints) {
  ForGroups([&](const IslandView& view, const TreeGroup& group) { Step(view, group); });
  for (int island = 0; island < p_.graph.islands().count(); ++island) {
    const IslandView view = p_.View(island);
    ConstraintVelocities(view, p_.data.v, StopToken(), &p_.step.pools);
    ForPoolsOf(view, [&](auto pool) {
      const PoolRange range = view.range(pool);
      for (int i = range.begin; i < range.end; ++i) {
        const VectorL kept = ToDense(p_.data.pools[pool].v_c.At(i));
        const VectorL expected = ToDense(p_.step.pools[pool].v_c.At(i));
        EXPECT_LE((kept - expected).cwiseAbs().maxCoeff(), 1e-12L) << "kind " << pool;
      }
    });
  }
}

TEST_P(GroupStepTest, ConstraintsOfAGroupComeUpOnceEach) {
  ForGroups([&](const IslandView& view, const TreeGroup& group) {
    std::vector<std::vector<int>> seen(kNumConstraintKinds), expected(kNumConstraintKinds);
    ForConstraints(view, group, [&](auto pool, int begin, int end) {
      for (int i = begin; i < end; ++i) {
        seen[pool].push_back(view.layout(pool).order()[i]);
      }
    });
    const std::vector<int> of_group = VelocitiesOf(group);
    ForPoolsOf(view, [&](auto pool) {
      const PoolRange range = view.range(pool);
      for (int i = range.begin; i < range.end; ++i) {
        const int number = view.layout(pool).order()[i];
        const MatrixL J = DenseJacobian(dense_, pool, number);
        if (!J(Eigen::all, of_group).isZero()) expected[pool].push_back(number);
      }
    });
    for (int kind = 0; kind < kNumConstraintKinds; ++kind) {
      std::ranges::sort(seen[kind]);
      std::ranges::sort(expected[kind]);
    }
    EXPECT_EQ(seen, expected);
  });
}

INSTANTIATE_TEST_SUITE_P(RandomProblems, GroupStepTest, ::testing::Range(0, 12));

}  // namespace
}  // namespace sap::test
