#include "solver/problem/contact_problem.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "tests/solver/problem/plain_problem.h"
#include "tests/support/primal_problem.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// All optional arrays given.
ProblemArrays GoodProblem() {
  ProblemArrays arrays = PlainProblem();
  arrays.trees.guess_velocity.assign(5, 0.1);
  arrays.trees.tree_id = {7, 8};
  arrays.bodies.guess_velocity.assign(12, 0.2);
  arrays.bodies.body_id = {9, 10};
  for (const auto& [law, n] :
       {std::pair(&arrays.contacts.law, 3), std::pair(&arrays.body_contacts.law, 2)}) {
    law->regularization_t.assign(n, 1e-3);
    law->delassus_estimate.assign(n, 0.5);
    law->surface_velocity.assign(3 * n, 0.0);
  }
  return arrays;
}

std::string ComplaintAfter(const std::function<void(ProblemArrays*)>& change) {
  ProblemArrays arrays = GoodProblem();
  change(&arrays);
  return Complaint(arrays);
}

TEST(ContactProblemTest, GoodProblemIsAccepted) { EXPECT_EQ(Complaint(GoodProblem()), ""); }

TEST(ContactProblemTest, TimeStepIsFiniteAndPositive) {
  const auto with = [](double value) {
    return ComplaintAfter([&](ProblemArrays* a) { a->time_step = value; });
  };
  EXPECT_EQ(with(0), "time_step is 0; it must be finite and > 0");
  EXPECT_EQ(with(-0.01), "time_step is -0.01; it must be finite and > 0");
  EXPECT_EQ(with(kNaN), "time_step is NaN; it must be finite and > 0");
  EXPECT_EQ(with(kInfinity), "time_step is inf; it must be finite and > 0");
}

TEST(ContactProblemTest, RegularizationParametersAreInRange) {
  EXPECT_EQ(ComplaintAfter([](ProblemArrays* a) { a->regularization.beta = -1; }),
            "regularization.beta is -1; it must be finite and >= 0");
  EXPECT_EQ(ComplaintAfter([](ProblemArrays* a) { a->regularization.beta = 0; }), "");
  EXPECT_EQ(ComplaintAfter([](ProblemArrays* a) { a->regularization.sigma = 0; }),
            "regularization.sigma is 0; it must be finite and > 0");
  EXPECT_EQ(ComplaintAfter([](ProblemArrays* a) { a->regularization.sigma = kNaN; }),
            "regularization.sigma is NaN; it must be finite and > 0");
}

TEST(ContactProblemTest, DofsArePositiveAndWithinTheLimit) {
  EXPECT_EQ(ComplaintAfter([](ProblemArrays* a) { a->trees.dofs[1] = 0; }),
            "trees.dofs[1] is 0; it must be in [1, 1024]");
  EXPECT_EQ(ComplaintAfter([](ProblemArrays* a) { a->trees.dofs[0] = 0xffffffffu; }),
            "trees.dofs[0] is 4294967295; it must be in [1, 1024]");
  EXPECT_EQ(Complaint(GoodProblem(), {.max_tree_dofs = 2}),
            "trees.dofs[1] is 3; it must be in [1, 2]");
}

TEST(ContactProblemTest, CountsAreWithinTheLimits) {
  EXPECT_EQ(Complaint(GoodProblem(), {.max_trees = 3}),
            "bodies.mass makes 4 trees and bodies; the limit is 3");
  EXPECT_EQ(Complaint(GoodProblem(), {.max_contacts = 4}),
            "body_contacts.body_a makes 5 contacts; the limit is 4");
  EXPECT_EQ(Complaint(GoodProblem(), {.max_trees = 4, .max_contacts = 5}), "");
}

// The array to look at is the one that there is.
TEST(ContactProblemTest, CountsWithoutBodiesAreThoseOfTreesAndTheirContacts) {
  ProblemArrays arrays;
  for (int i = 0; i < 2; ++i) {
    arrays.AddTree(Eigen::MatrixXd::Identity(2, 2), Eigen::VectorXd::Zero(2));
    arrays.AddContact(i, ProblemArrays::Jacobian::Ones(3, 2), {});
  }
  EXPECT_EQ(Complaint(arrays, {.max_trees = 1}),
            "trees.dofs makes 2 trees and bodies; the limit is 1");
  EXPECT_EQ(Complaint(arrays, {.max_contacts = 1}),
            "contacts.tree_a makes 2 contacts; the limit is 1");
  EXPECT_EQ(Complaint(arrays), "");
}

