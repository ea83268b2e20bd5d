#include "solver/sap/hessian.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "solver/sap/conjugate_gradients.h"
#include "tests/support/primal_problem.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

// A problem as one island, at its guess, with H assembled.
struct Assembled {
  explicit Assembled(const ProblemArrays& arrays, TaskArena* arena = nullptr)
      : problem(Checked(arrays)), primal(arrays) {
    graph.Build(problem, false);
    model.Resize(graph);
    data.Resize(graph);
    step.Resize(graph);
    scratch.Resize(graph);
    hessian.Resize(graph);
    conjugate.Resize(graph);
    model.Gather(problem, graph, 0, StopToken(), nullptr);
    view.emplace(IslandView{graph, model, 0, arena});
    for (int slot = 0; slot < graph.num_slots(); ++slot) {
      const auto guess = problem.v_guess().subspan(Start(slot), graph.dofs()[slot]);
      std::ranges::copy(guess, data.v.begin() + graph.velocity_start()[slot]);
    }
    Evaluate(*view, &data, &scratch);
    model.contacts().Hessians(0, graph.num_contacts(), data.v_c, &data.G);
    hessian.Assemble(*view, data, StopToken());
    std::vector<int> edge_a, edge_b;
    for (const ContactPair& pair : graph.pairs()) {
      if (pair.high < 0) continue;
      edge_a.push_back(pair.low);
      edge_b.push_back(pair.high);
    }
    plan.emplace(EliminationPlan::Make({graph.dofs(), edge_a, edge_b}));
  }

  int Start(int slot) const {
    return problem.velocity_start()[graph.islands().tree_of_slot()[slot]];
  }
  // The step in the order of the problem.
  VectorL Step() const {
    VectorL step = VectorL::Zero(problem.num_velocities());
    for (int slot = 0; slot < graph.num_slots(); ++slot) {
      for (int i = 0; i < graph.dofs()[slot]; ++i) {
        step[Start(slot) + i] = this->step.v[graph.velocity_start()[slot] + i];
      }
    }
    return step;
  }
  // |D (H dv + grad l)| over |D grad l|, H dv being how the gradient changes along dv.
  double StepError() const {
    VectorL v = ToVectorL({problem.v_guess().begin(), problem.v_guess().end()});
    for (int tree = 0; tree < problem.num_trees(); ++tree) {
      if (graph.islands().slot_of_tree()[tree] >= 0) continue;
      const int n = problem.dofs()[tree];
      const int start = problem.velocity_start()[tree];
      v.segment(start, n) = primal.v_star().segment(start, n);
    }
    const VectorL step = Step();
    constexpr long double kDifference = 1e-9L;  // contacts keep their regions
    const VectorL change =
        (primal.Gradient(v + kDifference * step) - primal.Gradient(v - kDifference * step)) /
        (2 * kDifference);
    const VectorL gradient = primal.Gradient(v);
    return static_cast<double>(primal.ScaledNorm(change + gradient) / primal.ScaledNorm(gradient));
  }

  ContactProblem problem;
  PrimalProblem primal;
  ContactGraph graph;
  SapModel model;
  SapData data;
  SapStep step;
  SapScratch scratch;
  Hessian hessian;
  ConjugateVectors conjugate;
  std::optional<IslandView> view;
  std::optional<EliminationPlan> plan;
};

// Differences of 80-bit gradients are good to this.
constexpr double kDifferenceError = 1e-7;

TEST(HessianTest, DenseStepIsThatOfTheDerivativeOfTheGradient) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Assembled a(RandomTreesInContact(seed, {.trees = 5, .contacts = 12, .max_dofs = 7}));
    ASSERT_LE(a.graph.velocity_start().back(), kDenseDofs);
    ASSERT_EQ(SolveDenseStep(*a.view, a.hessian, a.data, &a.step), StepStatus::kOk);
    EXPECT_LE(a.StepError(), kDifferenceError);
  }
}

TEST(HessianTest, SparseStepIsThatOfTheDerivativeOfTheGradient) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Assembled a(RandomTreesInContact(seed, {.trees = 30, .contacts = 80, .max_dofs = 12}));
    BlockCholesky<double> cholesky;
    ASSERT_EQ(SolveSparseStep(*a.view, a.hessian, *a.plan, StopToken(), a.data, &cholesky, &a.step),
              StepStatus::kOk);
    EXPECT_LE(a.StepError(), kDifferenceError);
  }
}

TEST(HessianTest, PreconditionedStepIsThatToItsTolerance) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Assembled a(WithBodiesAsTrees(RandomBodiesInContact(seed, 40, 100)));
    BlockCholesky<float> cholesky;
    ASSERT_EQ(SolvePreconditionedStep(*a.view, a.hessian, *a.plan, StopToken(), a.data, &cholesky,
                                      &a.conjugate, &a.step),
              StepStatus::kOk);
    EXPECT_LE(a.StepError(), 1.1e-4);
  }
}

TEST(HessianTest, BlocksAndStepsAreTheSameBitsOnAnyNumberOfThreads) {
  const ProblemArrays arrays = WithBodiesAsTrees(RandomBodiesInContact(1, 200, 600));
  const auto step = [&](TaskArena* arena) {
    Assembled a(arrays, arena);
    BlockCholesky<float> cholesky;
    EXPECT_EQ(SolvePreconditionedStep(*a.view, a.hessian, *a.plan, StopToken(), a.data, &cholesky,
                                      &a.conjugate, &a.step),
              StepStatus::kOk);
    return a.step.v;
  };
  const std::vector<double> alone = step(nullptr);
  for (const int threads : {1, 2, 3, 8}) {
    TaskArena arena(threads);
    EXPECT_EQ(step(&arena), alone) << threads << " threads";
  }
}

TEST(HessianTest, StepsStopOnRequest) {
  Assembled a(WithBodiesAsTrees(RandomBodiesInContact(1, 40, 100)));
  const std::atomic<bool> cancelled{true};
  const StopToken stop(&cancelled, StopToken::Clock::time_point::max());
  BlockCholesky<double> exact;
  BlockCholesky<float> preconditioner;
  EXPECT_EQ(SolveSparseStep(*a.view, a.hessian, *a.plan, stop, a.data, &exact, &a.step),
            StepStatus::kStopped);
  EXPECT_EQ(SolvePreconditionedStep(*a.view, a.hessian, *a.plan, stop, a.data, &preconditioner,
                                    &a.conjugate, &a.step),
            StepStatus::kStopped);
}

}  // namespace
}  // namespace sap::test
