#include "solver/newton/hessian.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>

#include "solver/newton/newton_step.h"
#include "tests/solver/cholesky/mechanisms.h"
#include "tests/solver/dense_vectors.h"
#include "tests/solver/prepared_problem.h"
#include "tests/support/primal_problem.h"
#include "tests/support/random_constraints.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

using Jacobian = ProblemArrays::Jacobian;

// The plan of a graph with one island.
EliminationPlan PlanOf(const ConstraintGraph& graph) {
  std::vector<int> edge_a, edge_b;
  for (const TreePair& pair : graph.pairs()) {
    edge_a.push_back(pair.low);
    edge_b.push_back(pair.high);
  }
  return EliminationPlan::Make({graph.dofs(), edge_a, edge_b});
}

// How an island is factored: the plan is that of its pattern, or none for dense ones.
struct Factoring {
  const EliminationPlan* plan{nullptr};
  bool single_precision{false};
};

// The Newton step. Checks that the precision asked for did.
StepStatus TakeStep(const IslandView& view, const Hessian& hessian, const SapData& data,
                    const Factoring& factoring, SapStep* step, const StopToken& stop = {}) {
  FactorPair factors;
  const PlannedFactors planned{factoring.plan, &factors};
  ConjugateVectors conjugate;
  conjugate.Resize(view.graph);
  int factorizations = 0;
  HessianFactor factor(view, planned, factoring.single_precision, stop, &factorizations);
  const StepStatus status = SolveNewtonStep(view, hessian, stop, data, &factor, &conjugate, step);
  EXPECT_EQ(factor.single_precision(), factoring.single_precision);
  EXPECT_EQ(factorizations, 1);
  return status;
}

// A problem as one island, at its guess, with H assembled.
struct Assembled {
  explicit Assembled(const ProblemArrays& arrays, TaskArena* arena = nullptr)
      : problem(Checked(arrays)), primal(arrays) {
    graph.Build(problem, false);
    model.Resize(problem, graph);
    data.Resize(graph);
    step.Resize(graph);
    scratch.Resize(graph);
    hessian.Resize(graph);
    model.Gather(problem, graph, 0, StopToken(), nullptr);
    view.emplace(IslandView{graph, model, 0, arena});
    for (int slot = 0; slot < graph.num_slots(); ++slot) {
      const auto guess = problem.v_guess().subspan(Start(slot), graph.dofs()[slot]);
      std::ranges::copy(guess, data.v.begin() + graph.velocity_start()[slot]);
    }
    Evaluate(*view, &data, &scratch);
    EvaluateHessians(*view, &data);
    hessian.Assemble(*view, data, StopToken());
    plan.emplace(PlanOf(graph));
  }

  StepStatus TakeStep(const Factoring& factoring = {}, const StopToken& stop = {}) {
    return test::TakeStep(*view, hessian, data, factoring, &step, stop);
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
  ConstraintGraph graph;
  SapModel model;
  SapData data;
  SapStep step;
  SapScratch scratch;
  Hessian hessian;
  std::optional<IslandView> view;
  std::optional<EliminationPlan> plan;
};

// Differences of 80-bit gradients are good to this.
constexpr double kDifferenceError = 1e-7;

TEST(HessianTest, DenseStepIsThatOfTheDerivativeOfTheGradient) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Assembled a(RandomTreesInContact(seed, {.trees = 5, .contacts = 12, .max_dofs = 7}));
    ASSERT_LE(a.graph.velocity_start().back(), kDenseDofs);
    ASSERT_EQ(a.TakeStep(), StepStatus::kOk);
    EXPECT_LE(a.StepError(), kDifferenceError);
  }
}

// Trees with these degrees of freedom, each but the first in contact with it.
ProblemArrays TreesOnTheFirst(const std::vector<int>& dofs) {
  ProblemArrays arrays;
  for (const int n : dofs) {
    arrays.AddTree(Eigen::MatrixXd::Identity(n, n), Eigen::VectorXd::Zero(n));
  }
  for (int tree = 1; tree < static_cast<int>(dofs.size()); ++tree) {
    arrays.AddContact(0, Jacobian::Ones(3, dofs[0]), tree, Jacobian::Ones(3, dofs[tree]), {});
  }
  return arrays;
}

