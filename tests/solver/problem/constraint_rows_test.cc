#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>

#include "solver/problem/contact_problem.h"
#include "tests/support/random_problem.h"

namespace sap::test::constraint_rows {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Rows = ProblemArrays::Rows;

// Trees of 2 and 3 dofs, then two bodies: velocities 0 to 1, 2 to 4, 5 to 10, 11 to 16.
ProblemArrays WithoutRows() {
  ProblemArrays arrays;
  arrays.AddTree(Eigen::MatrixXd::Identity(2, 2), Eigen::VectorXd::Zero(2));
  arrays.AddTree(Eigen::MatrixXd::Identity(3, 3), Eigen::VectorXd::Zero(3));
  for (int i = 0; i < 2; ++i) {
    arrays.AddBody(1, {1, 1, 1}, {0, 0, 0}, Eigen::Matrix<double, 6, 1>::Zero());
  }
  arrays.time_step = 0.25;
  return arrays;
}

// Three rows: within a tree, over all trees, of one entry. Every optional array is absent.
ProblemArrays BareRows() {
  ProblemArrays arrays = WithoutRows();
  arrays.AddRow({2, 4}, {1, -1});
  arrays.AddRow({0, 1, 3, 10, 11}, {1, 2, 3, 4, 5});
  arrays.AddRow({16}, {0.5});
  return arrays;
}

// The same with every optional array; no value equals another.
ProblemArrays GivenRows() {
  ProblemArrays arrays = BareRows();
  Rows& rows = arrays.rows;
  rows.velocity_offset = {0.1, 0.2, 0.3};
  rows.stiffness = {100, kInfinity, 300};
  rows.relaxation_time = {0.01, 0, 0.03};
  rows.force_lower = {-1, -kInfinity, -3};
  rows.force_upper = {10, 20, kInfinity};
  rows.regularization = {0, 0.02, 0};
  rows.target_velocity = {0.4, 0.5, 0.6};
  rows.delassus_estimate = {2, 0, 4};
  rows.slip_parameter = {0, 0, 1e-3};
  rows.force_offset = {5, 6, 7};
  return arrays;
}

std::string ComplaintAfter(ProblemArrays arrays, const std::function<void(Rows*)>& change) {
  change(&arrays.rows);
  return Complaint(arrays);
}

TEST(ConstraintRowsTest, GoodRowsAreAccepted) {
  EXPECT_EQ(Complaint(WithoutRows()), "");
  EXPECT_EQ(Complaint(BareRows()), "");
  EXPECT_EQ(Complaint(GivenRows()), "");
}

TEST(ConstraintRowsTest, EntriesAreOfTreesAndTheirDofs) {
  const ContactProblem problem = Checked(BareRows());
  EXPECT_EQ(problem.num_rows(), 3);
  EXPECT_TRUE(std::ranges::equal(problem.row_start(), std::vector{0, 2, 7, 8}));
  std::vector<std::pair<int, int>> entries;
  for (const RowEntry& entry : problem.row_entries()) entries.push_back({entry.tree, entry.dof});
  EXPECT_EQ(entries, (std::vector<std::pair<int, int>>{
                         {1, 0}, {1, 2}, {0, 0}, {0, 1}, {1, 1}, {2, 5}, {3, 0}, {3, 5}}));
  EXPECT_TRUE(std::ranges::equal(problem.row_coefficients(),
                                 std::vector<double>{1, -1, 1, 2, 3, 4, 5, 0.5}));
}

TEST(ConstraintRowsTest, AbsentArraysAreTheirDefaults) {
  const ContactProblem problem = Checked(BareRows());
  for (int i = 0; i < 3; ++i) {
    const RowParameters& row = problem.rows()[i];
    EXPECT_EQ(row.v_hat, 0);
    EXPECT_EQ(row.offset, 0);
    EXPECT_EQ(row.stiffness, kInfinity);
    EXPECT_EQ(row.relaxation_time, 0);
    EXPECT_EQ(row.force_lower, -kInfinity);
    EXPECT_EQ(row.force_upper, kInfinity);
    EXPECT_EQ(row.force_offset, 0);
    EXPECT_EQ(row.given_R, 0);
    EXPECT_EQ(row.given_w, 0);
    EXPECT_EQ(row.slip_parameter, 0);
  }
}

TEST(ConstraintRowsTest, GivenArraysAreTaken) {
  const ProblemArrays arrays = GivenRows();
  const ContactProblem problem = Checked(arrays);
  const Rows& given = arrays.rows;
  for (int i = 0; i < 3; ++i) {
    const RowParameters& row = problem.rows()[i];
    EXPECT_EQ(row.v_hat, given.target_velocity[i]);
    EXPECT_EQ(row.offset, given.velocity_offset[i]);
    EXPECT_EQ(row.stiffness, given.stiffness[i]);
    EXPECT_EQ(row.relaxation_time, given.relaxation_time[i]);
    EXPECT_EQ(row.force_lower, given.force_lower[i]);
    EXPECT_EQ(row.force_upper, given.force_upper[i]);
    EXPECT_EQ(row.force_offset, given.force_offset[i]);
    EXPECT_EQ(row.given_R, given.regularization[i]);
    EXPECT_EQ(row.given_w, given.delassus_estimate[i]);
    EXPECT_EQ(row.slip_parameter, given.slip_parameter[i]);
  }
}

// v_hat = -g_0 / (dt + tau), with dt = 1/4.
TEST(ConstraintRowsTest, TheTargetFollowsFromThePositionErrorWhereItIsAbsent) {
  ProblemArrays arrays = BareRows();
  arrays.rows.position_error = {3, 0, -1};
  arrays.rows.relaxation_time = {0.5, 1, 0};
  const ContactProblem problem = Checked(arrays);
  EXPECT_EQ(problem.rows()[0].v_hat, -4);
  EXPECT_EQ(problem.rows()[1].v_hat, 0);
  EXPECT_EQ(problem.rows()[2].v_hat, 4);
}

TEST(ConstraintRowsTest, ThePositionErrorIsNotReadWhereATargetIsGiven) {
  EXPECT_EQ(ComplaintAfter(GivenRows(), [](Rows* rows) { rows->position_error = {kNaN}; }), "");
}

TEST(ConstraintRowsTest, OneFiniteBoundMakesARowABoundedOne) {
  const ContactProblem bare = Checked(BareRows());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bare.row_kind()[i], ConstraintKind::kBilateralRow);
  ProblemArrays arrays = BareRows();
  arrays.rows.force_lower = {0, -kInfinity, -kInfinity};
  arrays.rows.force_upper = {kInfinity, 7, kInfinity};
  const ContactProblem bounded = Checked(arrays);
  EXPECT_EQ(bounded.row_kind()[0], ConstraintKind::kBoundedRow);
  EXPECT_EQ(bounded.row_kind()[1], ConstraintKind::kBoundedRow);
  EXPECT_EQ(bounded.row_kind()[2], ConstraintKind::kBilateralRow);
}

