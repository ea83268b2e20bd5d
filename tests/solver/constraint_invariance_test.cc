// Invariances of answers with rows and contacts of every law: threads, scale, order, and what was
// solved before.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "solver/solve.h"
#include "tests/support/constrained_problem.h"
#include "tests/support/golden_problem.h"
#include "tests/support/random_problem.h"
#include "tests/support/same_bits.h"
#include "tests/support/scaled_problem.h"

namespace sap::test {
namespace {

class ConstraintInvarianceTest : public testing::TestWithParam<std::string> {
 protected:
  const ProblemArrays arrays_ = LoadGolden(GetParam(), GoldenSet::kConstraints).arrays;
};

// The accelerated method is that of golden_threads_test.cc.
TEST_P(ConstraintInvarianceTest, BitsOfOtherMethodsDoNotDependOnThreads) {
  const ContactProblem problem = Checked(arrays_);
  for (const NewtonMethod newton : {NewtonMethod::kPlain, NewtonMethod::kGaussSeidel}) {
    const SolverOptions options{.max_iterations = 30, .newton = newton};
    const ContactSolution alone = Solve(problem, options);
    for (const int threads : {1, 2, 4}) {
      TaskArena arena(threads, Sharing::kAlways);
      ContactSolution solution;
      ASSERT_TRUE(Solver(&arena).Solve(problem, options, StopToken(), &solution));
      ExpectSameBits(solution, alone);
    }
  }
}

// The same trees and contacts under other rows, and under none.
TEST_P(ConstraintInvarianceTest, BitsDoNotDependOnWhatWasSolvedBefore) {
  const ContactProblem problem = Checked(arrays_);
  const ContactSolution expected = Solve(problem);
  ProblemArrays without_rows = arrays_;
  without_rows.rows = {};
  ProblemArrays other_rows = without_rows;
  const uint32_t last = static_cast<uint32_t>(problem.num_velocities()) - 1;
  for (uint32_t velocity = 0; velocity < last; velocity += 3) {
    other_rows.AddRow({velocity, last}, {1, -0.5});
  }
  ProblemArrays opposite_rows = arrays_;
  for (double& coefficient : opposite_rows.rows.coefficient) coefficient = -coefficient;
  Solver solver(nullptr);
  ContactSolution solution;
  for (const ProblemArrays* other : {&without_rows, &other_rows, &opposite_rows}) {
    ASSERT_TRUE(solver.Solve(Checked(*other), {}, StopToken(), &solution));
    ExpectSameBits(solution, Solve(Checked(*other)));
    ASSERT_TRUE(solver.Solve(problem, {}, StopToken(), &solution));
    ExpectSameBits(solution, expected);
  }
}

TEST_P(ConstraintInvarianceTest, MassesTimesAPowerOfTwoGiveTheSameBits) {
  for (const NewtonMethod newton : {NewtonMethod::kPlain, NewtonMethod::kAccelerated}) {
    const SolverOptions options{.newton = newton};
    const ContactSolution first = Solve(Checked(arrays_), options);
    for (const int exponent : {20, -20, 1, -7}) {
      const double factor = std::ldexp(1.0, exponent);
      ContactSolution scaled = Solve(Checked(Scaled(arrays_, factor)), options);
      EXPECT_TRUE(SameBits(scaled.velocity, first.velocity)) << exponent;
      EXPECT_EQ(Iterations(scaled), Iterations(first)) << exponent;
      for (auto* impulses : {&scaled.impulse, &scaled.angular_impulse, &scaled.row_impulse}) {
        Scale(impulses, 1 / factor);
      }
      EXPECT_TRUE(SameBits(scaled.impulse, first.impulse)) << exponent;
      EXPECT_TRUE(SameBits(scaled.angular_impulse, first.angular_impulse)) << exponent;
      EXPECT_TRUE(SameBits(scaled.row_impulse, first.row_impulse)) << exponent;
    }
  }
}

std::vector<int> Shuffled(size_t count, Random* random) {
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), *random);
  return order;
}

// Parts of an array in another order; part i has sizes[i] values. An empty array stays empty.
template <typename Value>
void Reorder(const std::vector<int>& order, const std::vector<size_t>& sizes,
             std::vector<Value>* values) {
  if (values->empty()) return;
  std::vector<size_t> starts{0};
  for (const size_t size : sizes) starts.push_back(starts.back() + size);
  ASSERT_EQ(values->size(), starts.back());
  std::vector<Value> reordered;
  for (const int part : order) {
    reordered.insert(reordered.end(), values->begin() + starts[part],
                     values->begin() + starts[part] + sizes[part]);
  }
  *values = reordered;
}

std::vector<size_t> Times(size_t factor, std::vector<size_t> sizes) {
  for (size_t& size : sizes) size *= factor;
  return sizes;
}