TEST(HessianTest, IslandsAreDenseUpToSixtyVelocitiesOrAroundALargeTree) {
  const auto dense = [](const std::vector<int>& dofs) {
    const ContactProblem problem = Checked(TreesOnTheFirst(dofs));
    ConstraintGraph graph;
    graph.Build(problem, false);
    EXPECT_EQ(graph.islands().count(), 1);
    return IsDense(graph, graph.island_ranges()[0]);
  };
  EXPECT_TRUE(dense({6, 6, 6, 6, 6, 6, 6, 6, 6, 6}));
  EXPECT_FALSE(dense({6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 1}));
  EXPECT_FALSE(dense({16, 16, 16, 16}));
  EXPECT_TRUE(dense({100, 12}));
  EXPECT_TRUE(dense({6, 100, 6}));
  EXPECT_FALSE(dense({100, 12, 1}));
  EXPECT_TRUE(dense({116, 12}));
  EXPECT_FALSE(dense({117, 12}));
}

TEST(HessianTest, DenseStepOfBranchedTreesIsThatOfTheDerivativeOfTheGradient) {
  for (const std::vector<int>& limbs : {std::vector{11}, {5, 3, 4}, {9, 8, 12, 7, 3, 10}}) {
    const RowMajor A = MassMatrix(Limbed(limbs));
    const int n = static_cast<int>(A.rows());
    Random random(n);
    ProblemArrays arrays;
    const int box =
        arrays.AddTree(RandomDynamicsMatrix(&random, 6, 1, 2), UniformVector(&random, 6, -1, 1));
    const int tree = arrays.AddTree(A, UniformVector(&random, n, -1, 1));
    const auto rows = [&](int columns) {
      return Jacobian(UniformVector(&random, 3 * columns, -1, 1).reshaped(3, columns));
    };
    // The box touches the trunk and the last link, the world a link between.
    const Jacobian all = rows(n);
    Jacobian trunk = Jacobian::Zero(3, n), middle = trunk;
    trunk.leftCols(4) = all.leftCols(4);
    middle.leftCols(6) = all.leftCols(6);
    middle.col(8) = all.col(8);
    Jacobian last = middle;
    last.col(8).setZero();
    last.rightCols(2) = all.rightCols(2);
    arrays.AddContact(box, rows(6), tree, trunk, {});
    arrays.AddContact(box, rows(6), tree, last, {});
    arrays.AddContact(tree, middle, {});
    Assembled a(arrays);
    ASSERT_TRUE(IsDense(a.graph, a.view->range()));
    ASSERT_EQ(a.TakeStep(), StepStatus::kOk);
    EXPECT_LE(a.StepError(), kDifferenceError) << n;
  }
}

TEST(HessianTest, SparseStepIsThatOfTheDerivativeOfTheGradient) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Assembled a(RandomTreesInContact(seed, {.trees = 30, .contacts = 80, .max_dofs = 12}));
    ASSERT_EQ(a.TakeStep({&*a.plan}), StepStatus::kOk);
    EXPECT_LE(a.StepError(), kDifferenceError);
  }
}

TEST(HessianTest, PreconditionedStepIsThatToItsTolerance) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Assembled a(WithBodiesAsTrees(RandomBodiesInContact(seed, 40, 100)));
    ASSERT_EQ(a.TakeStep({&*a.plan, true}), StepStatus::kOk);
    EXPECT_LE(a.StepError(), 1.1e-4);
  }
}