TEST(ConstraintRowsTest, EveryRowHasAnEntry) {
  EXPECT_EQ(ComplaintAfter(BareRows(), [](Rows* rows) { rows->entries[1] = 0; }),
            "rows.entries[1] is 0; it must be >= 1");
}

// Three counts of 2^32 - 1 are no small sum modulo any power of two.
TEST(ConstraintRowsTest, EntriesAddUpToTheLengthsOfTheirArrays) {
  EXPECT_EQ(ComplaintAfter(BareRows(), [](Rows* rows) { rows->entries.assign(3, 0xffffffffu); }),
            "rows.velocity_index has 8 values; 12884901885 are needed for 3 rows (see "
            "rows.entries)");
  EXPECT_EQ(ComplaintAfter(BareRows(), [](Rows* rows) { rows->velocity_index.pop_back(); }),
            "rows.velocity_index has 7 values; 8 are needed for 3 rows (see rows.entries)");
  EXPECT_EQ(ComplaintAfter(BareRows(), [](Rows* rows) { rows->coefficient.push_back(1); }),
            "rows.coefficient has 9 values; 8 are needed for 3 rows (see rows.entries)");
  EXPECT_EQ(ComplaintAfter(WithoutRows(), [](Rows* rows) { rows->velocity_index = {0}; }),
            "rows.velocity_index has 1 values; 0 are needed for 0 rows (see rows.entries)");
}

TEST(ConstraintRowsTest, VelocityIndicesAreInRange) {
  for (const uint32_t index : {17u, 0x80000000u, 0xffffffffu}) {
    EXPECT_EQ(ComplaintAfter(BareRows(), [&](Rows* rows) { rows->velocity_index[7] = index; }),
              "rows.velocity_index[7] is " + std::to_string(index) + "; it must be in [0, 17)");
  }
  ProblemArrays arrays;
  arrays.AddRow({0}, {1});
  EXPECT_EQ(Complaint(arrays), "rows.velocity_index[0] is 0; it must be in [0, 0)");
}

