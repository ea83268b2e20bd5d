#include "solver/sap/gauss_seidel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "solver/sap/sap_data.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

// All islands of a problem at its guess, evaluated.
struct Prepared {
  explicit Prepared(const ProblemArrays& arrays) : problem(Checked(arrays)) {
    graph.Build(problem, true);
    order.Build(graph);
    model.Resize(graph);
    data.Resize(graph);
    step.Resize(graph);
    scratch.Resize(graph);
    for (int island = 0; island < graph.islands().count(); ++island) {
      model.Gather(problem, graph, island, StopToken(), nullptr);
    }
    for (int slot = 0; slot < graph.num_slots(); ++slot) {
      const int tree = graph.islands().tree_of_slot()[slot];
      const auto guess =
          problem.v_guess().subspan(problem.velocity_start()[tree], graph.dofs()[slot]);
      std::ranges::copy(guess, data.v.begin() + graph.velocity_start()[slot]);
    }
  }
  ContactProblem problem;
  ContactGraph graph;
  SweepOrder order;
  SapModel model;
  SapData data;
  SapStep step;
  SapScratch scratch;
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
    const IslandView view{p.graph, p.model, island, nullptr};
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
  const IslandView view{p.graph, p.model, 0, nullptr};
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
    const IslandView view{p.graph, p.model, island, nullptr};
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
    const IslandView view{p.graph, p.model, island, nullptr};
    Evaluate(view, &p.data, &p.scratch);
    Sweep(view, p.order, false, StopToken(), &p.data, &p.step);
    const ContactVectors kept = p.data.v_c;
    Evaluate(view, &p.data, &p.scratch);
    for (int i = view.range().contact_begin; i < view.range().contact_end; ++i) {
      EXPECT_NEAR(kept.x[i], p.data.v_c.x[i], 1e-12);
      EXPECT_NEAR(kept.y[i], p.data.v_c.y[i], 1e-12);
      EXPECT_NEAR(kept.n[i], p.data.v_c.n[i], 1e-12);
    }
  }
}

TEST_P(GaussSeidelTest, AreTheSameBitsOnAnyNumberOfThreads) {
  const ProblemArrays arrays = RandomBodiesInContact(GetParam(), 150, 300);
  const auto swept = [&](TaskArena* arena) {
    Prepared p(arrays);
    for (int island = 0; island < p.graph.islands().count(); ++island) {
      const IslandView view{p.graph, p.model, island, arena};
      Evaluate(view, &p.data, &p.scratch);
      Sweep(view, p.order, false, StopToken(), &p.data, &p.step);
    }
    return p.data.v;
  };
  const std::vector<double> alone = swept(nullptr);
  for (const int threads : {1, 2, 3, 8}) {
    TaskArena arena(threads);
    EXPECT_EQ(swept(&arena), alone) << threads << " threads";
  }
}

// A clique beside a chain in one island: many colors, of which all but two have one tree.
TEST(SweepOrderTest, EveryTreeHasOneColorThatNoNeighborHas) {
  constexpr int kClique = 40;
  constexpr int kChain = 500;
  ProblemArrays arrays;
  const ProblemArrays::Jacobian J = ProblemArrays::Jacobian::Ones(3, 1);
  const auto touch = [&](int a, int b) { arrays.AddContact(a, J, b, J, {}); };
  for (int tree = 0; tree < kClique + kChain; ++tree) {
    arrays.AddTree(Eigen::MatrixXd::Identity(1, 1), Eigen::VectorXd::Zero(1));
    if (tree >= kClique) touch(tree - 1, tree);
    for (int other = 0; tree < kClique && other < tree; ++other) touch(other, tree);
  }
  const Prepared p(arrays);
  ASSERT_EQ(p.order.num_colors(0), kClique);
  std::vector<int> color_of(kClique + kChain, -1);
  for (int c = 0; c < kClique; ++c) {
    EXPECT_TRUE(std::ranges::is_sorted(p.order.color(0, c)));
    for (const int slot : p.order.color(0, c)) {
      EXPECT_EQ(color_of[slot], -1);
      color_of[slot] = c;
    }
  }
  EXPECT_EQ(std::ranges::count(color_of, -1), 0);
  for (const ContactPair& pair : p.graph.pairs())
    EXPECT_NE(color_of[pair.low], color_of[pair.high]);
}

INSTANTIATE_TEST_SUITE_P(RandomProblems, GaussSeidelTest, ::testing::Range(0, 9));

// One factorization of this tree takes far longer than the deadline leaves.
TEST(GaussSeidelTest, StopWithinALargeTree) {
  Prepared p(LargeTree(1000, 10));
  const IslandView view{p.graph, p.model, 0, nullptr};
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
  const IslandView view{p.graph, p.model, 0, nullptr};
  Evaluate(view, &p.data, &p.scratch);
  const std::vector<double> before = p.data.v;
  Sweep(view, p.order, false, stop, &p.data, &p.step);
  EXPECT_EQ(p.data.v, before);
}

}  // namespace
}  // namespace sap::test
