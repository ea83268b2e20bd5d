#include "solver/problem/problem_layout.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/support/random_constraints.h"

namespace sap {
namespace {

using test::ProblemArrays;

// Trees with contacts and rows of every kind, and bodies with contacts.
ProblemArrays Everything(uint64_t seed) {
  ProblemArrays arrays = test::RandomConstraintsOfEveryKind(seed);
  const ProblemArrays bodies = test::RandomBodiesInContact(seed, 5, 8);
  arrays.bodies = bodies.bodies;
  arrays.body_contacts = bodies.body_contacts;
  return arrays;
}

TEST(ProblemLayoutTest, IsThatOfTheCheckedProblem) {
  ProblemLayout layout;  // the same object again and again
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const ProblemArrays arrays = Everything(seed);
    const ContactProblem problem = Checked(arrays);
    ASSERT_TRUE(layout.Read(arrays.View()));
    const auto equal = [](const auto& list, const auto& expected) {
      return std::ranges::equal(list, expected);
    };
    // Bodies have dense matrices and Jacobians in the problem too, which are not in the arrays.
    const auto begins = [&](const auto& list, size_t size, const auto& all) {
      return list.size() == size && equal(list, std::span(all).first(size));
    };
    EXPECT_TRUE(equal(layout.dofs, problem.dofs()));
    EXPECT_TRUE(equal(layout.velocity_start, problem.velocity_start()));
    EXPECT_TRUE(begins(layout.matrix_start, arrays.trees.dofs.size() + 1, problem.matrix_start()));
    EXPECT_TRUE(equal(layout.contact_start, problem.contact_start()));
    EXPECT_TRUE(equal(layout.contact_trees, problem.contact_trees()));
    const size_t given = arrays.contacts.tree_a.size();
    EXPECT_TRUE(begins(layout.jacobian_start, given + 1, problem.jacobian_start()));
    EXPECT_TRUE(begins(layout.angular_start, static_cast<size_t>(layout.jacobian_angular) + 1,
                       problem.angular_start()));
    EXPECT_EQ(layout.angular_start.back(), std::ssize(arrays.contacts.angular_jacobian));
    EXPECT_TRUE(equal(layout.row_start, problem.row_start()));
    EXPECT_TRUE(equal(layout.row_entries, problem.row_entries()));
    EXPECT_EQ(layout.articulated_trees, static_cast<int>(arrays.trees.dofs.size()));
    EXPECT_EQ(layout.jacobian_contacts, static_cast<int>(given));
    EXPECT_EQ(layout.num_trees(), problem.num_trees());
    EXPECT_EQ(layout.num_contacts(), problem.num_contacts());
    EXPECT_EQ(layout.num_rows(), problem.num_rows());
    EXPECT_EQ(layout.num_angular, problem.num_angular());
  }
}

TEST(ProblemLayoutTest, WrongCountsIndicesAndNamesAreRefused) {
  const std::function<void(ProblemArrays*)> faults[] = {
      [](ProblemArrays* p) { p->trees.dofs[1] = 0; },
      [](ProblemArrays* p) { p->trees.dofs[1] = 1u << 31; },
      [](ProblemArrays* p) { p->trees.dynamics_matrix.pop_back(); },
      [](ProblemArrays* p) { p->trees.free_motion_velocity.push_back(0); },
      [](ProblemArrays* p) { p->trees.guess_velocity.pop_back(); },
      [](ProblemArrays* p) {
        p->trees.tree_id = {1, 2};
      },
      [](ProblemArrays* p) {
        p->bodies.body_id = {1, 2, 3, 2, 5};
      },
      [](ProblemArrays* p) { p->bodies.inertia.pop_back(); },
      [](ProblemArrays* p) { p->bodies.guess_velocity = {1}; },
      [](ProblemArrays* p) { p->trees.initial_velocity = {1}; },
      [](ProblemArrays* p) { p->bodies.initial_velocity = {1}; },
      [](ProblemArrays* p) { p->contacts.tree_a[0] = -1; },
      [](ProblemArrays* p) { p->contacts.tree_a[0] = 1000; },
      [](ProblemArrays* p) { p->contacts.tree_b[0] = -2; },
      [](ProblemArrays* p) { p->contacts.tree_b.pop_back(); },
      [](ProblemArrays* p) { p->contacts.jacobian.pop_back(); },
      [](ProblemArrays* p) { p->contacts.angular_jacobian.push_back(0); },
      [](ProblemArrays* p) { p->contacts.law.torsional_friction.pop_back(); },
      [](ProblemArrays* p) { p->contacts.law.rolling_friction.pop_back(); },
      [](ProblemArrays* p) { p->contacts.law.law.pop_back(); },
      [](ProblemArrays* p) { p->contacts.law.adhesion.pop_back(); },
      [](ProblemArrays* p) { p->contacts.law.target_angular_velocity = {1}; },
      [](ProblemArrays* p) { p->contacts.law.guess_impulse = {1}; },
      [](ProblemArrays* p) { p->contacts.law.guess_angular_impulse = {1}; },
      [](ProblemArrays* p) { p->body_contacts.law.guess_impulse = {1}; },
      [](ProblemArrays* p) { p->body_contacts.law.guess_angular_impulse = {1}; },
      [](ProblemArrays* p) { p->rows.guess_impulse = {1}; },
      [](ProblemArrays* p) { p->body_contacts.body_a[2] = 5; },
      [](ProblemArrays* p) { p->body_contacts.body_b[2] = 5; },
      [](ProblemArrays* p) { p->body_contacts.point.pop_back(); },
      [](ProblemArrays* p) { p->body_contacts.law.hunt_crossley.elastic_force = {1}; },
      [](ProblemArrays* p) { p->rows.entries[0] = 0; },
      [](ProblemArrays* p) { p->rows.velocity_index[0] = 1u << 31; },
      [](ProblemArrays* p) { p->rows.coefficient.pop_back(); },
      [](ProblemArrays* p) { p->rows.stiffness.pop_back(); },
  };
  ProblemLayout layout;
  for (size_t i = 0; i < std::size(faults); ++i) {
    ProblemArrays arrays = Everything(3);
    ASSERT_TRUE(layout.Read(arrays.View()));
    faults[i](&arrays);
    EXPECT_FALSE(layout.Read(arrays.View())) << "fault " << i;
  }
  EXPECT_TRUE(layout.Read(Everything(4).View()));
}

TEST(ProblemLayoutTest, ValuesAreNotLookedAt) {
  ProblemArrays arrays = Everything(3);
  arrays.time_step = -1;
  arrays.bodies.mass[0] = -1;
  arrays.contacts.law.friction[0] = std::nan("");
  EXPECT_TRUE(ProblemLayout().Read(arrays.View()));
  EXPECT_TRUE(ProblemLayout().Read(ProblemArrays().View()));
}

}  // namespace
}  // namespace sap