TEST(ContactProblemTest, DynamicsMatrixIsSymmetric) {
  // Entry (1, 0) of the second tree: 4 values of the first, then one row of three.
  const auto with = [](double error) {
    return ComplaintAfter([&](ProblemArrays* a) {
      a->trees.dynamics_matrix = {1, 0, 0, 1, /**/ 2, 0.5, 0, 0.5 + error, 2, 0, 0, 0, 2};
    });
  };
  EXPECT_EQ(with(0), "");
  EXPECT_EQ(with(1.9e-12), "");
  EXPECT_EQ(with(1),
            "trees.dynamics_matrix[7] is 1.5 but its transpose is 0.5; the matrix of "
            "trees[1] must be symmetric within 1e-12 of its largest entry");
  EXPECT_NE(with(2.1e-12), "");
}

TEST(ContactProblemTest, DynamicsMatrixWithinToleranceIsSymmetrized) {
  ProblemArrays arrays;
  arrays.AddTree(Eigen::MatrixXd::Identity(2, 2), Eigen::VectorXd::Zero(2));
  arrays.trees.dynamics_matrix = {1, 0.25, 0.25 + 1e-13, 1};
  const ContactProblem problem = Checked(arrays);
  EXPECT_EQ(problem.dynamics_matrix()[1], problem.dynamics_matrix()[2]);
  EXPECT_NEAR(problem.dynamics_matrix()[1], 0.25 + 0.5e-13, 1e-16);
}

TEST(ContactProblemTest, DynamicsMatrixIsPositiveDefinite) {
  const auto with = [](std::vector<double> matrix) {
    return ComplaintAfter([&](ProblemArrays* a) {
      std::copy(matrix.begin(), matrix.end(), a->trees.dynamics_matrix.begin());
    });
  };
  const std::string refusal =
      "trees.dynamics_matrix[0] starts a matrix that is not positive definite (trees[0])";
  EXPECT_EQ(with({0, 0, 0, 0}), refusal);
  EXPECT_EQ(with({1, 2, 2, 1}), refusal);
  EXPECT_EQ(with({1, 0, 0, -1}), refusal);
  EXPECT_EQ(with({1, 0, 0, -0.0}), refusal);
  EXPECT_EQ(with({1e-300, 0, 0, 1e300}), "");
  EXPECT_EQ(with({1, 0, 0, kNaN}), "trees.dynamics_matrix[3] is NaN; it must be finite");
}

// Large trees are factored by another kernel than small ones.
TEST(ContactProblemTest, DynamicsMatrixOfALargeTreeIsPositiveDefinite) {
  ProblemArrays arrays = LargeTree(200, 1);
  EXPECT_TRUE(ContactProblem::Make(arrays.View()).has_value());
  arrays.trees.dynamics_matrix.back() = -1;
  const auto refused = ContactProblem::Make(arrays.View());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().Message(),
            "trees.dynamics_matrix[0] starts a matrix that is not positive definite (trees[0])");
}

TEST(ContactProblemTest, MassAndInertiaArePositiveDefinite) {
  EXPECT_EQ(ComplaintAfter([](ProblemArrays* a) { a->bodies.mass[1] = 0; }),
            "bodies.mass[1] is 0; it must be finite and > 0");
  EXPECT_EQ(ComplaintAfter([](ProblemArrays* a) { a->bodies.mass[0] = kInfinity; }),
            "bodies.mass[0] is inf; it must be finite and > 0");
  EXPECT_EQ(ComplaintAfter([](ProblemArrays* a) { a->bodies.inertia[9] = 5; }),
            "bodies.inertia[6] starts an inertia that is not positive definite (bodies[1])");
  EXPECT_EQ(ComplaintAfter([](ProblemArrays* a) { a->bodies.inertia[3] = kNaN; }),
            "bodies.inertia[3] is NaN; it must be finite");
}