TEST(HessianTest, BlocksAndStepsAreTheSameBitsOnAnyNumberOfThreads) {
  const ProblemArrays arrays = WithBodiesAsTrees(RandomBodiesInContact(1, 200, 600));
  const auto step = [&](TaskArena* arena) {
    Assembled a(arrays, arena);
    EXPECT_EQ(a.TakeStep({&*a.plan, true}), StepStatus::kOk);
    return a.step.v;
  };
  const std::vector<double> alone = step(nullptr);
  for (const int threads : {1, 2, 3, 8}) {
    TaskArena arena(threads, Sharing::kAlways);
    EXPECT_EQ(step(&arena), alone) << threads << " threads";
  }
}

TEST(HessianTest, StepsStopOnRequest) {
  Assembled a(WithBodiesAsTrees(RandomBodiesInContact(1, 40, 100)));
  const std::atomic<bool> cancelled{true};
  const StopToken stop(&cancelled, StopToken::Clock::time_point::max());
  EXPECT_EQ(a.TakeStep({&*a.plan}, stop), StepStatus::kStopped);
  EXPECT_EQ(a.TakeStep({&*a.plan, true}, stop), StepStatus::kStopped);
}

// The same with constraints of every kind, and the dense problem.
struct EveryKind : PreparedProblem {
  explicit EveryKind(const ProblemArrays& arrays, TaskArena* arena = nullptr)
      : PreparedProblem(arrays, false), view(View(0, arena)), dense(arrays) {
    hessian.Resize(graph);
    Evaluate(view, &data, &scratch);
    EvaluateHessians(view, &data);
    hessian.Assemble(view, data, StopToken());
  }
  StepStatus TakeStep(const Factoring& factoring = {}) {
    return test::TakeStep(view, hessian, data, factoring, &step);
  }
  // H in the order and the unit of the problem, of the trees with constraints.
  MatrixL AssembledMatrix() const {
    const int size = problem.num_velocities();
    const double unit = view.constants().mass_unit;
    MatrixL H = MatrixL::Zero(size, size);
    for (int slot = 0; slot < graph.num_slots(); ++slot) {
      const int n = graph.dofs()[slot];
      const double* block = hessian.diagonal_block(graph, slot);
      for (int i = 0; i < n; ++i) {  // of a symmetric block the lower triangle
        for (int j = 0; j <= i; ++j) {
          const int row = StartInProblem(slot) + i, column = StartInProblem(slot) + j;
          H(row, column) = H(column, row) = unit * block[i * n + j];
        }
      }
    }
    for (const TreePair& pair : graph.pairs()) {
      const double* block = hessian.off_diagonal_block(pair);
      for (int i = 0; i < pair.dofs_low; ++i) {
        for (int j = 0; j < pair.dofs_high; ++j) {
          const int row = StartInProblem(pair.low) + i, column = StartInProblem(pair.high) + j;
          H(row, column) = H(column, row) = unit * block[i * pair.dofs_high + j];
        }
      }
    }
    return H;
  }
  // The rows of trees without constraints are 0.
  MatrixL WithConstraints(MatrixL H) const {
    for (int tree = 0; tree < problem.num_trees(); ++tree) {
      if (graph.islands().slot_of_tree()[tree] >= 0) continue;
      H.middleRows(problem.velocity_start()[tree], problem.dofs()[tree]).setZero();
    }
    return H;
  }
  // |D (H dv + grad l)| over |D grad l| with D = diag(H)^-1/2, H by differences.
  double StepError() const {
    const VectorL v = Velocity();
    const MatrixL H = dense.Hessian(v);
    VectorL dv = VectorL::Zero(v.size());
    for (int slot = 0; slot < graph.num_slots(); ++slot) {
      dv.segment(StartInProblem(slot), graph.dofs()[slot]) = Of(step.v, slot);
    }
    const VectorL D = H.diagonal().cwiseSqrt().cwiseInverse();
    const VectorL gradient = WithConstraints(dense.Gradient(v));
    const VectorL residual = WithConstraints(H) * dv + gradient;
    return static_cast<double>(D.cwiseProduct(residual).norm() / D.cwiseProduct(gradient).norm());
  }

  const IslandView view;
  const DenseProblem dense;
  Hessian hessian;
};

