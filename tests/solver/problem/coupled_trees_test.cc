// Coupled trees and contacts by parts: what is refused, and what the factors of A are.
#include "solver/problem/coupled_trees.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "tests/support/random_problem.h"
#include "tests/support/tree_parts.h"

namespace sap::test {
namespace {

// Trees of 3, 3, 2 and 6 dofs, of which the first three are coupled, and a body; one contact of all
// but the first tree, one of the body alone.
ProblemArrays CoupledProblem() {
  Random random(3);
  ProblemArrays whole;
  whole.AddTree(RandomDynamicsMatrix(&random, 8, 1, 2), UniformVector(&random, 8, -1, 1));
  whole.AddTree(RandomDynamicsMatrix(&random, 6, 1, 2), UniformVector(&random, 6, -1, 1));
  ProblemArrays arrays = InParts(whole, {3, 3, 2, 6});
  arrays.AddBody(2, {1, 1, 1}, {0, 0, 1}, UniformVector(&random, 6, -1, 1));
  arrays.contacts.parts = {4, 1};
  arrays.contacts.part_tree = {3, 1, 4, 2, 4};
  for (int i = 0; i < 3 * (6 + 3 + 6 + 2 + 6); ++i) {
    arrays.contacts.jacobian.push_back(Uniform(&random, -1, 1));
  }
  for (std::vector<double>* values :
       {&arrays.contacts.law.signed_distance, &arrays.contacts.law.stiffness,
        &arrays.contacts.law.relaxation_time, &arrays.contacts.law.friction}) {
    values->assign(2, 0.5);
  }
  return arrays;
}

std::string RefusalAfter(const std::function<void(ProblemArrays*)>& change,
                         const ProblemLimits& limits = {}) {
  ProblemArrays arrays = CoupledProblem();
  change(&arrays);
  return Complaint(arrays, limits);
}

TEST(CoupledTreesTest, PairsOutOfRangeOrOrderAreRefused) {
  EXPECT_EQ(RefusalAfter([](ProblemArrays*) {}), "");
  EXPECT_EQ(RefusalAfter([](ProblemArrays* a) { a->trees.coupled_a[2] = 4; }),
            "trees.coupled_a[2] is 4; it must be in [0, 4)");
  EXPECT_EQ(RefusalAfter([](ProblemArrays* a) { a->trees.coupled_b[0] = -1; }),
            "trees.coupled_b[0] is -1; it must be in [0, 4)");
  EXPECT_EQ(RefusalAfter([](ProblemArrays* a) { a->trees.coupled_b[0] = 1; }),
            "trees.coupled_b[0] is 1; it must be less than trees.coupled_a, which is 1");
  EXPECT_EQ(RefusalAfter(
                [](ProblemArrays* a) { std::swap(a->trees.coupled_b[1], a->trees.coupled_b[2]); }),
            "trees.coupled_a[2] and trees.coupled_b are (2, 0) after (2, 1); pairs must ascend");
  EXPECT_EQ(RefusalAfter([](ProblemArrays* a) { a->trees.coupled_b[2] = 0; }),
            "trees.coupled_a[2] and trees.coupled_b are (2, 0) after (2, 0); pairs must ascend");
  EXPECT_EQ(RefusalAfter([](ProblemArrays* a) { a->trees.coupled_b.pop_back(); }),
            "trees.coupled_b has 2 values; 3 are needed for 3 couplings (see trees.coupled_a)");
  EXPECT_EQ(RefusalAfter([](ProblemArrays* a) { a->trees.coupling_block.pop_back(); }),
            "trees.coupling_block has 20 values; 21 are needed for 3 couplings (see "
            "trees.coupled_a)");
  EXPECT_EQ(RefusalAfter([](ProblemArrays* a) { a->trees.coupling_block[7] = NAN; }),
            "trees.coupling_block[7] is NaN; it must be finite");
}

TEST(CoupledTreesTest, AWholeThatIsNotPositiveDefiniteIsRefusedWithOneOfItsTrees) {
  EXPECT_EQ(RefusalAfter([](ProblemArrays* a) { a->trees.coupling_block[0] = 5; }),
            "trees.coupling_block and trees.dynamics_matrix make a matrix that is not positive "
            "definite, of trees[0] and the trees that are coupled with it");
}

TEST(CoupledTreesTest, FactorsAndPairsAboveTheirLimitsAreRefused) {
  EXPECT_EQ(RefusalAfter([](ProblemArrays*) {}, {.max_coupled_bytes = 100}).substr(0, 33),
            "trees.coupled_a makes factors of ");
  EXPECT_EQ(RefusalAfter([](ProblemArrays*) {}, {.max_row_pairs = 2}),
            "trees.coupled_a makes 3 pairs of trees; the limit is 2");
  EXPECT_EQ(RefusalAfter([](ProblemArrays*) {}, {.max_row_pairs = 5}),
            "contacts.parts makes 6 pairs of trees; the limit is 5");
}

TEST(CoupledTreesTest, TheRuleLoadPathKnowsNeitherCouplingsNorContactsOfManyTrees) {
  const auto by_load = [](ProblemArrays* a) {
    a->regularization.rule = DelassusRule::kLoadPath;
    a->trees.initial_velocity.assign(14, 0);
    a->bodies.initial_velocity.assign(6, 0);
  };
  EXPECT_EQ(RefusalAfter(by_load),
            "trees.coupled_a has 3 values; it must be empty where regularization.rule is "
            "LOAD_PATH");
  EXPECT_EQ(RefusalAfter([&](ProblemArrays* a) {
              by_load(a);
              a->trees.coupled_a.clear();
              a->trees.coupled_b.clear();
              a->trees.coupling_block.clear();
            }),
            "contacts.parts[0] is 4; it must be at most 2 where regularization.rule is LOAD_PATH");
}

TEST(ContactsByPartsTest, PartsOutOfRangeOrTwiceInAContactAreRefused) {
  EXPECT_EQ(RefusalAfter([](ProblemArrays* a) { a->contacts.parts[1] = 0; }),
            "contacts.parts[1] is 0; it must be >= 1");
  EXPECT_EQ(RefusalAfter([](ProblemArrays* a) { a->contacts.part_tree[4] = 5; }),
            "contacts.part_tree[4] is 5; it must be in [0, 5)");
  EXPECT_EQ(RefusalAfter([](ProblemArrays* a) { a->contacts.part_tree[2] = 3; }),
            "contacts.part_tree[2] is 3 a second time in contact 0; the trees of a contact must "
            "differ");
  EXPECT_EQ(RefusalAfter([](ProblemArrays* a) { a->contacts.part_tree.pop_back(); }),
            "contacts.part_tree has 4 values; 5 are needed for 2 contacts (see contacts.parts)");
  EXPECT_EQ(RefusalAfter([](ProblemArrays* a) { a->contacts.jacobian.pop_back(); }),
            "contacts.jacobian has 68 values; 69 are needed for 2 contacts (see contacts.parts, "
            "contacts.part_tree)");
  EXPECT_EQ(RefusalAfter([](ProblemArrays* a) {
              a->contacts.tree_a = {0, 1};
            }),
            "contacts.parts has 2 values; it must be empty where contacts.tree_a or "
            "contacts.tree_b is given");
  EXPECT_EQ(RefusalAfter([](ProblemArrays* a) { a->contacts.parts.clear(); }),
            "contacts.part_tree has 5 values; 0 are needed for 0 parts (see contacts.parts)");
  // More parts than any list can have, whose sum of pairs is beyond 64 bits.
  EXPECT_EQ(RefusalAfter([](ProblemArrays* a) {
              a->contacts.parts.assign(2, std::numeric_limits<uint32_t>::max());
            }),
            "contacts.part_tree has 5 values; 8589934590 are needed for 2 contacts (see "
            "contacts.parts)");
}

TEST(CoupledTreesTest, ComponentsAreTheTreesThatCouplingsConnect) {
  Random random(7);
  ProblemArrays whole;
  for (const int n : {4, 1, 6, 3}) {
    whole.AddTree(RandomDynamicsMatrix(&random, n, 1, 2), UniformVector(&random, n, -1, 1));
  }
  const ContactProblem problem = Checked(InParts(whole, {2}));  // 2 2, 1, 2 2 2, 2 1
  const CoupledTrees& coupled = problem.coupled_trees();
  const int components[] = {0, 0, -1, 1, 1, 1, 2, 2};
  for (int tree = 0; tree < 8; ++tree) EXPECT_EQ(coupled.component_of(tree), components[tree]);
  ASSERT_EQ(coupled.num_components(), 3);
  EXPECT_EQ(std::vector<int>(coupled.trees_of(1).begin(), coupled.trees_of(1).end()),
            (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(coupled.place_of(5), 2);
}

TEST(CoupledTreesTest, ReadingACopyAnewLeavesTheFactorsOfTheOther) {
  const ContactProblem problem = Checked(CoupledProblem());
  const auto norm2 = [&] {
    const HalfSolveFactor factor = problem.coupled_trees().factor(0);
    HalfSolve solve;
    solve.Start(factor.plan);
    solve.rows(factor, 0)[0] += Lanes4{1, 2, 3, 4};
    solve.Run(factor, StopToken());
    Lanes4 sum{};
    solve.ForRows(factor.plan, [&](const Lanes4& y) { sum += y * y; });
    return Sum(sum);
  };
  const double before = norm2();
  ContactProblem copy = problem;
  ProblemArrays other = CoupledProblem();
  for (double& value : other.trees.dynamics_matrix) value *= 2;
  ASSERT_TRUE(copy.Reset(other.View()));
  EXPECT_EQ(norm2(), before);
}

TEST(CoupledTreesTest, ReadingAnotherProblemLeavesNothingOfTheLast) {
  ContactProblem problem = Checked(CoupledProblem());
  Random random(1);
  ProblemArrays plain;
  plain.AddTree(RandomDynamicsMatrix(&random, 2, 1, 2), UniformVector(&random, 2, -1, 1));
  ASSERT_TRUE(problem.Reset(plain.View()));
  EXPECT_TRUE(problem.coupled_trees().empty());
  EXPECT_EQ(problem.coupled_trees().num_components(), 0);
  EXPECT_EQ(problem.coupled_trees().component_of(0), -1);
  EXPECT_EQ(problem.num_contacts(), 0);
}

}  // namespace
}  // namespace sap::test
