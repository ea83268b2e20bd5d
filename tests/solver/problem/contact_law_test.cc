// Contacts with more than one coefficient of friction: general cones, targets, adhesion, laws of
// Hunt & Crossley.
#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "solver/problem/contact_problem.h"
#include "tests/solver/problem/plain_problem.h"
#include "tests/support/random_problem.h"

namespace sap::test::contact_law {
namespace {

using Eigen::Matrix3d;
using Eigen::Vector3d;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int32_t kSap = 1;
constexpr int32_t kLagged = 2;
constexpr int32_t kSimilar = 3;

// A number per entry, none equal to another, so that a mix-up shows.
std::vector<double> Numbers(int64_t count, double first = 1) {
  std::vector<double> numbers(count);
  for (int64_t i = 0; i < count; ++i) numbers[i] = first + 0.125 * static_cast<double>(i);
  return numbers;
}

// With every array of cones and targets. Angular: contacts 0 (5 dofs) and 2 (3), both of bodies.
ProblemArrays GeneralProblem() {
  ProblemArrays arrays = PlainProblem();
  LawArrays& law = arrays.contacts.law;
  law.friction_2 = {0.4, 0.5, 0.6};
  law.torsional_friction = {0.1, 0, 0.2};
  law.rolling_friction = {0.01, 0.02, 0, 0, 0, 0};
  law.target_velocity = Numbers(9, -3);
  law.target_angular_velocity = Numbers(6, 3);
  law.adhesion = {0, 7, 0};
  law.guess_impulse = Numbers(9, -4);
  law.guess_angular_impulse = Numbers(6, 4);
  arrays.contacts.angular_jacobian = Numbers(3 * (5 + 3));
  LawArrays& body_law = arrays.body_contacts.law;
  body_law.friction_2 = {0.5, 0};
  body_law.torsional_friction = {0, 0.3};
  body_law.rolling_friction = {0, 0.03, 0.04, 0};
  body_law.target_velocity = Numbers(6, -2);
  body_law.target_angular_velocity = Numbers(6, 2);
  body_law.adhesion = {3, 0};
  body_law.guess_impulse = Numbers(6, 5);
  body_law.guess_angular_impulse = Numbers(6, -5);
  arrays.body_contacts.tangent = {
      0, 2 / std::sqrt(5.0), 1 / std::sqrt(5.0), 1 / std::sqrt(2.0), -1 / std::sqrt(2.0), 0};
  return arrays;
}

// The last contact of each message has a law of Hunt & Crossley.
ProblemArrays HuntCrossleyProblem() {
  ProblemArrays arrays = PlainProblem();
  for (const auto& [law, n] :
       {std::pair(&arrays.contacts.law, 3), std::pair(&arrays.body_contacts.law, 2)}) {
    law->law.assign(n, kSap);
    law->law.back() = n == 3 ? kLagged : kSimilar;
    law->hunt_crossley.elastic_force = Numbers(n, -10);
    law->hunt_crossley.dissipation = Numbers(n, 0.5);
    law->hunt_crossley.lagged_normal_impulse = Numbers(n, 2);
  }
  return arrays;
}

std::string ComplaintAfter(ProblemArrays arrays,
                           const std::function<void(ProblemArrays*)>& change) {
  change(&arrays);
  return Complaint(arrays);
}

using Kind = ConstraintKind;

TEST(ContactLawTest, GoodProblemsAreAccepted) {
  EXPECT_EQ(Complaint(PlainProblem()), "");
  EXPECT_EQ(Complaint(GeneralProblem()), "");
  EXPECT_EQ(Complaint(HuntCrossleyProblem()), "");
}

// An array of either message, by what may stand in it.
struct LawField {
  const char* name;
  bool negative_is_fine;
};

constexpr LawField kLawFields[] = {
    {"friction_2", false},
    {"torsional_friction", false},
    {"rolling_friction", false},
    {"target_velocity", true},
    {"target_angular_velocity", true},
    {"adhesion", false},
    {"guess_impulse", true},
    {"guess_angular_impulse", true},
    {"hunt_crossley.elastic_force", true},
    {"hunt_crossley.dissipation", false},
    {"hunt_crossley.lagged_normal_impulse", false},
};

class LawFieldTest : public ::testing::TestWithParam<std::tuple<LawField, bool>> {
 protected:
  static const LawField& Field() { return std::get<0>(GetParam()); }
  static bool OfBodies() { return std::get<1>(GetParam()); }
  static std::string Name() {
    return (OfBodies() ? "body_contacts." : "contacts.") + std::string(Field().name);
  }
  static std::vector<double>* Array(ProblemArrays* arrays) { return FindArray(arrays, Name()); }
  // A problem in which the array is given.
  static ProblemArrays Good() {
    ProblemArrays general = GeneralProblem();
    return Array(&general)->empty() ? HuntCrossleyProblem() : general;
  }
  static int Size() {
    ProblemArrays good = Good();
    return static_cast<int>(Array(&good)->size());
  }
  static std::string WithLast(double value) {
    return ComplaintAfter(Good(), [&](ProblemArrays* a) { Array(a)->back() = value; });
  }
  static std::string Refusal(const std::string& value) {
    return Name() + "[" + std::to_string(Size() - 1) + "] is " + value + "; it must be finite" +
           (Field().negative_is_fine ? "" : " and >= 0");
  }
};

TEST_P(LawFieldTest, ValuesThatAreNotFiniteAreRefused) {
  EXPECT_EQ(WithLast(kNaN), Refusal("NaN"));
  EXPECT_EQ(WithLast(kInfinity), Refusal("inf"));
  EXPECT_EQ(WithLast(-kInfinity), Refusal("-inf"));
}

TEST_P(LawFieldTest, NegativeValuesAreRefusedWhereTheyMeanNothing) {
  EXPECT_EQ(WithLast(-0.3), Field().negative_is_fine ? "" : Refusal("-0.3"));
  EXPECT_EQ(WithLast(-5e-324), Field().negative_is_fine ? "" : Refusal("-5e-324"));
}

TEST_P(LawFieldTest, LengthHasToFitTheContacts) {
  for (const int change : {-1, 1}) {
    const std::string begins = Name() + " has " + std::to_string(Size() + change) + " values; " +
                               std::to_string(Size()) + " are needed for ";
    const std::string complaint = ComplaintAfter(
        Good(), [&](ProblemArrays* a) { Array(a)->resize(Array(a)->size() + change, 0.0); });
    EXPECT_EQ(complaint.substr(0, begins.size()), begins);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryField, LawFieldTest,
                         ::testing::Combine(::testing::ValuesIn(kLawFields), ::testing::Bool()),
                         [](const ::testing::TestParamInfo<std::tuple<LawField, bool>>& info) {
                           std::string name = std::get<0>(info.param).name;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name + (std::get<1>(info.param) ? "_of_bodies" : "_by_jacobian");
                         });

TEST(ContactLawTest, AngularJacobiansAreFiniteAndFitTheirContacts) {
  EXPECT_EQ(ComplaintAfter(GeneralProblem(),
                           [](ProblemArrays* a) { a->contacts.angular_jacobian.back() = kNaN; }),
            "contacts.angular_jacobian[23] is NaN; it must be finite");
  EXPECT_EQ(ComplaintAfter(GeneralProblem(),
                           [](ProblemArrays* a) { a->contacts.angular_jacobian.pop_back(); }),
            "contacts.angular_jacobian has 23 values; 24 are needed for 2 contacts with a "
            "torsional or rolling coefficient > 0");
  EXPECT_EQ(
      ComplaintAfter(PlainProblem(), [](ProblemArrays* a) { a->contacts.angular_jacobian = {1}; }),
      "contacts.angular_jacobian has 1 values; 0 are needed for 0 contacts with a torsional "
      "or rolling coefficient > 0");
}

TEST(ContactLawTest, TangentsAreFiniteAndFitTheirContacts) {
  EXPECT_EQ(ComplaintAfter(GeneralProblem(),
                           [](ProblemArrays* a) { a->body_contacts.tangent[4] = kInfinity; }),
            "body_contacts.tangent[4] is inf; it must be finite");
  EXPECT_EQ(ComplaintAfter(GeneralProblem(),
                           [](ProblemArrays* a) { a->body_contacts.tangent.pop_back(); }),
            "body_contacts.tangent has 5 values; 6 are needed for 2 body contacts (see "
            "body_contacts.body_a)");
}

TEST(ContactLawTest, AFrictionlessContactHasNoOtherFriction) {
  const auto with = [](auto LawArrays::*array, std::vector<double> values) {
    return ComplaintAfter(PlainProblem(), [&](ProblemArrays* a) {
      a->contacts.law.friction[1] = 0;
      a->contacts.law.*array = values;
    });
  };
  EXPECT_EQ(with(&LawArrays::friction_2, {0.1, 0, 0.1}), "");
  EXPECT_EQ(with(&LawArrays::friction_2, {0.1, 0.2, 0.1}),
            "contacts.friction_2[1] is 0.2; it must be 0 where contacts.friction is 0");
  EXPECT_EQ(with(&LawArrays::torsional_friction, {0, 0.1, 0}),
            "contacts.torsional_friction[1] is 0.1; it must be 0 where contacts.friction is 0");
  EXPECT_EQ(with(&LawArrays::rolling_friction, {0, 0, 0, 0.1, 0, 0}),
            "contacts.rolling_friction[3] is 0.1; it must be 0 where contacts.friction is 0");
  EXPECT_EQ(with(&LawArrays::adhesion, {0, 5, 0}), "");
}

struct KindCase {
  double friction_2, torsional, rolling_1, rolling_2, adhesion;
  Kind kind;
};

// Kinds of a contact with friction 0.5.
TEST(ContactLawTest, TheKindFollowsFromTheCoefficients) {
  const KindCase cases[] = {{0.5, 0, 0, 0, 0, Kind::kFriction},
                            {0.4, 0, 0, 0, 0, Kind::kCone},
                            {0.0, 0, 0, 0, 0, Kind::kCone},
                            {0.5, 0, 0, 0, 9, Kind::kCone},
                            {0.5, 0.1, 0, 0, 0, Kind::kSpinCone},
                            {0.4, 0.1, 0, 0, 9, Kind::kSpinCone},
                            {0.5, 0, 0.1, 0, 0, Kind::kRollingCone},
                            {0.5, 0, 0, 0.1, 0, Kind::kRollingCone},
                            {0.4, 0.1, 0.2, 0.3, 9, Kind::kRollingCone}};
  for (const KindCase& c : cases) {
    ProblemArrays arrays = PlainProblem();
    LawArrays& law = arrays.body_contacts.law;
    law.friction_2 = {0.5, c.friction_2};
    law.torsional_friction = {0, c.torsional};
    law.rolling_friction = {0, 0, c.rolling_1, c.rolling_2};
    law.adhesion = {0, c.adhesion};
    const ContactProblem problem = Checked(arrays);
    EXPECT_EQ(problem.contact_kind()[4], c.kind);
    EXPECT_EQ(problem.contact_kind()[3], Kind::kFriction);
    EXPECT_EQ(problem.contact_extra()[3], -1);
    ASSERT_EQ(problem.contact_extra()[4], c.kind == Kind::kFriction ? -1 : 0);
    EXPECT_EQ(problem.num_angular(), HasAngularRows(c.kind) ? 1 : 0);
    if (c.kind == Kind::kFriction) continue;
    const GeneralFriction& general = problem.general_friction()[0];
    EXPECT_EQ(general.mu_2, c.friction_2);
    EXPECT_EQ(general.angular, (std::array{c.rolling_1, c.rolling_2, c.torsional}));
    EXPECT_EQ(general.adhesion, c.adhesion);
    EXPECT_EQ(general.angular_contact, HasAngularRows(c.kind) ? 0 : -1);
  }
}

// A target velocity alone changes no law.
TEST(ContactLawTest, AContactWithATargetVelocityAloneIsPlainFriction) {
  ProblemArrays arrays = PlainProblem();
  arrays.contacts.law.target_velocity = Numbers(9);
  const ContactProblem problem = Checked(arrays);
  for (const Kind kind : problem.contact_kind()) EXPECT_EQ(kind, Kind::kFriction);
  EXPECT_TRUE(problem.general_friction().empty());
}

TEST(ContactLawTest, TheSecondCoefficientIsTheFirstWhereItIsAbsent) {
  ProblemArrays arrays = PlainProblem();
  arrays.contacts.law.friction = {0.1, 0.2, 0.3};
  arrays.contacts.law.adhesion = {0, 1, 0};
  EXPECT_EQ(Checked(arrays).general_friction()[0].mu_2, 0.2);
}

TEST(ContactLawTest, AngularContactsAreNumberedContactsFirst) {
  const ProblemArrays arrays = GeneralProblem();
  const ContactProblem problem = Checked(arrays);
  EXPECT_EQ(problem.num_angular(), 4);
  std::vector<int> numbers;
  for (int i = 0; i < problem.num_contacts(); ++i) {
    numbers.push_back(problem.general_friction()[problem.contact_extra()[i]].angular_contact);
  }
  EXPECT_EQ(numbers, (std::vector{0, -1, 1, 2, 3}));
  EXPECT_TRUE(std::ranges::equal(problem.angular_start(), std::vector{0, 15, 24, 60, 78}));
  const std::vector<double>& given = arrays.contacts.angular_jacobian;
  EXPECT_TRUE(std::ranges::equal(problem.angular_jacobian().first(given.size()), given));
}

// The frame of body contact i, which its Jacobian with respect to the linear velocity of body_a
// holds.
Matrix3d FrameOf(const ContactProblem& problem, int contact) {
  Matrix3d R;
  const double* J = problem.jacobian().data() + problem.jacobian_start()[contact];
  for (int row = 0; row < 3; ++row) {
    for (int i = 0; i < 3; ++i) R(i, row) = J[6 * row + i];
  }
  return R;
}

Vector3d VectorAt(std::span<const double> values, int64_t i) {
  return {values[3 * i], values[3 * i + 1], values[3 * i + 2]};
}

// J_a w_a + J_b w_b of the angular Jacobians is R' (w_a - w_b), whatever the bodies' velocities.
TEST(ContactLawTest, AngularJacobiansOfBodiesGiveTheRelativeAngularVelocity) {
  const ContactProblem problem = Checked(GeneralProblem());
  Random random(3);
  const Eigen::VectorXd v_a = UniformVector(&random, 6, -1, 1);
  const Eigen::VectorXd v_b = UniformVector(&random, 6, -1, 1);
  using BodyJacobian = Eigen::Matrix<double, 3, 6, Eigen::RowMajor>;
  const auto block = [&](int64_t start) {
    return Eigen::Map<const BodyJacobian>(problem.angular_jacobian().data() + start);
  };
  const Vector3d of_two = block(24) * v_a + block(24 + 18) * v_b;
  const Vector3d expected = FrameOf(problem, 3).transpose() * (v_a.tail(3) - v_b.tail(3));
  EXPECT_LE((of_two - expected).norm(), 1e-15);
  const Vector3d of_one = block(60) * v_a;
  EXPECT_LE((of_one - FrameOf(problem, 4).transpose() * v_a.tail(3)).norm(), 1e-15);
}

TEST(ContactLawTest, TargetsOfContactsAreTakenAsTheyAre) {
  const ProblemArrays arrays = GeneralProblem();
  const ContactProblem problem = Checked(arrays);
  EXPECT_TRUE(std::ranges::equal(problem.v_hat().first(9), arrays.contacts.law.target_velocity));
  EXPECT_TRUE(std::ranges::equal(problem.angular_v_hat().first(6),
                                 arrays.contacts.law.target_angular_velocity));
}

TEST(ContactLawTest, TargetsOfBodyContactsAreTurnedIntoTheContactFrame) {
  const ProblemArrays arrays = GeneralProblem();
  const ContactProblem problem = Checked(arrays);
  const LawArrays& law = arrays.body_contacts.law;
  for (int i = 0; i < 2; ++i) {
    const Matrix3d R = FrameOf(problem, 3 + i);
    const Vector3d linear = R.transpose() * VectorAt(law.target_velocity, i);
    EXPECT_LE((VectorAt(problem.v_hat(), 3 + i) - linear).norm(), 1e-15);
    const Vector3d angular = R.transpose() * VectorAt(law.target_angular_velocity, i);
    EXPECT_LE((VectorAt(problem.angular_v_hat(), 2 + i) - angular).norm(), 1e-15);
  }
}

TEST(ContactLawTest, AngularTargetsAreZeroWhereAbsent) {
  ProblemArrays arrays = GeneralProblem();
  arrays.contacts.law.target_angular_velocity.clear();
  arrays.body_contacts.law.target_angular_velocity.clear();
  const ContactProblem problem = Checked(arrays);
  ASSERT_EQ(problem.angular_v_hat().size(), 12u);
  for (const double v : problem.angular_v_hat()) EXPECT_EQ(v, 0);
}

// v_hat = (-0, -0, -phi0 / (dt + tau_d)): the signs of the zeros are those of -0 - b.
TEST(ContactLawTest, TheTargetFollowsFromTheDistanceWhereItIsAbsent) {
  ProblemArrays arrays = PlainProblem();
  arrays.time_step = 0.25;
  for (LawArrays* law : {&arrays.contacts.law, &arrays.body_contacts.law}) {
    law->signed_distance.assign(law->friction.size(), -3);
    law->relaxation_time.assign(law->friction.size(), 0.5);
  }
  const ContactProblem problem = Checked(arrays);
  for (int i = 0; i < 5; ++i) {
    const Vector3d v_hat = VectorAt(problem.v_hat(), i);
    EXPECT_EQ(v_hat, Vector3d(0, 0, 4));
    EXPECT_TRUE(std::signbit(v_hat[0]));
    EXPECT_TRUE(std::signbit(v_hat[1]));
  }
}

TEST(ContactLawTest, TheDistanceIsNotReadWhereATargetIsGiven) {
  for (const std::vector<double>& distance : {std::vector<double>(), {kNaN, 1, 2, 3}}) {
    EXPECT_EQ(ComplaintAfter(GeneralProblem(),
                             [&](ProblemArrays* a) {
                               a->contacts.law.signed_distance = distance;
                               a->body_contacts.law.signed_distance = distance;
                             }),
              "");
  }
}

TEST(ContactLawTest, AGivenTangentIsTheFirstAxis) {
  const ProblemArrays arrays = GeneralProblem();
  const ContactProblem problem = Checked(arrays);
  for (int i = 0; i < 2; ++i) {
    const Matrix3d R = FrameOf(problem, 3 + i);
    const Vector3d n = VectorAt(arrays.body_contacts.normal, i);
    const Vector3d t1 = VectorAt(arrays.body_contacts.tangent, i);
    EXPECT_LE((R.col(0) - t1).norm(), 1e-15);
    EXPECT_LE((R.col(1) - n.cross(t1)).norm(), 1e-15);
    EXPECT_LE((R.col(2) - n).norm(), 1e-15);
  }
}

TEST(ContactLawTest, TangentsAreUnitVectorsOrthogonalToTheNormal) {
  const auto with = [](Vector3d tangent) {
    return ComplaintAfter(GeneralProblem(), [&](ProblemArrays* a) {
      a->body_contacts.normal = {1, 0, 0, 0, 0, 1};
      a->body_contacts.tangent = {0, 1, 0, tangent.x(), tangent.y(), tangent.z()};
    });
  };
  EXPECT_EQ(with({0.6, 0.8, 0}), "");
  EXPECT_EQ(with({0, 0, 0}),
            "body_contacts.tangent[3] starts a vector of length 0; it must be 1 within 1e-6");
  EXPECT_EQ(with({2, 0, 0}),
            "body_contacts.tangent[3] starts a vector of length 2; it must be 1 within 1e-6");
  EXPECT_EQ(with({0.8, 0, -0.6}),
            "body_contacts.tangent[3] starts a vector whose product with the normal is -0.6; it "
            "must be 0 within 1e-6");
  EXPECT_EQ(with({1, 0, 0.9e-6}), "");
  EXPECT_NE(with({1, 0, 1.1e-6}), "");
}

TEST(ContactLawTest, HuntCrossleyContactsKeepTheirParameters) {
  const ProblemArrays arrays = HuntCrossleyProblem();
  const ContactProblem problem = Checked(arrays);
  EXPECT_TRUE(
      std::ranges::equal(problem.contact_kind(),
                         std::vector{Kind::kFriction, Kind::kFriction, Kind::kHuntCrossleyLagged,
                                     Kind::kFriction, Kind::kHuntCrossleySimilar}));
  EXPECT_TRUE(std::ranges::equal(problem.contact_extra(), std::vector{-1, -1, 0, -1, 1}));
  ASSERT_EQ(problem.hunt_crossley().size(), 2u);
  for (int i = 0; i < 2; ++i) {
    const LawArrays& law = i == 0 ? arrays.contacts.law : arrays.body_contacts.law;
    EXPECT_EQ(problem.hunt_crossley()[i].elastic_force, law.hunt_crossley.elastic_force.back());
    EXPECT_EQ(problem.hunt_crossley()[i].dissipation, law.hunt_crossley.dissipation.back());
    EXPECT_EQ(problem.hunt_crossley()[i].lagged_normal_impulse,
              law.hunt_crossley.lagged_normal_impulse.back());
  }
}

// The arrays of other contacts are not read; their lengths are.
TEST(ContactLawTest, HuntCrossleyParametersOfOtherContactsAreNotRead) {
  EXPECT_EQ(ComplaintAfter(HuntCrossleyProblem(),
                           [](ProblemArrays* a) {
                             a->contacts.law.hunt_crossley.elastic_force[0] = kNaN;
                             a->contacts.law.hunt_crossley.dissipation[1] = -1;
                             a->contacts.law.hunt_crossley.lagged_normal_impulse[0] = -kInfinity;
                           }),
            "");
  EXPECT_EQ(
      ComplaintAfter(HuntCrossleyProblem(),
                     [](ProblemArrays* a) { a->contacts.law.hunt_crossley.dissipation.clear(); }),
      "contacts.hunt_crossley.dissipation has 0 values; 3 are needed for 3 contacts (see "
      "contacts.tree_a)");
}

TEST(ContactLawTest, HuntCrossleyParametersAreNotReadWhereNoContactHasSuchALaw) {
  EXPECT_EQ(ComplaintAfter(
                PlainProblem(),
                [](ProblemArrays* a) { a->contacts.law.hunt_crossley.elastic_force = {kNaN}; }),
            "");
}

// Stiffness 0 is a face of a pressure field; a contact in the cone cannot have it.
TEST(ContactLawTest, StiffnessOfHuntCrossleyMayBeZeroAndIsAlwaysNeeded) {
  const auto with = [](std::vector<double> stiffness) {
    ProblemArrays arrays = HuntCrossleyProblem();
    arrays.contacts.law.regularization_n.assign(3, 0.1);
    arrays.contacts.law.stiffness = stiffness;
    return arrays;
  };
  EXPECT_EQ(Complaint(with({1, 2, 0})), "");
  EXPECT_EQ(Complaint(with({1, 0, 2})), "contacts.stiffness[1] is 0; it must be finite and > 0");
  EXPECT_EQ(Complaint(with({1, 2, -1})), "contacts.stiffness[2] is -1; it must be finite and >= 0");
  EXPECT_EQ(Complaint(with({})),
            "contacts.stiffness has 0 values; 3 are needed for 3 contacts (see contacts.tree_a)");
  const ContactProblem problem = Checked(with({1, 2, 3}));
  EXPECT_TRUE(
      std::ranges::equal(problem.stiffness().first(3), std::vector{kInfinity, kInfinity, 3.0}));
}

TEST(ContactLawTest, HuntCrossleyContactsHaveNoOtherFrictionAndNoAdhesion) {
  const auto with = [](auto LawArrays::*array, std::vector<double> values) {
    return ComplaintAfter(HuntCrossleyProblem(),
                          [&](ProblemArrays* a) { a->body_contacts.law.*array = values; });
  };
  EXPECT_EQ(with(&LawArrays::friction_2, {0.3, 0.5}), "");
  EXPECT_EQ(with(&LawArrays::friction_2, {0.5, 0.3}),
            "body_contacts.friction_2[1] is 0.3; it must be 0.5 for a law of Hunt & Crossley");
  EXPECT_EQ(
      with(&LawArrays::torsional_friction, {0.1, 0.3}),
      "body_contacts.torsional_friction[1] is 0.3; it must be 0 for a law of Hunt & Crossley");
  EXPECT_EQ(with(&LawArrays::rolling_friction, {0, 0, 0, 0.3}),
            "body_contacts.rolling_friction[3] is 0.3; it must be 0 for a law of Hunt & Crossley");
  EXPECT_EQ(with(&LawArrays::adhesion, {5, 0}), "");
  EXPECT_EQ(with(&LawArrays::adhesion, {5, 4}),
            "body_contacts.adhesion[1] is 4; it must be 0 for a law of Hunt & Crossley");
}

TEST(ContactLawTest, LawsAreKnownAndOnePerContact) {
  const auto with = [](std::vector<int32_t> law) {
    return ComplaintAfter(PlainProblem(), [&](ProblemArrays* a) { a->contacts.law.law = law; });
  };
  EXPECT_EQ(with({0, 1, 0}), "");
  EXPECT_EQ(with({0, 4, 0}), "contacts.law[1] is 4; this version knows 0, 1, 2 and 3");
  EXPECT_EQ(with({-1, 4, 0}), "contacts.law[0] is -1; this version knows 0, 1, 2 and 3");
  EXPECT_EQ(with({0, 1}),
            "contacts.law has 2 values; 3 are needed for 3 contacts (see contacts.tree_a)");
}

TEST(ContactLawTest, NothingIsLeftOfAnEarlierProblem) {
  ContactProblem problem = Checked(GeneralProblem());
  ASSERT_TRUE(problem.Reset(HuntCrossleyProblem().View()));
  EXPECT_EQ(problem.num_angular(), 0);
  EXPECT_TRUE(problem.general_friction().empty());
  ASSERT_TRUE(problem.Reset(PlainProblem().View()));
  EXPECT_TRUE(problem.hunt_crossley().empty());
  for (const int extra : problem.contact_extra()) EXPECT_EQ(extra, -1);
}

TEST(ContactLawTest, ParametersOfTheRegularizationAreInRange) {
  const auto with = [](double ContactProblemView::Regularization::*parameter, double value) {
    return ComplaintAfter(PlainProblem(),
                          [&](ProblemArrays* a) { a->regularization.*parameter = value; });
  };
  using Regularization = ContactProblemView::Regularization;
  EXPECT_EQ(with(&Regularization::row_beta, 0), "");
  EXPECT_EQ(with(&Regularization::row_beta, -1),
            "regularization.row_beta is -1; it must be finite and >= 0");
  EXPECT_EQ(with(&Regularization::stiction_speed, 0),
            "regularization.stiction_speed is 0; it must be finite and > 0");
  EXPECT_EQ(with(&Regularization::stiction_speed, kInfinity),
            "regularization.stiction_speed is inf; it must be finite and > 0");
  EXPECT_EQ(with(&Regularization::reference_time_step, 0), "");  // absent
  EXPECT_EQ(with(&Regularization::reference_time_step, -1),
            "regularization.reference_time_step is -1; it must be finite and > 0");
  EXPECT_EQ(with(&Regularization::reference_time_step, kInfinity),
            "regularization.reference_time_step is inf; it must be finite and > 0");
}

}  // namespace
}  // namespace sap::test::contact_law