// 1 for contacts with angular axes, else 0.
std::vector<size_t> AngularAxes(const LawArrays& law) {
  std::vector<size_t> angular(law.friction.size(), 0);
  for (size_t i = 0; i < angular.size(); ++i) {
    const bool rolling = !law.rolling_friction.empty() &&
                         law.rolling_friction[2 * i] + law.rolling_friction[2 * i + 1] > 0;
    const bool torsional = !law.torsional_friction.empty() && law.torsional_friction[i] > 0;
    angular[i] = rolling || torsional ? 1 : 0;
  }
  return angular;
}

void ReorderLaw(const std::vector<int>& order, LawArrays* law) {
  const std::vector<size_t> one(order.size(), 1);
  const std::vector<size_t> angular = AngularAxes(*law);
  Reorder(order, Times(3, angular), &law->target_angular_velocity);
  for (auto* values :
       {&law->signed_distance, &law->stiffness, &law->relaxation_time, &law->friction,
        &law->regularization_t, &law->regularization_n, &law->delassus_estimate, &law->friction_2,
        &law->torsional_friction, &law->adhesion, &law->hunt_crossley.elastic_force,
        &law->hunt_crossley.dissipation, &law->hunt_crossley.lagged_normal_impulse}) {
    Reorder(order, one, values);
  }
  Reorder(order, one, &law->law);
  Reorder(order, Times(2, one), &law->rolling_friction);
  for (auto* values : {&law->surface_velocity, &law->target_velocity}) {
    Reorder(order, Times(3, one), values);
  }
}

void ShuffleContacts(Random* random, ProblemArrays* arrays) {
  ProblemArrays::Contacts& contacts = arrays->contacts;
  std::vector<uint32_t> dofs = arrays->trees.dofs;
  dofs.resize(arrays->num_trees(), 6);
  std::vector<size_t> block, angular_block = AngularAxes(contacts.law);
  for (size_t i = 0; i < contacts.tree_a.size(); ++i) {
    const int b = contacts.tree_b[i];
    block.push_back(3 * (dofs[contacts.tree_a[i]] + (b < 0 ? 0 : dofs[b])));
    angular_block[i] *= block.back();
  }
  const std::vector<int> order = Shuffled(block.size(), random);
  const std::vector<size_t> one(order.size(), 1);
  Reorder(order, one, &contacts.tree_a);
  Reorder(order, one, &contacts.tree_b);
  Reorder(order, block, &contacts.jacobian);
  Reorder(order, angular_block, &contacts.angular_jacobian);
  ReorderLaw(order, &contacts.law);
}

void ShuffleBodyContacts(Random* random, ProblemArrays* arrays) {
  ProblemArrays::BodyContacts& contacts = arrays->body_contacts;
  const std::vector<int> order = Shuffled(contacts.body_a.size(), random);
  const std::vector<size_t> one(order.size(), 1);
  Reorder(order, one, &contacts.body_a);
  Reorder(order, one, &contacts.body_b);
  for (auto* values : {&contacts.point, &contacts.normal, &contacts.tangent}) {
    Reorder(order, Times(3, one), values);
  }
  ReorderLaw(order, &contacts.law);
}

void ShuffleRows(Random* random, ProblemArrays* arrays) {
  ProblemArrays::Rows& rows = arrays->rows;
  const std::vector<size_t> entries(rows.entries.begin(), rows.entries.end());
  const std::vector<int> order = Shuffled(entries.size(), random);
  const std::vector<size_t> one(order.size(), 1);
  Reorder(order, entries, &rows.velocity_index);
  Reorder(order, entries, &rows.coefficient);
  Reorder(order, one, &rows.entries);
  for (auto* values :
       {&rows.position_error, &rows.velocity_offset, &rows.stiffness, &rows.relaxation_time,
        &rows.force_lower, &rows.force_upper, &rows.regularization, &rows.target_velocity,
        &rows.delassus_estimate, &rows.slip_parameter, &rows.force_offset}) {
    Reorder(order, one, values);
  }
}

TEST_P(ConstraintInvarianceTest, ShuffledRowsAndContactsGiveTheSameAnswer) {
  Random random(9);
  ProblemArrays shuffled = arrays_;
  ShuffleContacts(&random, &shuffled);
  ShuffleBodyContacts(&random, &shuffled);
  ShuffleRows(&random, &shuffled);
  const SolverOptions options{.relative_tolerance = 1e-10};
  const ContactSolution first = Solve(Checked(arrays_), options);
  const ContactSolution second = Solve(Checked(shuffled), options);
  const ConstrainedProblem exact(arrays_);
  const VectorL v = ToVectorL(first.velocity);
  const long double scale = std::max(exact.NormA(v), exact.NormA(exact.v_star()));
  EXPECT_LE(exact.NormA(ToVectorL(second.velocity) - v), 1e-9L * scale);
}

INSTANTIATE_TEST_SUITE_P(Golden, ConstraintInvarianceTest,
                         testing::ValuesIn(GoldenNames("", GoldenSet::kConstraints)), NameOfGolden);

}  // namespace
}  // namespace sap::test
