#include "solver/pools/row_jacobians.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "solver/pools/law_array.h"
#include "tests/support/primal_problem.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

constexpr ConstraintKind kKind = ConstraintKind::kBilateralRow;

// Rows of any density over trees of one, six, three and six degrees of freedom.
ProblemArrays RandomRows(Random* random) {
  ProblemArrays arrays;
  int velocities = 0;
  for (const int dofs : {1, 6, 3, 6}) {
    arrays.AddTree(RandomDynamicsMatrix(random, dofs, 1, 2), UniformVector(random, dofs, -1, 1));
    velocities += dofs;
  }
  for (int row = 0; row < 40; ++row) {
    const double density = Uniform(random, 0.2, 1);
    std::vector<uint32_t> index;
    std::vector<double> coefficients;
    for (int i = 0; i < velocities; ++i) {
      if (Uniform(random, 0, 1) > density && i != row % velocities) continue;
      index.push_back(i);
      coefficients.push_back(Uniform(random, -1, 1));
    }
    arrays.AddRow(index, coefficients);
  }
  return arrays;
}

// Products against loops over entries, one after the other.
class RowJacobiansTest : public ::testing::Test {
 protected:
  RowJacobiansTest() : problem_(Checked(RandomRows(&random_))) {
    graph_.Build(problem_, true);
    jacobians_.Resize(layout());
    rows_ = layout().num_rows();
    gamma_.resize(rows_);
    errors_.resize(rows_);
    G_.resize(rows_);
    for (int row = 0; row < rows_; ++row) {
      const int64_t from = problem_.row_start()[layout().order()[row]];
      jacobians_.SetRow(layout(), row, problem_.row_coefficients().data() + from);
      gamma_.Set(row, {Uniform(&random_, -1, 1)});
      errors_.Set(row, {Uniform(&random_, 0, 1)});
      G_.Set(row, {{row % 5 == 0 ? 0 : Uniform(&random_, 0, 1)}});
    }
  }

  const RowLayout& layout() const { return graph_.rows(kKind); }
  // Calls body(dof, coefficient) for the entries of a part.
  template <typename Body>
  void ForEntries(const RowPart& part, Body&& body) const {
    for (int64_t e = part.entry_begin; e < part.entry_end; ++e) {
      body(layout().dof()[e], jacobians_.at(e));
    }
  }
  // Calls body(slot, dofs) for the trees, dofs as loops over trees have it.
  template <typename Body>
  void ForTrees(Body&& body) const {
    for (int slot = 0; slot < graph_.num_slots(); ++slot) {
      ForTreeSize(graph_.dofs()[slot], [&](auto n) { body(slot, n); });
    }
  }
  std::vector<double> RandomNumbers(int count) {
    std::vector<double> numbers(count);
    for (double& number : numbers) number = Uniform(&random_, 0, 1);
    return numbers;
  }

  Random random_{7};
  const ContactProblem problem_;
  ConstraintGraph graph_;
  RowJacobians jacobians_;
  int rows_;
  ConstraintVectors<1> gamma_, errors_;
  ConstraintArray<LawMatrix<1>> G_;
};

TEST_F(RowJacobiansTest, SomePartsOfBodiesAreFullAndNoOthers) {
  int full = 0;
  for (const RowPart& part : layout().parts()) {
    const bool is_full = graph_.dofs()[part.slot] == 6 && part.entry_end - part.entry_begin >= 4;
    EXPECT_EQ(part.is_full(), is_full);
    if (!is_full) continue;
    EXPECT_EQ(part.full, full);
    ++full;
  }
  EXPECT_EQ(layout().num_full_parts(), full);
  EXPECT_GT(full, 0);
  EXPECT_LT(full, static_cast<int>(layout().parts().size()));
}

TEST_F(RowJacobiansTest, VelocitiesHaveTheBitsOfALoopOverEntries) {
  const std::vector<double> u = RandomNumbers(problem_.num_velocities());
  ConstraintVectors<1> v_c;
  v_c.resize(rows_);
  jacobians_.Velocities(graph_, layout(), 0, rows_, u, &v_c);
  for (int row = 0; row < rows_; ++row) {
    double sum = 0;
    for (const RowPart& part : layout().parts_of_row(row)) {
      const double* of_tree = u.data() + graph_.velocity_start()[part.slot];
      double of_part = 0;
      ForEntries(part, [&](int i, double J) { of_part += J * of_tree[i]; });
      sum += of_part;
    }
    EXPECT_EQ(v_c.At(row)[0], sum);
  }
}

TEST_F(RowJacobiansTest, ImpulsesAndTheirErrorsHaveTheBitsOfALoopOverEntries) {
  constexpr double kRoundoff = 0.25;
  ForTrees([&](int slot, auto n) {
    const std::vector<double> before = RandomNumbers(n);
    std::vector<double> f = before, expected_f = before;
    std::vector<double> error = before, expected_error = before;
    jacobians_.AddImpulse(layout(), layout().parts_of_slot(slot), n, gamma_, f.data());
    jacobians_.AddImpulseSizes(layout(), slot, n, errors_, kRoundoff, gamma_, error.data());
    for (const int p : layout().parts_of_slot(slot)) {
      const RowPart& part = layout().parts()[p];
      const double gamma = gamma_.At(part.row)[0];
      const double size = errors_.At(part.row)[0] + kRoundoff * std::abs(gamma);
      ForEntries(part, [&](int i, double J) {
        expected_f[i] += J * gamma;
        expected_error[i] += std::abs(J) * size;
      });
    }
    EXPECT_EQ(f, expected_f);
    EXPECT_EQ(error, expected_error);
  });
}

TEST_F(RowJacobiansTest, BlocksOfTheHessianHaveTheBitsOfALoopOverEntries) {
  const auto add = [&](const RowPart& low, const RowPart& high, int columns,
                       std::vector<double>* H) {
    const double G = G_.At(low.row)(0, 0);
    ForEntries(low, [&](int i, double J_i) {
      const double G_J_i = G * J_i;
      ForEntries(high, [&](int j, double J_j) { (*H)[i * columns + j] += G_J_i * J_j; });
    });
  };
  ForTrees([&](int slot, auto n) {
    std::vector<double> H = RandomNumbers(n * n), expected = H;
    jacobians_.AddDiagonalBlock(layout(), layout().parts_of_slot(slot), n, G_, StopToken(),
                                H.data());
    for (const int p : layout().parts_of_slot(slot)) {
      add(layout().parts()[p], layout().parts()[p], n, &expected);
    }
    EXPECT_EQ(H, expected);
  });
  for (int pair = 0; pair < static_cast<int>(graph_.pairs().size()); ++pair) {
    const TreePair& trees = graph_.pairs()[pair];
    std::vector<double> H = RandomNumbers(trees.dofs_low * trees.dofs_high), expected = H;
    jacobians_.AddBlock(graph_, kKind, pair, trees.dofs_low, trees.dofs_high, G_, H.data());
    const IndexRange range = graph_.couplings(kKind, pair);
    for (int c = range.begin; c < range.end; ++c) {
      const PartCoupling& coupling = layout().couplings()[c];
      add(layout().parts()[coupling.part_low], layout().parts()[coupling.part_high],
          trees.dofs_high, &expected);
    }
    EXPECT_EQ(H, expected);
  }
}

}  // namespace
}  // namespace sap::test
