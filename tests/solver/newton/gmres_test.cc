#include "solver/newton/gmres.h"

#include <gtest/gtest.h>

#include "tests/solver/prepared_problem.h"
#include "tests/support/random_problem.h"

namespace sap::test::gmres {
namespace {

// One island of 30 velocities, and a matrix that is not symmetric: A and something added to it.
struct System {
  static constexpr int kSize = 30;

  PreparedProblem prepared{LargeTree(kSize, 3)};
  Eigen::MatrixXd H;
  std::vector<double> b, x = std::vector<double>(kSize);
  KrylovVectors krylov;

  explicit System(double asymmetry) {
    Random random(7);
    const auto A = Eigen::Map<const Eigen::Matrix<double, kSize, kSize, Eigen::RowMajor>>(
        prepared.model.A(prepared.graph, 0));
    H = A;
    for (int i = 0; i < kSize; ++i) H.col(i) += asymmetry * UniformVector(&random, kSize, -1, 1);
    const Eigen::VectorXd right = UniformVector(&random, kSize, -1, 1);
    b.assign(right.begin(), right.end());
    krylov.Resize(prepared.graph);
  }
  // By the factor of A, as rounds have that of the symmetric part.
  StepStatus Solve(double residual) {
    const auto precondition = [&](const std::vector<double>& r, std::vector<double>* z) {
      *z = r;
      SolveTree(prepared.model.A_factor(prepared.graph, 0), kSize, z->data());
      return true;
    };
    const auto multiply = [&](const std::vector<double>& z, std::vector<double>* product) {
      Eigen::Map<Eigen::VectorXd>(product->data(), kSize) =
          H * Eigen::Map<const Eigen::VectorXd>(z.data(), kSize);
      ++products;
      return products != stopped_at;
    };
    return SolveByGmres(prepared.View(0), residual, b, precondition, multiply, &krylov, &x);
  }
  double RelativeResidual() const {
    const auto D = Eigen::Map<const Eigen::VectorXd>(prepared.model.D().data(), kSize);
    const auto right = Eigen::Map<const Eigen::VectorXd>(b.data(), kSize);
    const Eigen::VectorXd r = right - H * Eigen::Map<const Eigen::VectorXd>(x.data(), kSize);
    return D.cwiseProduct(r).norm() / D.cwiseProduct(right).norm();
  }

  int products{0}, stopped_at{-1};
};

TEST(GmresTest, MeetsTheResidualThatItIsAskedFor) {
  for (const double residual : {1e-2, 1e-4, 1e-10}) {
    System system(0.02);
    ASSERT_EQ(system.Solve(residual), StepStatus::kOk);
    EXPECT_LT(system.products, kMaxGmresProducts);
    EXPECT_LE(system.RelativeResidual(), 1.01 * residual);
  }
}

TEST(GmresTest, AtTheLimitOfProductsItHasTheBestOfTheirSpace) {
  System system(0.2);
  ASSERT_EQ(system.Solve(1e-10), StepStatus::kOk);
  EXPECT_EQ(system.products, kMaxGmresProducts);
  EXPECT_LT(system.RelativeResidual(), 1e-4);
}

TEST(GmresTest, ExactPreconditionerTakesOneProduct) {
  System system(0);
  ASSERT_EQ(system.Solve(1e-8), StepStatus::kOk);
  EXPECT_EQ(system.products, 1);
}

TEST(GmresTest, ALooserResidualTakesFewerProducts) {
  System loose(0.2), tight(0.2);
  loose.Solve(1e-2);
  tight.Solve(1e-8);
  EXPECT_LT(loose.products, tight.products);
}

TEST(GmresTest, SaysThatItWasStopped) {
  System system(0.2);
  system.stopped_at = 2;
  EXPECT_EQ(system.Solve(1e-8), StepStatus::kStopped);
}

TEST(GmresTest, ARightSideOfZeroHasTheAnswerZero) {
  System system(0.2);
  std::ranges::fill(system.b, 0.0);
  EXPECT_EQ(system.Solve(1e-8), StepStatus::kOk);
  EXPECT_EQ(system.x, std::vector<double>(System::kSize, 0.0));
}

}  // namespace
}  // namespace sap::test::gmres
