#include "client/c/drake/contact_jacobian.h"

#include <gtest/gtest.h>

#include "tests/client/c/drake/sample_plant.h"

namespace sap::drake {
namespace {

class ContactJacobianTest : public testing::Test {
 protected:
  static constexpr int kContacts = 4;

  ContactJacobian J() const { return {kContacts, tree_a_.data(), tree_b_.data(), values_.data()}; }
  Eigen::MatrixXd Dense() const { return DenseJacobian(plant_, tree_a_, tree_b_, values_.data()); }

  SamplePlant plant_;
  Numbers numbers_{2};
  std::vector<int32_t> tree_a_ = {0, 1, 1, 2};
  std::vector<int32_t> tree_b_ = {-1, 0, -1, 1};
  Eigen::VectorXd values_ = numbers_.Vector(3 * (6 + 9 + 3 + 9));
};

TEST_F(ContactJacobianTest, VelocityIsTheProductWithTheDenseMatrix) {
  const Eigen::VectorXd v = numbers_.Vector(SamplePlant::kProblemVelocities);
  Eigen::VectorXd result(3 * kContacts);
  WriteContactVelocity(plant_.View(), J(), v.data(), result.data());
  EXPECT_LT((result - Dense() * v).norm(), 1e-13);
}

TEST_F(ContactJacobianTest, GeneralizedImpulseIsTheProductWithTheTranspose) {
  const Eigen::VectorXd gamma = numbers_.Vector(3 * kContacts);
  Eigen::VectorXd result(SamplePlant::kProblemVelocities);
  WriteGeneralizedImpulse(plant_.View(), J(), gamma.data(), result.data());
  EXPECT_LT((result - Dense().transpose() * gamma).norm(), 1e-13);
}

}  // namespace
}  // namespace sap::drake