TEST(ConstraintRowsTest, VelocityIndicesAscendWithinARow) {
  const auto with = [](uint32_t index) {
    return ComplaintAfter(BareRows(), [&](Rows* rows) { rows->velocity_index[4] = index; });
  };
  EXPECT_EQ(with(2), "");
  EXPECT_EQ(with(1), "rows.velocity_index[4] is 1 after 1; it must ascend within a row");
  EXPECT_EQ(with(0), "rows.velocity_index[4] is 0 after 1; it must ascend within a row");
}

struct RowField {
  const char* name;
  std::vector<double> Rows::*array;
  const char* rule;
  bool zero_is_fine, negative_is_fine, infinity_is_fine, minus_infinity_is_fine;
};

constexpr RowField kRowFields[] = {
    {"coefficient", &Rows::coefficient, "finite", true, true, false, false},
    {"position_error", &Rows::position_error, "finite", true, true, false, false},
    {"velocity_offset", &Rows::velocity_offset, "finite", true, true, false, false},
    {"stiffness", &Rows::stiffness, "> 0", false, false, true, false},
    {"relaxation_time", &Rows::relaxation_time, "finite and >= 0", true, false, false, false},
    {"force_lower", &Rows::force_lower, "finite or -inf", true, true, false, true},
    {"force_upper", &Rows::force_upper, "finite or inf", true, true, true, false},
    {"regularization", &Rows::regularization, "finite and >= 0", true, false, false, false},
    {"target_velocity", &Rows::target_velocity, "finite", true, true, false, false},
    {"delassus_estimate", &Rows::delassus_estimate, "finite and >= 0", true, false, false, false},
    {"slip_parameter", &Rows::slip_parameter, "finite and >= 0", true, false, false, false},
    {"force_offset", &Rows::force_offset, "finite", true, true, false, false},
    {"guess_impulse", &Rows::guess_impulse, "finite", true, true, false, false},
};

class RowFieldTest : public ::testing::TestWithParam<RowField> {
 protected:
  // Only this array is given, and R with it, so that no rule of another field is broken.
  static ProblemArrays Good() {
    ProblemArrays arrays = BareRows();
    arrays.rows.regularization.assign(3, 0.1);
    std::vector<double>& array = arrays.rows.*GetParam().array;
    if (array.empty()) array.assign(3, 1);
    return arrays;
  }
  static std::string With(double value) {
    return ComplaintAfter(Good(), [&](Rows* rows) { (rows->*GetParam().array)[1] = value; });
  }
  static std::string Name() { return std::string("rows.") + GetParam().name; }
  static std::string Answer(bool is_fine, const std::string& value) {
    return is_fine ? "" : Name() + "[1] is " + value + "; it must be " + GetParam().rule;
  }
};

TEST_P(RowFieldTest, InfinitiesAreRefusedExceptWhereTheyMeanSomethingAndNaNEverywhere) {
  EXPECT_EQ(With(kNaN), Answer(false, "NaN"));
  EXPECT_EQ(With(kInfinity), Answer(GetParam().infinity_is_fine, "inf"));
  EXPECT_EQ(With(-kInfinity), Answer(GetParam().minus_infinity_is_fine, "-inf"));
}

TEST_P(RowFieldTest, ZerosAndNegativeValuesAreRefusedWhereTheyMeanNothing) {
  EXPECT_EQ(With(0), Answer(GetParam().zero_is_fine, "0"));
  EXPECT_EQ(With(-0.3), Answer(GetParam().negative_is_fine, "-0.3"));
  EXPECT_EQ(With(-5e-324), Answer(GetParam().negative_is_fine, "-5e-324"));
}

TEST_P(RowFieldTest, FiniteValuesOfAnySizeAreAccepted) {
  EXPECT_EQ(With(1e308), "");
  EXPECT_EQ(With(5e-324), "");
}

TEST_P(RowFieldTest, LengthHasToFitTheRows) {
  for (const int change : {-1, 1}) {
    ProblemArrays arrays = Good();
    std::vector<double>& array = arrays.rows.*GetParam().array;
    const size_t needed = array.size();
    array.resize(needed + change, 1);
    EXPECT_EQ(Complaint(arrays), Name() + " has " + std::to_string(array.size()) + " values; " +
                                     std::to_string(needed) +
                                     " are needed for 3 rows (see rows.entries)");
  }
}

INSTANTIATE_TEST_SUITE_P(EveryField, RowFieldTest, ::testing::ValuesIn(kRowFields),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ConstraintRowsTest, BoundsAreInOrder) {
  const auto with = [](double lower, double upper) {
    return ComplaintAfter(GivenRows(), [&](Rows* rows) {
      rows->force_lower[1] = lower;
      rows->force_upper[1] = upper;
    });
  };
  EXPECT_EQ(with(2, 2), "");
  EXPECT_EQ(with(-kInfinity, kInfinity), "");
  EXPECT_EQ(with(2, 1), "rows.force_upper[1] is 1; it must be >= rows.force_lower, which is 2");
}