TEST(ContactProblemTest, NamesAreUniqueOverTreesAndBodies) {
  EXPECT_EQ(ComplaintAfter([](ProblemArrays* a) { a->bodies.body_id[1] = 7; }),
            "bodies.body_id[1] is 7 a second time; names must be unique");
  EXPECT_EQ(ComplaintAfter([](ProblemArrays* a) { a->trees.tree_id[1] = 7; }),
            "trees.tree_id[1] is 7 a second time; names must be unique");
  EXPECT_EQ(ComplaintAfter([](ProblemArrays* a) { a->trees.tree_id[0] = 0xffffffffu; }), "");
}

TEST(ContactProblemTest, PartnersAreInRangeAndDistinct) {
  const auto with = [](auto ProblemArrays::Contacts::*array, int index, int value) {
    return ComplaintAfter([&](ProblemArrays* a) { (a->contacts.*array)[index] = value; });
  };
  EXPECT_EQ(with(&ProblemArrays::Contacts::tree_a, 0, 4),
            "contacts.tree_a[0] is 4; it must be in [0, 4)");
  EXPECT_EQ(with(&ProblemArrays::Contacts::tree_a, 2, -1),
            "contacts.tree_a[2] is -1; it must be in [0, 4)");
  EXPECT_EQ(with(&ProblemArrays::Contacts::tree_b, 2, -2),
            "contacts.tree_b[2] is -2; it must be in [-1, 4)");
  EXPECT_EQ(with(&ProblemArrays::Contacts::tree_b, 1, std::numeric_limits<int>::max()),
            "contacts.tree_b[1] is 2147483647; it must be in [-1, 4)");
  EXPECT_EQ(with(&ProblemArrays::Contacts::tree_b, 0, 0),
            "contacts.tree_b[0] is 0; it must differ from contacts.tree_a");
}

TEST(ContactProblemTest, BodiesOfBodyContactsAreInRangeAndDistinct) {
  EXPECT_EQ(ComplaintAfter([](ProblemArrays* a) { a->body_contacts.body_a[1] = 2; }),
            "body_contacts.body_a[1] is 2; it must be in [0, 2)");
  EXPECT_EQ(ComplaintAfter([](ProblemArrays* a) { a->body_contacts.body_b[1] = -2; }),
            "body_contacts.body_b[1] is -2; it must be in [-1, 2)");
  EXPECT_EQ(ComplaintAfter([](ProblemArrays* a) { a->body_contacts.body_b[0] = 0; }),
            "body_contacts.body_b[0] is 0; it must differ from body_contacts.body_a");
}

TEST(ContactProblemTest, NormalsAreUnitVectors) {
  const auto with = [](std::vector<double> normal) {
    return ComplaintAfter([&](ProblemArrays* a) {
      std::copy(normal.begin(), normal.end(), a->body_contacts.normal.begin() + 3);
    });
  };
  EXPECT_EQ(with({0, 0, 2}),
            "body_contacts.normal[3] starts a vector of length 2; it must be 1 within 1e-6");
  EXPECT_EQ(with({0, 0, 0}),
            "body_contacts.normal[3] starts a vector of length 0; it must be 1 within 1e-6");
  EXPECT_EQ(with({1e200, 0, 0}).substr(0, 55),
            "body_contacts.normal[3] starts a vector of length 1e+20");
  EXPECT_EQ(with({0, 0, 1 + 0.9e-6}), "");
  EXPECT_NE(with({0, 0, 1 + 1.1e-6}), "");
}

TEST(ContactProblemTest, AGuessOfBodiesAloneIsAGuess) {
  ProblemArrays arrays;
  arrays.AddBody(1, {1, 1, 1}, {0, 0, 0}, Eigen::Matrix<double, 6, 1>::Zero());
  EXPECT_EQ(Checked(arrays).v_guess()[5], 0);
  arrays.bodies.guess_velocity.assign(6, 2.0);
  EXPECT_EQ(Checked(arrays).v_guess()[5], 2);
}

TEST(ContactProblemTest, TheFirstOfSeveralWrongNormalsIsNamed) {
  EXPECT_EQ(ComplaintAfter([](ProblemArrays* a) {
              for (double& value : a->body_contacts.normal) value *= 2;
            }),
            "body_contacts.normal[0] starts a vector of length 2; it must be 1 within 1e-6");
}

// A field of one law of contacts by what may stand in it.
struct LawField {
  const char* name;
  std::vector<double> LawArrays::*array;
  bool zero_is_fine;
  bool negative_is_fine;
};

