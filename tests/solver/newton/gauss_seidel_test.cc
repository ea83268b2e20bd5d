#include "solver/newton/gauss_seidel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "tests/solver/prepared_problem.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

// A problem at its guess, with its groups.
struct Prepared : PreparedProblem {
  explicit Prepared(const ProblemArrays& arrays) : PreparedProblem(arrays) { order.Build(graph); }

  SweepOrder order;
};

class GaussSeidelTest : public ::testing::TestWithParam<int> {
 protected:
  static ProblemArrays Problem() {
    const int parameter = GetParam();
    if (parameter % 3 == 0) return RandomBodiesInContact(parameter, 20, 60);
    // Every third with trees too large for the stack.
    return RandomTreesInContact(
        parameter, {.trees = 15, .contacts = 45, .max_dofs = parameter % 3 == 1 ? 9 : 50});
  }
};

TEST_P(GaussSeidelTest, NeverRaiseTheCost) {
  Prepared p(Problem());
  for (int island = 0; island < p.graph.islands().count(); ++island) {
    const IslandView view = p.View(island);
    double last = Evaluate(view, &p.data, &p.scratch).cost;
    const double first = last;
    for (int sweep = 0; sweep < 20; ++sweep) {
      Sweep(view, p.order, sweep % 2 == 1, StopToken(), &p.data, &p.step);
      const double cost = Evaluate(view, &p.data, &p.scratch).cost;
      EXPECT_LE(cost, last * (1 + 1e-14)) << "sweep " << sweep;
      last = cost;
    }
    EXPECT_LE(last, first);
  }
}

// Slower than with Newton steps between, but a tree by itself needs nothing else to converge.
TEST_P(GaussSeidelTest, AloneLeadOneTreeToTheOptimum) {
  Prepared p(RandomTreesInContact(GetParam(), {.trees = 1, .contacts = 6, .max_dofs = 9}));
  ASSERT_EQ(p.graph.islands().count(), 1);
  const IslandView view = p.View(0);
  for (int sweep = 0; sweep < 200; ++sweep) {
    Evaluate(view, &p.data, &p.scratch);
    Sweep(view, p.order, sweep % 2 == 1, StopToken(), &p.data, &p.step);
  }
  const IslandNorms norms = Evaluate(view, &p.data, &p.scratch);
  EXPECT_LE(norms.gradient, 1e-9 * std::max(norms.momentum, norms.impulse));
}

TEST_P(GaussSeidelTest, LeaveTreesWhereTheyAreThatHaveNoFriction) {
  ProblemArrays arrays = Problem();
  std::ranges::fill(arrays.contacts.law.friction, 0.0);
  std::ranges::fill(arrays.body_contacts.law.friction, 0.0);
  Prepared p(arrays);
  for (int island = 0; island < p.graph.islands().count(); ++island) {
    const IslandView view = p.View(island);
    if (view.range().num_trees() == 1) continue;
    Evaluate(view, &p.data, &p.scratch);
    const std::vector<double> before = p.data.v;
    Sweep(view, p.order, false, StopToken(), &p.data, &p.step);
    EXPECT_EQ(p.data.v, before);
  }
}

TEST_P(GaussSeidelTest, KeepContactVelocitiesUpToDate) {
  Prepared p(Problem());
  for (int island = 0; island < p.graph.islands().count(); ++island) {
    const IslandView view = p.View(island);
    Evaluate(view, &p.data, &p.scratch);
    Sweep(view, p.order, false, StopToken(), &p.data, &p.step);
    const ContactVectors kept = p.data.pools[kFrictionPool].v_c;
    Evaluate(view, &p.data, &p.scratch);
    const ContactVectors& v_c = p.data.pools[kFrictionPool].v_c;
    const PoolRange range = view.range(kFrictionPool);
    for (int i = range.begin; i < range.end; ++i) {
      EXPECT_NEAR(kept.x[i], v_c.x[i], 1e-12);
      EXPECT_NEAR(kept.y[i], v_c.y[i], 1e-12);
      EXPECT_NEAR(kept.n[i], v_c.n[i], 1e-12);
    }
  }
}

TEST_P(GaussSeidelTest, AreTheSameBitsOnAnyNumberOfThreads) {
  const ProblemArrays arrays = RandomBodiesInContact(GetParam(), 150, 300);
  const auto swept = [&](TaskArena* arena) {
    Prepared p(arrays);
    for (int island = 0; island < p.graph.islands().count(); ++island) {
      const IslandView view = p.View(island, arena);
      Evaluate(view, &p.data, &p.scratch);
      Sweep(view, p.order, false, StopToken(), &p.data, &p.step);
    }
    return p.data.v;
  };
  const std::vector<double> alone = swept(nullptr);
  for (const int threads : {1, 2, 3, 8}) {
    TaskArena arena(threads, Sharing::kAlways);
    EXPECT_EQ(swept(&arena), alone) << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(RandomProblems, GaussSeidelTest, ::testing::Range(0, 9));

// One factorization of this tree takes far longer than the deadline leaves.
TEST(GaussSeidelTest, StopWithinALargeTree) {
  Prepared p(LargeTree(1000, 10));
  const IslandView view = p.View(0);
  Evaluate(view, &p.data, &p.scratch);
  const std::vector<double> before = p.data.v;
  const StopToken stop(nullptr, StopToken::Clock::now() + std::chrono::milliseconds(1));
  EXPECT_FALSE(Sweep(view, p.order, false, stop, &p.data, &p.step));
  EXPECT_EQ(p.data.v, before);
}

TEST(GaussSeidelTest, StopOnRequest) {
  Prepared p(RandomBodiesInContact(1, 20, 60));
  const std::atomic<bool> cancelled{true};
  const StopToken stop(&cancelled, StopToken::Clock::time_point::max());
  const IslandView view = p.View(0);
  Evaluate(view, &p.data, &p.scratch);
  const std::vector<double> before = p.data.v;
  Sweep(view, p.order, false, stop, &p.data, &p.step);
  EXPECT_EQ(p.data.v, before);
}

}  // namespace
}  // namespace sap::test
