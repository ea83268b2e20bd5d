#include <gtest/gtest.h>

#include <cmath>

#include "tests/solver/dense_vectors.h"
#include "tests/solver/prepared_problem.h"
#include "tests/support/random_constraints.h"

namespace sap::test {
namespace {

// How large the terms are that impulses sum, with the largest 1/R of a constraint.
long double ImpulseSize(const DenseContact& c, const VectorL& v_c) {
  if (c.law != ContactLaw::kSap) {
    const long double z = v_c.head(3).cwiseAbs().sum() * (1 + c.mu[0]);
    return c.dt * (std::abs(c.f_e) + c.dt * c.k * z) * (1 + c.d * z) + c.n_0;
  }
  const VectorL e = c.mu.cwiseProduct(v_c.cwiseAbs() + c.v_hat.cwiseAbs());
  const long double rho = c.R_t * c.mu[0] * c.mu[0];
  return e.sum() / (rho > 0 ? std::min(rho, c.R_n) : c.R_n) + c.c;
}
long double ImpulseSize(const DenseRow& row, const VectorL& v_c) {
  return (std::abs(row.v_hat) + std::abs(v_c[0])) / row.R + std::abs(row.Impulse(v_c[0]));
}

class GatherConstraintsTest : public ::testing::TestWithParam<int> {
 protected:
  GatherConstraintsTest() : arrays_(Problem()), dense_(arrays_), p_(arrays_, GetParam() % 2 == 0) {}

  static ProblemArrays Problem() {
    ProblemArrays arrays = RandomConstraintsOfEveryKind(
        GetParam(), {.contacts = {.trees = 10, .contacts = 40, .max_dofs = 7}, .rows = 30});
    if (GetParam() % 3 == 1) arrays.regularization.rule = DelassusRule::kDiagonal;
    if (GetParam() % 5 == 1) arrays.regularization.row_beta = 3;
    if (GetParam() % 5 == 2) arrays.regularization.stiction_speed = 1e-2;
    return arrays;
  }
  // Calls body(view, pool, place, number in the problem) for every constraint.
  template <typename Body>
  void ForConstraints(Body&& body) const {
    for (int island = 0; island < p_.graph.islands().count(); ++island) {
      const IslandView view = p_.View(island);
      ForPoolsOf(view, [&](auto pool) {
        const PoolRange range = view.range(pool);
        for (int i = range.begin; i < range.end; ++i) {
          body(view, pool, i, view.layout(pool).order()[i]);
        }
      });
    }
  }

  const ProblemArrays arrays_;
  const DenseProblem dense_;
  PreparedProblem p_;
};

TEST_P(GatherConstraintsTest, EveryConstraintIsGatheredOnceAndRepresentable) {
  std::vector<int> contacts(p_.problem.num_contacts(), 0), rows(p_.problem.num_rows(), 0);
  ForConstraints([&](const IslandView&, auto pool, int, int number) {
    ++(pool < kNumContactKinds ? contacts : rows)[number];
  });
  EXPECT_EQ(contacts, std::vector<int>(contacts.size(), 1));
  EXPECT_EQ(rows, std::vector<int>(rows.size(), 1));
  for (int island = 0; island < p_.graph.islands().count(); ++island) {
    EXPECT_TRUE(p_.model.constants(island).representable);
  }
}

// Jacobians, by the velocities of constraints.
TEST_P(GatherConstraintsTest, VelocitiesAreThoseOfTheDenseJacobians) {
  const VectorL v = p_.Velocity();
  for (int island = 0; island < p_.graph.islands().count(); ++island) {
    ConstraintVelocities(p_.View(island), p_.data.v, StopToken(), &p_.data.pools);
  }
  ForConstraints([&](const IslandView&, auto pool, int i, int number) {
    const VectorL expected = DenseJacobian(dense_, pool, number) * v;
    VectorL v_c = ToDense(p_.data.pools[pool].v_c.At(i));
    for (int row = 0; row < v_c.size(); ++row) {
      // An axis that no row of the pool stands for has no friction.
      if (NumRows(pool.kind()) == 4 && (row == 3 || row == 4)) continue;
      if (NumRows(pool.kind()) == 3 && row >= 3) continue;
      EXPECT_NEAR(v_c[row], static_cast<double>(expected[row]), 1e-13) << "row " << row;
    }
  });
}

// R, v_hat, w, bounds, coefficients and eps of every kind, by the impulses and costs at random
// velocities: each of them changes those.
TEST_P(GatherConstraintsTest, LawsAreThoseOfTheSchema) {
  constexpr double kTolerance = 1e-12;
  Random random(GetParam());
  ForConstraints([&](const IslandView& view, auto pool, int i, int number) {
    auto& state = p_.data.pools[pool];
    const double unit = view.constants().mass_unit;
    for (int sample = 0; sample < 8; ++sample) {
      VectorL v_c = DenseTarget(dense_, pool, number);
      for (long double& component : v_c) {
        component += LogUniform(&random, 1e-4, 1) * Uniform(&random, -1, 1);
      }
      auto relative = state.v_c.At(i);  // less the velocity of the surface
      FromDense(v_c - DenseOffset(dense_, pool, number), &relative);
      state.v_c.Set(i, relative);
      const CostSum cost = view.model.pools[pool].laws.Impulses(i, i + 1, state.v_c, &state.gamma);
      const VectorL expected = DenseImpulse(dense_, pool, number, v_c);
      long double size;
      if constexpr (pool() < kNumContactKinds) {
        size = ImpulseSize(dense_.contacts()[number], v_c);
      } else {
        size = ImpulseSize(dense_.rows()[number], v_c);
      }
      const VectorL gamma = unit * ToDense(state.gamma.At(i));
      for (int row = 0; row < gamma.size(); ++row) {
        EXPECT_NEAR(static_cast<double>(gamma[row]), static_cast<double>(expected[row]),
                    kTolerance * static_cast<double>(size))
            << "kind " << pool << ", row " << row;
      }
      const long double speed =
          v_c.cwiseAbs().sum() + DenseTarget(dense_, pool, number).cwiseAbs().sum();
      EXPECT_NEAR(unit * cost.value, static_cast<double>(DenseCost(dense_, pool, number, v_c)),
                  kTolerance * static_cast<double>(size * speed))
          << "kind " << pool;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(RandomProblems, GatherConstraintsTest, ::testing::Range(0, 30));

}  // namespace
}  // namespace sap::test