constexpr LawField kLawFields[] = {
    {"signed_distance", &LawArrays::signed_distance, true, true},
    {"stiffness", &LawArrays::stiffness, false, false},
    {"relaxation_time", &LawArrays::relaxation_time, true, false},
    {"friction", &LawArrays::friction, true, false},
    {"regularization_t", &LawArrays::regularization_t, false, false},
    {"delassus_estimate", &LawArrays::delassus_estimate, false, false},
    {"surface_velocity", &LawArrays::surface_velocity, true, true},
};

class LawTest : public ::testing::TestWithParam<std::tuple<LawField, bool>> {
 protected:
  static std::string Name() { return std::get<0>(GetParam()).name; }
  static std::string FullName() { return (OfBodies() ? "body_contacts." : "contacts.") + Name(); }
  static bool OfBodies() { return std::get<1>(GetParam()); }
  static std::vector<double>* Array(ProblemArrays* arrays) {
    LawArrays& law = OfBodies() ? arrays->body_contacts.law : arrays->contacts.law;
    return &(law.*std::get<0>(GetParam()).array);
  }
  static std::string With(double value) {
    return ComplaintAfter([&](ProblemArrays* a) { (*Array(a))[1] = value; });
  }
  static std::string Rule() {
    const LawField& field = std::get<0>(GetParam());
    if (field.negative_is_fine) return "finite";
    return field.zero_is_fine ? "finite and >= 0" : "finite and > 0";
  }
  static std::string Refusal(const std::string& value) {
    return FullName() + "[1] is " + value + "; it must be " + Rule();
  }
};

TEST_P(LawTest, ValuesThatAreNotFiniteAreRefused) {
  EXPECT_EQ(With(kNaN), Refusal("NaN"));
  EXPECT_EQ(With(kInfinity), Refusal("inf"));
  EXPECT_EQ(With(-kInfinity), Refusal("-inf"));
}

TEST_P(LawTest, ZerosAndNegativeValuesAreRefusedWhereTheyMeanNothing) {
  const LawField& field = std::get<0>(GetParam());
  EXPECT_EQ(With(0), field.zero_is_fine ? "" : Refusal("0"));
  EXPECT_EQ(With(-0.0), field.zero_is_fine ? "" : Refusal("-0"));
  EXPECT_EQ(With(-0.3), field.negative_is_fine ? "" : Refusal("-0.3"));
  EXPECT_EQ(With(-5e-324), field.negative_is_fine ? "" : Refusal("-5e-324"));
}

TEST_P(LawTest, FiniteValuesOfAnySizeAreAccepted) {
  EXPECT_EQ(With(1e308), "");
  EXPECT_EQ(With(5e-324), "");
}