TEST(ConstraintRowsTest, ARigidRowNeedsTheNearRigidParameter) {
  const std::string refusal =
      "rows.stiffness[1] is inf, as where it is absent; it must be finite where "
      "regularization.row_beta is 0";
  ProblemArrays arrays = GivenRows();
  arrays.regularization.row_beta = 0;
  EXPECT_EQ(Complaint(arrays), "");  // R of row 1 is given
  arrays.rows.regularization.clear();
  EXPECT_EQ(Complaint(arrays), refusal);
  arrays.rows.slip_parameter[1] = 0.1;
  EXPECT_EQ(Complaint(arrays), "");
  arrays.rows.slip_parameter.clear();
  arrays.rows.stiffness[1] = 1e300;
  EXPECT_EQ(Complaint(arrays), "");
  arrays.rows.stiffness.clear();
  EXPECT_EQ(Complaint(arrays).substr(0, 25), "rows.stiffness[0] is inf,");
}

// w of such a row is 0, and with it R, unless R follows from something else.
TEST(ConstraintRowsTest, ARowOfZerosNeedsAnotherSourceOfR) {
  ProblemArrays arrays = BareRows();
  std::fill_n(arrays.rows.coefficient.begin() + 2, 5, 0.0);
  const std::string refusal =
      "rows.coefficient[2] starts a row of zeros (rows[1]); one of them must differ from 0 where "
      "R follows from w";
  EXPECT_EQ(Complaint(arrays), refusal);
  arrays.rows.slip_parameter = {0, 0.1, 0};
  EXPECT_EQ(Complaint(arrays), refusal);
  arrays.rows.delassus_estimate = {0, 1, 0};
  EXPECT_EQ(Complaint(arrays), "");
  arrays.rows.delassus_estimate.clear();
  arrays.rows.regularization = {0, 1, 0};
  EXPECT_EQ(Complaint(arrays), "");
  arrays.rows.regularization.clear();
  arrays.rows.slip_parameter.clear();
  arrays.rows.stiffness = {kInfinity, 100, kInfinity};
  EXPECT_EQ(Complaint(arrays), "");
}

// Row 1 joins four trees: six pairs.
TEST(ConstraintRowsTest, CountsAreWithinTheLimits) {
  EXPECT_EQ(Complaint(BareRows(), {.max_rows = 3, .max_row_entries = 8, .max_row_pairs = 6}), "");
  EXPECT_EQ(Complaint(BareRows(), {.max_rows = 2}), "rows.entries makes 3 rows; the limit is 2");
  EXPECT_EQ(Complaint(BareRows(), {.max_row_entries = 7}),
            "rows.velocity_index makes 8 entries; the limit is 7");
  EXPECT_EQ(Complaint(BareRows(), {.max_row_pairs = 5}),
            "rows.velocity_index makes 6 pairs of trees; the limit is 5");
}

TEST(ConstraintRowsTest, FieldsAreCheckedInTheOrderOfTheSchema) {
  ProblemArrays arrays = GivenRows();
  arrays.rows.force_offset[0] = kNaN;
  EXPECT_EQ(Complaint(arrays).substr(0, 20), "rows.force_offset[0]");
  arrays.rows.stiffness[2] = kNaN;
  EXPECT_EQ(Complaint(arrays).substr(0, 17), "rows.stiffness[2]");
  arrays.bodies.mass[1] = 0;
  EXPECT_EQ(Complaint(arrays).substr(0, 14), "bodies.mass[1]");
}

TEST(ConstraintRowsTest, NothingIsLeftOfAnEarlierProblem) {
  ContactProblem problem = Checked(GivenRows());
  ASSERT_TRUE(problem.Reset(WithoutRows().View()));
  EXPECT_EQ(problem.num_rows(), 0);
  EXPECT_EQ(problem.row_start().size(), 1u);
  ASSERT_TRUE(problem.Reset(GivenRows().View()));
  EXPECT_EQ(problem.num_rows(), 3);
  ProblemArrays bad = GivenRows();
  bad.rows.coefficient[3] = kNaN;
  EXPECT_FALSE(problem.Reset(bad.View()));
  EXPECT_EQ(problem.num_rows(), 0);
  EXPECT_TRUE(problem.row_entries().empty());
}

}  // namespace
}  // namespace sap::test::constraint_rows