void ExpectNear(const MatrixL& H, const MatrixL& expected, double tolerance) {
  for (int i = 0; i < H.rows(); ++i) {
    for (int j = 0; j < H.cols(); ++j) {
      const long double size = std::sqrt(std::abs(expected(i, i) * expected(j, j)));
      EXPECT_NEAR(static_cast<double>(H(i, j)), static_cast<double>(expected(i, j)),
                  tolerance * static_cast<double>(size));
    }
  }
}

class EveryKindTest : public ::testing::TestWithParam<int> {
 protected:
  static ProblemArrays Problem() {
    return RandomConstraintsOfEveryKind(GetParam(), {.contacts = {.trees = 10, .max_dofs = 6}});
  }
  static ProblemArrays SmallProblem() {
    return RandomConstraintsOfEveryKind(
        GetParam(), {.contacts = {.trees = 6, .contacts = 15, .max_dofs = 6}, .rows = 8});
  }
};

TEST_P(EveryKindTest, BlocksAreThoseOfTheDenseProduct) {
  const EveryKind e(Problem());
  const double unit = e.view.constants().mass_unit;
  MatrixL expected = e.dense.A();
  ForPoolsOf(e.view, [&](auto pool) {
    for (int i = 0; i < e.view.range(pool).end; ++i) {
      const MatrixL J = DenseJacobian(e.dense, pool, e.view.layout(pool).order()[i]);
      if constexpr (IsQuadratic(pool)) {
        const auto G = e.model.pools[pool].laws.constant_hessians().At(i);
        expected += unit * J.transpose() * ToDense(G) * J;
      } else {
        expected += unit * J.transpose() * ToDense(e.data.pools[pool].G.At(i)) * J;
      }
    }
  });
  ExpectNear(e.AssembledMatrix(), e.WithConstraints(expected), 1e-13);
}

TEST_P(EveryKindTest, BlocksAreTheDifferencesOfTheGradient) {
  const EveryKind e(Problem());
  ExpectNear(e.AssembledMatrix(), e.WithConstraints(e.dense.Hessian(e.Velocity())), 1e-7);
}

TEST_P(EveryKindTest, SparseStepIsThatOfTheDerivativeOfTheGradient) {
  EveryKind e(Problem());
  const EliminationPlan plan = PlanOf(e.graph);
  ASSERT_EQ(e.TakeStep({&plan}), StepStatus::kOk);
  EXPECT_LE(e.StepError(), 1e-6);
}

TEST_P(EveryKindTest, PreconditionedStepIsThatToItsTolerance) {
  EveryKind e(Problem());
  const EliminationPlan plan = PlanOf(e.graph);
  ASSERT_EQ(e.TakeStep({&plan, true}), StepStatus::kOk);
  EXPECT_LE(e.StepError(), 1e-3);
}

TEST_P(EveryKindTest, DenseStepIsThatOfTheDerivativeOfTheGradient) {
  EveryKind e(SmallProblem());
  ASSERT_LE(e.graph.velocity_start().back(), kDenseDofs);
  ASSERT_EQ(e.TakeStep(), StepStatus::kOk);
  EXPECT_LE(e.StepError(), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(RandomProblems, EveryKindTest, ::testing::Range(0, 16));

TEST(EveryKindOnThreadsTest, BlocksAreTheSameBitsOnAnyNumberOfThreads) {
  const ProblemArrays arrays = RandomConstraintsOfEveryKind(
      3, {.contacts = {.trees = 40, .contacts = 200, .max_dofs = 5}, .rows = 100});
  const EveryKind alone(arrays);
  for (const int threads : {2, 3, 8}) {
    TaskArena arena(threads, Sharing::kAlways);
    const EveryKind shared(arrays, &arena);
    EXPECT_TRUE(std::ranges::equal(shared.hessian.diagonal(shared.view.range()),
                                   alone.hessian.diagonal(alone.view.range())));
    EXPECT_TRUE(std::ranges::equal(shared.hessian.off_diagonal(shared.view.range()),
                                   alone.hessian.off_diagonal(alone.view.range())));
  }
}

}  // namespace
}  // namespace sap::test