TEST_P(LawTest, LengthHasToFitTheContacts) {
  const int contacts = OfBodies() ? 2 : 3;
  const int needed = (Name() == "surface_velocity" ? 3 : 1) * contacts;
  const std::string why = std::to_string(needed) + " are needed for " + std::to_string(contacts) +
                          (OfBodies() ? " body contacts (see body_contacts.body_a)"
                                      : " contacts (see contacts.tree_a)");
  for (const int change : {-1, 1}) {
    EXPECT_EQ(ComplaintAfter([&](ProblemArrays* a) { Array(a)->resize(needed + change, 0.5); }),
              FullName() + " has " + std::to_string(needed + change) + " values; " + why);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryField, LawTest,
                         ::testing::Combine(::testing::ValuesIn(kLawFields), ::testing::Bool()),
                         [](const ::testing::TestParamInfo<std::tuple<LawField, bool>>& info) {
                           return std::string(std::get<0>(info.param).name) +
                                  (std::get<1>(info.param) ? "_of_bodies" : "_by_jacobian");
                         });

// Every other array of numbers: finite, and exactly as long as the counts ask for.
struct NumberField {
  const char* name;
  std::function<std::vector<double>*(ProblemArrays*)> array;
};

class NumberFieldTest : public ::testing::TestWithParam<NumberField> {};

TEST_P(NumberFieldTest, ValuesThatAreNotFiniteAreRefused) {
  const NumberField& field = GetParam();
  for (const auto& [value, text] :
       {std::pair(kNaN, "NaN"), std::pair(kInfinity, "inf"), std::pair(-kInfinity, "-inf")}) {
    EXPECT_EQ(
        ComplaintAfter(
            [&, spoiled = value](ProblemArrays* a) { field.array(a)->back() = spoiled; }),
        std::string(field.name) + "[" +
            std::to_string(
                field.array(std::make_unique<ProblemArrays>(GoodProblem()).get())->size() - 1) +
            "] is " + text + "; it must be finite");
  }
}

TEST_P(NumberFieldTest, LengthHasToFitTheCounts) {
  const NumberField& field = GetParam();
  ProblemArrays good = GoodProblem();
  const std::string needed = std::to_string(field.array(&good)->size());
  for (const int change : {-1, 1}) {
    const std::string complaint = ComplaintAfter([&](ProblemArrays* a) {
      std::vector<double>* array = field.array(a);
      array->resize(array->size() + change, 0.5);
    });
    const std::string begins = std::string(field.name) + " has " +
                               std::to_string(field.array(&good)->size() + change) + " values; " +
                               needed + " are needed for ";
    EXPECT_EQ(complaint.substr(0, begins.size()), begins);
  }
}

INSTANTIATE_TEST_SUITE_P(
    EveryField, NumberFieldTest,
    ::testing::Values(
        NumberField{"trees.dynamics_matrix", [](auto* a) { return &a->trees.dynamics_matrix; }},
        NumberField{"trees.free_motion_velocity",
                    [](auto* a) { return &a->trees.free_motion_velocity; }},
        NumberField{"trees.guess_velocity", [](auto* a) { return &a->trees.guess_velocity; }},
        NumberField{"bodies.inertia", [](auto* a) { return &a->bodies.inertia; }},
        NumberField{"bodies.center_of_mass", [](auto* a) { return &a->bodies.center_of_mass; }},
        NumberField{"bodies.free_motion_velocity",
                    [](auto* a) { return &a->bodies.free_motion_velocity; }},
        NumberField{"bodies.guess_velocity", [](auto* a) { return &a->bodies.guess_velocity; }},
        NumberField{"contacts.jacobian", [](auto* a) { return &a->contacts.jacobian; }},
        NumberField{"body_contacts.point", [](auto* a) { return &a->body_contacts.point; }},
        NumberField{"body_contacts.normal", [](auto* a) { return &a->body_contacts.normal; }}),
    [](const ::testing::TestParamInfo<NumberField>& info) {
      std::string name = info.param.name;
      std::replace(name.begin(), name.end(), '.', '_');
      return name;
    });

TEST(ContactProblemTest, PartnerAndNameArraysHaveToFitTheCounts) {
  EXPECT_EQ(ComplaintAfter([](ProblemArrays* a) { a->contacts.tree_b.pop_back(); }),
            "contacts.tree_b has 2 values; 3 are needed for 3 contacts (see contacts.tree_a)");
  EXPECT_EQ(ComplaintAfter([](ProblemArrays* a) { a->body_contacts.body_b.push_back(0); }),
            "body_contacts.body_b has 3 values; 2 are needed for 2 body contacts (see "
            "body_contacts.body_a)");
  EXPECT_EQ(ComplaintAfter([](ProblemArrays* a) { a->trees.tree_id.pop_back(); }),
            "trees.tree_id has 1 values; 2 are needed for 2 trees (see trees.dofs)");
  EXPECT_EQ(ComplaintAfter([](ProblemArrays* a) { a->bodies.body_id.push_back(99); }),
            "bodies.body_id has 3 values; 2 are needed for 2 bodies (see bodies.mass)");
}

TEST(ContactProblemTest, StiffnessIsNotReadWhereTheNormalRegularizationIsGiven) {
  const auto with = [](std::vector<double> stiffness) {
    return ComplaintAfter([&](ProblemArrays* a) {
      a->contacts.law.regularization_n.assign(3, 0.1);
      a->contacts.law.stiffness = stiffness;
    });
  };
  EXPECT_EQ(with({}), "");
  EXPECT_EQ(with({kNaN, -1, 0}), "");
  EXPECT_EQ(ComplaintAfter([](ProblemArrays* a) { a->contacts.law.stiffness.clear(); }),
            "contacts.stiffness has 0 values; 3 are needed for 3 contacts (see contacts.tree_a)");
}

TEST(ContactProblemTest, GivenNormalRegularizationIsPositive) {
  EXPECT_EQ(ComplaintAfter([](ProblemArrays* a) {
              a->body_contacts.law.regularization_n = {0.1, 0};
            }),
            "body_contacts.regularization_n[1] is 0; it must be finite and > 0");
}

TEST(ContactProblemTest, OptionalArraysMayBeAbsent) {
  ProblemArrays arrays = GoodProblem();
  arrays.trees.guess_velocity.clear();
  arrays.bodies.guess_velocity.clear();
  arrays.trees.tree_id.clear();
  arrays.bodies.body_id.clear();
  for (LawArrays* law : {&arrays.contacts.law, &arrays.body_contacts.law}) {
    law->regularization_t.clear();
    law->delassus_estimate.clear();
    law->surface_velocity.clear();
  }
  const ContactProblem problem = Checked(arrays);
  EXPECT_TRUE(std::ranges::equal(problem.v_guess(), problem.v_star()));
  for (const int64_t id : problem.tree_id()) EXPECT_EQ(id, -1);
}

TEST(ContactProblemTest, GuessOfTreesAloneLeavesBodiesAtTheirFreeMotion) {
  ProblemArrays arrays = GoodProblem();
  arrays.bodies.guess_velocity.clear();
  const ContactProblem problem = Checked(arrays);
  EXPECT_EQ(problem.v_guess()[4], 0.1);
  EXPECT_EQ(problem.v_guess()[5], arrays.bodies.free_motion_velocity[0]);
}

TEST(ContactProblemTest, TheRuleOfLoadPathsNeedsInitialVelocities) {
  const auto with = [](auto&& change) {
    return ComplaintAfter([&](ProblemArrays* a) {
      a->regularization.rule = DelassusRule::kLoadPath;
      a->trees.initial_velocity.assign(5, 0.3);
      a->bodies.initial_velocity.assign(12, 0.4);
      change(a);
    });
  };
  EXPECT_EQ(with([](ProblemArrays*) {}), "");
  EXPECT_EQ(
      with([](ProblemArrays* a) { a->trees.initial_velocity.clear(); }),
      "trees.initial_velocity has 0 values; regularization.rule LOAD_PATH needs the velocities "
      "at the beginning of the step, 5 for 2 trees (see trees.dofs)");
  EXPECT_EQ(with([](ProblemArrays* a) { a->bodies.initial_velocity.clear(); }),
            "bodies.initial_velocity has 0 values; regularization.rule LOAD_PATH needs the "
            "velocities at the beginning of the step, 12 for 2 bodies (see bodies.mass)");
  EXPECT_EQ(with([](ProblemArrays* a) { a->bodies.initial_velocity.pop_back(); }),
            "bodies.initial_velocity has 11 values; 12 are needed for 2 bodies (see bodies.mass)");
  EXPECT_EQ(with([](ProblemArrays* a) { a->trees.initial_velocity[3] = kNaN; }),
            "trees.initial_velocity[3] is NaN; it must be finite");
  EXPECT_EQ(with([](ProblemArrays* a) { a->regularization.load_reference_speed = 0; }),
            "regularization.load_reference_speed is 0; it must be > 0");
  EXPECT_EQ(with([](ProblemArrays* a) { a->regularization.load_reference_speed = 0.1; }), "");
}

TEST(ContactProblemTest, InitialVelocitiesAreCheckedAndKeptUnderOtherRules) {
  ProblemArrays arrays = GoodProblem();
  arrays.trees.initial_velocity.assign(5, 0.3);
  EXPECT_FALSE(Checked(arrays).v_0().empty());
  arrays.trees.initial_velocity[4] = kInfinity;
  EXPECT_EQ(Complaint(arrays), "trees.initial_velocity[4] is inf; it must be finite");
}

TEST(ContactProblemTest, InitialVelocitiesAreThoseOfTreesThenBodies) {
  ProblemArrays arrays = GoodProblem();
  arrays.regularization.rule = DelassusRule::kLoadPath;
  arrays.trees.initial_velocity.assign(5, 0.3);
  arrays.bodies.initial_velocity.assign(12, 0.4);
  ContactProblem problem = Checked(arrays);
  ASSERT_EQ(problem.v_0().size(), 17u);
  EXPECT_EQ(problem.v_0()[4], 0.3);
  EXPECT_EQ(problem.v_0()[5], 0.4);
  EXPECT_TRUE(problem.Reset(GoodProblem().View()));
  EXPECT_TRUE(problem.v_0().empty());
}

TEST(ContactProblemTest, RefusedProblemLeavesTheEmptyOne) {
  ContactProblem problem = Checked(GoodProblem());
  ProblemArrays bad = GoodProblem();
  bad.body_contacts.law.friction[1] = kNaN;
  EXPECT_FALSE(problem.Reset(bad.View()));
  EXPECT_EQ(problem.num_trees(), 0);
  EXPECT_EQ(problem.num_contacts(), 0);
  EXPECT_EQ(problem.num_velocities(), 0);
  EXPECT_TRUE(problem.Reset(GoodProblem().View()));
  EXPECT_EQ(problem.num_trees(), 4);
}

TEST(ContactProblemTest, ThreadsThatShareTheReadingNameTheFirstFault) {
  TaskArena arena(4, Sharing::kAlways);
  ProblemArrays arrays = BlockOfBodies(9);
  const auto expect_same_fault = [&](const std::string& field) {
    ContactProblem problem;
    const auto alone = ContactProblem::Make(arrays.View());
    const auto shared = problem.Reset(arrays.View(), {}, &arena);
    ASSERT_FALSE(alone.has_value());
    ASSERT_FALSE(shared.has_value());
    EXPECT_EQ(alone.error().field, field);
    EXPECT_EQ(shared.error().Message(), alone.error().Message());
    EXPECT_EQ(problem.num_trees(), 0);
  };
  for (size_t contact = 150; contact < arrays.body_contacts.body_a.size(); contact += 150) {
    arrays.body_contacts.normal[3 * contact + 1] = 2;
  }
  expect_same_fault("body_contacts.normal");
  for (size_t body = 90; body < arrays.bodies.mass.size(); body += 90) {
    arrays.bodies.inertia[6 * body] = -1;
  }
  expect_same_fault("bodies.inertia");
}

TEST(ContactProblemTest, ThreadsThatShareTheReadingReadWhatOneReads) {
  TaskArena arena(4, Sharing::kAlways);
  const ProblemArrays arrays = BlockOfBodies(9);
  const ContactProblem alone = Checked(arrays);
  ContactProblem shared;
  ASSERT_TRUE(shared.Reset(arrays.View(), {}, &arena, &alone.islands()).has_value());
  EXPECT_TRUE(std::ranges::equal(shared.jacobian(), alone.jacobian()));
  EXPECT_TRUE(std::ranges::equal(shared.dynamics_factor(), alone.dynamics_factor()));
  EXPECT_TRUE(std::ranges::equal(shared.v_hat(), alone.v_hat()));
  EXPECT_TRUE(std::ranges::equal(shared.islands().slot_of_tree(), alone.islands().slot_of_tree()));
}

// The form by bodies says the same as trees and Jacobians written down by hand.
TEST(ContactProblemTest, BodiesBecomeTreesWithTheJacobiansOfTheirContactPoints) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    ProblemArrays arrays = RandomBodiesInContact(seed, 8, 30);
    Random random(seed);
    for (int i = 0; i < 90; ++i) {
      arrays.body_contacts.law.surface_velocity.push_back(Uniform(&random, -1, 1));
    }
    const ContactProblem bodies = Checked(arrays);
    const ContactProblem trees = Checked(WithBodiesAsTrees(arrays));
    const auto expect_near = [](std::span<const double> a, std::span<const double> b) {
      ASSERT_EQ(a.size(), b.size());
      for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-14);
    };
    expect_near(bodies.jacobian(), trees.jacobian());
    expect_near(bodies.dynamics_matrix(), trees.dynamics_matrix());
    expect_near(bodies.surface_velocity(), trees.surface_velocity());
    expect_near(bodies.v_star(), trees.v_star());
    EXPECT_TRUE(std::ranges::equal(bodies.contact_start(), trees.contact_start()));
    EXPECT_TRUE(std::ranges::equal(bodies.contact_trees(), trees.contact_trees()));
  }
}

}  // namespace
}  // namespace sap::test
