#include "solver/model/load_paths.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "tests/solver/prepared_problem.h"
#include "tests/support/dense_algebra.h"
#include "tests/support/dense_problem.h"
#include "tests/support/random_constraints.h"
#include "tests/support/same_bits.h"
#include "tests/support/scaled_problem.h"

namespace sap::test {
namespace {

constexpr double kFall = 0.0981;  // what gravity does to a speed in a step

Eigen::Matrix<double, 6, 1> Falling() {
  Eigen::Matrix<double, 6, 1> v = Eigen::Matrix<double, 6, 1>::Zero();
  v[2] = -kFall;
  return v;
}

// w of every contact, as the model has it, in 1/kg.
std::vector<double> DelassusEstimates(const ProblemArrays& arrays, bool split_islands = true) {
  const PreparedProblem p(arrays, split_islands);
  std::vector<double> w(p.problem.num_contacts());
  for (int i = 0; i < p.problem.num_contacts(); ++i) {
    const int island = p.graph.islands().island_of_tree()[p.problem.trees_of_contact(i).front()];
    w[i] = p.model.w[i] / p.model.constants(island).mass_unit;
  }
  return w;
}
std::vector<double> ByRule(ProblemArrays arrays, DelassusRule rule) {
  arrays.regularization.rule = rule;
  return DelassusEstimates(arrays);
}

// The rule in dense matrices and 80-bit arithmetic, trees and pairs by their numbers in the
// problem.
class DenseLoadPaths {
 public:
  explicit DenseLoadPaths(const ProblemArrays& arrays)
      : arrays_(arrays), dense_(arrays), starts_(VelocityStarts(arrays)) {
    d_ = dense_.v_star() - ToVectorL(arrays.trees.initial_velocity);
    for (size_t i = 0; i < dense_.contacts().size(); ++i) {
      const int a = arrays.contacts.tree_a[i], b = arrays.contacts.tree_b[i];
      pairs_[b < 0 ? Pair(a, b) : Pair(std::min(a, b), std::max(a, b))].push_back(
          static_cast<int>(i));
    }
    FindComponents();
    FindShares();
    Iterate();
  }

  std::vector<long double> DelassusEstimates() const {
    std::vector<long double> w(dense_.contacts().size());
    for (const auto& [pair, contacts] : pairs_) {
      const long double M = Mass(pair);
      const long double U = std::max(Speed(pair, pair.first), Speed(pair, pair.second));
      for (const int i : contacts) {
        w[i] = dense_.contacts()[i].w;
        if (M <= 0) continue;
        const long double n = contacts.size();
        w[i] = std::min(w[i], n / M);
        if (pair.second < 0) continue;
        const long double heavier =
            std::min(AloneDelassus(i, pair.first), AloneDelassus(i, pair.second));
        const long double by_force = n * arrays_.regularization.load_reference_speed / (M * U);
        w[i] = std::min(w[i], std::max(by_force, heavier));
      }
    }
    return w;
  }

 private:
  using Pair = std::pair<int, int>;

  MatrixL Block(int contact, int tree) const {
    return dense_.contacts()[contact].J.block(0, starts_[tree], 3,
                                              starts_[tree + 1] - starts_[tree]);
  }
  VectorL Of(int tree) const {
    return d_.segment(starts_[tree], starts_[tree + 1] - starts_[tree]);
  }
  MatrixL MatrixOf(int tree) const {
    const int n = starts_[tree + 1] - starts_[tree];
    return dense_.A().block(starts_[tree], starts_[tree], n, n);
  }
  long double AloneDelassus(int contact, int tree) const {
    const MatrixL J = Block(contact, tree);
    return (J * InverseOf(MatrixOf(tree)) * J.transpose()).norm() / 3;
  }
  long double Speed(const Pair& pair, int tree) const {
    long double speed = 0;
    if (tree < 0) return speed;
    for (const int i : pairs_.at(pair)) speed = std::max(speed, (Block(i, tree) * Of(tree)).norm());
    return speed;
  }
  long double Energy(int tree) const { return Of(tree).dot(MatrixOf(tree) * Of(tree)); }

  void FindComponents() {
    component_.resize(arrays_.trees.dofs.size());
    for (size_t tree = 0; tree < component_.size(); ++tree) component_[tree] = tree;
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& [pair, contacts] : pairs_) {
        if (pair.second < 0) continue;
        size_t &a = component_[pair.first], &b = component_[pair.second];
        changed |= a != b;
        a = b = std::min(a, b);
      }
    }
  }

  void FindShares() {
    const int trees = static_cast<int>(component_.size());
    for (int t = 0; t < trees; ++t) {
      long double sum = 0, fastest = 0;
      for (const auto& [pair, contacts] : pairs_) {
        if (pair.first != t && pair.second != t) continue;
        const long double U = Speed(pair, t);
        fastest = std::max(fastest, U);
        long double press = 0;
        for (const int i : contacts) press -= (Block(i, t) * Of(t))[2];
        const long double c = U > 0 ? std::max(0.0L, press / contacts.size() / U) : 0;
        const long double a = std::pow(std::max(0.0L, (c - 0.2L) / 0.8L) * U, 2);
        share_[{pair, t}] = a;
        sum += a;
      }
      for (auto& [key, share] : share_) {
        if (key.second == t && share > 0) share /= sum;
      }
      if (fastest > 0) component_mass_[component_[t]] += Energy(t) / (fastest * fastest);
    }
  }

  // f own, or f received.
  long double Passed(const Pair& pair, int tree, const std::vector<long double>& received) const {
    const long double f = share_.at({pair, tree});
    if (f == 0) return 0;
    const long double U = Speed(pair, tree);
    const long double largest = std::max(Speed(pair, pair.first), Speed(pair, pair.second));
    return f * (Energy(tree) / (U * U) * (U / largest) + received[tree]);
  }

  void Iterate() {
    received_.assign(component_.size(), 0);
    std::map<size_t, bool> done;
    for (int round = 0; round < 64; ++round) {
      std::vector<long double> next(received_.size(), 0);
      for (const auto& [pair, contacts] : pairs_) {
        if (pair.second < 0) continue;
        next[pair.second] += Passed(pair, pair.first, received_);
        next[pair.first] += Passed(pair, pair.second, received_);
      }
      std::map<size_t, bool> settled;
      for (size_t t = 0; t < next.size(); ++t) {
        const size_t root = component_[t];
        if (done[root]) continue;
        next[t] = std::min(next[t], component_mass_[root]);
        settled.try_emplace(root, true);
        if (std::abs(next[t] - received_[t]) > 1e-3L * next[t]) settled[root] = false;
        received_[t] = next[t];
      }
      for (const auto& [root, is_settled] : settled) done[root] = is_settled;
    }
  }

  long double Mass(const Pair& pair) const {
    long double M = Passed(pair, pair.first, received_);
    if (pair.second >= 0) M += Passed(pair, pair.second, received_);
    return std::min(M, component_mass_.at(component_[pair.first]));
  }

  const ProblemArrays& arrays_;
  const DenseProblem dense_;
  const std::vector<int> starts_;
  VectorL d_;
  std::map<Pair, std::vector<int>> pairs_;
  std::vector<size_t> component_;
  std::map<size_t, long double> component_mass_;
  std::map<std::pair<Pair, int>, long double> share_;
  std::vector<long double> received_;
};

// Random trees with constraints of every kind, falling and driven at random.
ProblemArrays RandomLoads(int seed) {
  ProblemArrays arrays = RandomConstraintsOfEveryKind(
      seed, {.contacts = {.trees = 12, .contacts = 40, .max_dofs = 7}, .rows = 10});
  Random random(seed);
  const size_t velocities = arrays.trees.free_motion_velocity.size();
  for (size_t i = 0; i < velocities; ++i) {
    arrays.trees.initial_velocity.push_back(arrays.trees.free_motion_velocity[i] -
                                            Uniform(&random, -0.2, 0.2));
  }
  arrays.contacts.law.delassus_estimate.clear();
  arrays.contacts.law.regularization_t.clear();  // else nothing depends on w
  arrays.regularization.rule = DelassusRule::kLoadPath;
  if (seed % 3 == 0) arrays.regularization.load_reference_speed = 0.05;
  return arrays;
}

class RandomLoadsTest : public ::testing::TestWithParam<int> {};

TEST_P(RandomLoadsTest, DelassusEstimatesAreThoseOfTheDenseFormulas) {
  const ProblemArrays arrays = RandomLoads(GetParam());
  const std::vector<double> w = DelassusEstimates(arrays);
  const std::vector<long double> expected = DenseLoadPaths(arrays).DelassusEstimates();
  const std::vector<double> full = ByRule(arrays, DelassusRule::kFull);
  ASSERT_EQ(w.size(), expected.size());
  int bounded = 0;
  for (size_t i = 0; i < w.size(); ++i) {
    if (w[i] == 0) continue;  // a law of Hunt & Crossley without friction has no use for it
    EXPECT_NEAR(w[i], static_cast<double>(expected[i]), 1e-10 * w[i]) << i;
    bounded += w[i] < 0.99 * full[i];
  }
  EXPECT_GT(bounded, 3);
}

TEST_P(RandomLoadsTest, NoContactIsSofterThanByTheFullRule) {
  const ProblemArrays arrays = RandomLoads(GetParam());
  const std::vector<double> w = DelassusEstimates(arrays);
  const std::vector<double> full = ByRule(arrays, DelassusRule::kFull);
  for (size_t i = 0; i < w.size(); ++i) EXPECT_LE(w[i], full[i]) << i;
}

TEST_P(RandomLoadsTest, OneIslandOrManyGiveTheSameBits) {
  const ProblemArrays arrays = RandomLoads(GetParam());
  EXPECT_TRUE(SameBits(DelassusEstimates(arrays, true), DelassusEstimates(arrays, false)));
}

TEST_P(RandomLoadsTest, MassesTimesAPowerOfTwoDivideThem) {
  const ProblemArrays arrays = RandomLoads(GetParam());
  const std::vector<double> w = DelassusEstimates(arrays);
  for (const int exponent : {-30, 1, 17}) {
    std::vector<double> scaled = DelassusEstimates(Scaled(arrays, std::ldexp(1.0, exponent)));
    Scale(&scaled, std::ldexp(1.0, exponent));
    EXPECT_TRUE(SameBits(scaled, w)) << exponent;
  }
}

TEST_P(RandomLoadsTest, TheSizeOfTheLoadDoesNotCount) {
  ProblemArrays arrays = RandomLoads(GetParam());
  arrays.regularization.load_reference_speed = std::numeric_limits<double>::infinity();
  arrays.trees.initial_velocity.assign(arrays.trees.free_motion_velocity.size(), 0.0);
  const std::vector<double> w = DelassusEstimates(arrays);
  for (const int exponent : {-600, -3, 600}) {
    ProblemArrays scaled = arrays;
    Scale(&scaled.trees.free_motion_velocity, std::ldexp(1.0, exponent));
    EXPECT_TRUE(SameBits(DelassusEstimates(scaled), w)) << exponent;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomLoadsTest, ::testing::Range(0, 12));

// Balls of radius 0.5 m on top of each other, the lowest on the floor, all falling.
ProblemArrays Tower(const std::vector<double>& masses) {
  ProblemArrays arrays;
  arrays.regularization.rule = DelassusRule::kLoadPath;
  for (size_t i = 0; i < masses.size(); ++i) {
    const double height = static_cast<double>(i);
    arrays.AddBody(masses[i], Eigen::Vector3d::Constant(0.1 * masses[i]), {0, 0, height + 0.5},
                   Falling());
    arrays.AddBodyContact(static_cast<int>(i), static_cast<int>(i) - 1, {0, 0, height}, {0, 0, 1},
                          {.stiffness = 1e12});
  }
  arrays.bodies.initial_velocity.assign(6 * masses.size(), 0.0);
  return arrays;
}

TEST(LoadPathsTest, EveryLevelOfATowerCarriesTheMassAboveIt) {
  const std::vector<double> masses(50, 2.0);
  const std::vector<double> w = DelassusEstimates(Tower(masses));
  for (size_t level = 0; level < masses.size(); ++level) {
    const double above = 2.0 * static_cast<double>(masses.size() - level);
    EXPECT_NEAR(w[level] * above, 1, 1e-12) << level;
  }
}

TEST(LoadPathsTest, ALightBallCarriesTheHeavyOnesOnIt) {
  const std::vector<double> w = DelassusEstimates(Tower({1, 1000, 1, 5000}));
  EXPECT_NEAR(w[0], 1 / 6002.0, 1e-15);
  EXPECT_NEAR(w[1], 1 / 6001.0, 1e-15);
  EXPECT_NEAR(w[2], 1 / 5001.0, 1e-15);
  EXPECT_NEAR(w[3], 1 / 5000.0, 1e-15);
}

TEST(LoadPathsTest, MassesArePassedOnOverSixtyFourLevels) {
  const std::vector<double> w = DelassusEstimates(Tower(std::vector<double>(100, 1.0)));
  EXPECT_NEAR(w[0], 1 / 65.0, 1e-12);
  EXPECT_NEAR(w[40], 1 / 60.0, 1e-12);
}

// A tree of three translations that falls on the floor at one point.
TEST(LoadPathsTest, ASinglePointMassHasTheEstimateOfTheFullRule) {
  ProblemArrays arrays;
  arrays.AddTree(3.0 * Eigen::Matrix3d::Identity(), Eigen::Vector3d(0, 0, -kFall));
  arrays.AddContact(0, Eigen::Matrix3d::Identity(), {});
  arrays.trees.initial_velocity.assign(3, 0.0);
  arrays.regularization.rule = DelassusRule::kLoadPath;
  EXPECT_TRUE(SameBits(DelassusEstimates(arrays), ByRule(arrays, DelassusRule::kFull)));
}

// A box of 1 m on its four lower corners: each may be as soft as a quarter of it needs.
ProblemArrays Box() {
  ProblemArrays arrays;
  arrays.regularization.rule = DelassusRule::kLoadPath;
  arrays.AddBody(2, Eigen::Vector3d::Constant(2 / 6.0), {0, 0, 0.5}, Falling());
  for (const double x : {-0.5, 0.5}) {
    for (const double y : {-0.5, 0.5}) arrays.AddBodyContact(0, -1, {x, y, 0}, {0, 0, 1}, {});
  }
  arrays.bodies.initial_velocity.assign(6, 0.0);
  return arrays;
}

TEST(LoadPathsTest, ASingleBoxHasTheEstimatesOfTheFullRule) {
  const ProblemArrays arrays = Box();
  EXPECT_TRUE(SameBits(DelassusEstimates(arrays), ByRule(arrays, DelassusRule::kFull)));
}

TEST(LoadPathsTest, WallsCarryNothingOfWhatFallsAlongThem) {
  ProblemArrays arrays = Tower({1, 7});
  const int left = arrays.AddBodyContact(1, -1, {-0.5, 0, 1.5}, {1, 0, 0}, {.stiffness = 1e12});
  std::vector<double> w = DelassusEstimates(arrays);
  EXPECT_NEAR(w[0], 1 / 8.0, 1e-15) << "the floor is a pair of its own";
  // Against the wall the ball of 7 kg alone counts, and its contact is with nothing else.
  EXPECT_EQ(w[left], ByRule(arrays, DelassusRule::kFull)[left]);
}

TEST(LoadPathsTest, TwoSupportsShareABody) {
  ProblemArrays arrays;
  arrays.regularization.rule = DelassusRule::kLoadPath;
  const Eigen::Vector3d inertia = Eigen::Vector3d::Constant(1);
  arrays.AddBody(1, inertia, {-1, 0, 0.5}, Falling());
  arrays.AddBody(1, inertia, {1, 0, 0.5}, Falling());
  arrays.AddBody(1000, 1000 * inertia, {0, 0, 1.5}, Falling());
  for (const int i : {0, 1}) {
    const double x = i == 0 ? -1 : 1;
    arrays.AddBodyContact(i, -1, {x, 0, 0}, {0, 0, 1}, {});
    arrays.AddBodyContact(2, i, {x, 0, 1}, {0, 0, 1}, {});
  }
  arrays.bodies.initial_velocity.assign(18, 0.0);
  const std::vector<double> w = DelassusEstimates(arrays);
  for (const int i : {0, 2}) {
    EXPECT_NEAR(w[i], 1 / 501.0, 1e-14);
    EXPECT_NEAR(w[i + 1], 1 / 500.0, 1e-14);
  }
}

TEST(LoadPathsTest, OtherIslandsDoNotCount) {
  const ProblemArrays tower = Tower({1, 30, 2, 500});
  const std::vector<double> alone = DelassusEstimates(tower);
  // The same bodies between those of a taller tower, and its contacts between the others.
  ProblemArrays both;
  both.regularization = tower.regularization;
  const ProblemArrays taller = Tower(std::vector<double>(60, 0.1));
  const auto add_body = [&](const ProblemArrays& from, int i, double x) {
    const double mass = from.bodies.mass[i];
    return both.AddBody(mass, Eigen::Vector3d::Constant(0.1 * mass), {x, 0, i + 0.5}, Falling());
  };
  std::vector<int> of_tower, of_taller;
  for (int i = 0; i < 60; ++i) {
    of_taller.push_back(add_body(taller, i, 100));
    if (i < 4) of_tower.push_back(add_body(tower, i, 0));
  }
  std::vector<int> contacts;
  for (int i = 59; i >= 0; --i) {
    const auto add = [&](const std::vector<int>& bodies, double x) {
      return both.AddBodyContact(bodies[i], i == 0 ? -1 : bodies[i - 1], {x, 0, 1.0 * i}, {0, 0, 1},
                                 {.stiffness = 1e12});
    };
    add(of_taller, 100);
    if (i < 4) contacts.insert(contacts.begin(), add(of_tower, 0));
  }
  both.bodies.initial_velocity.assign(6 * both.bodies.mass.size(), 0.0);
  for (const bool split_islands : {true, false}) {
    const std::vector<double> w = DelassusEstimates(both, split_islands);
    for (size_t i = 0; i < alone.size(); ++i) EXPECT_EQ(w[contacts[i]], alone[i]) << i;
  }
}

TEST(LoadPathsTest, BodiesAndTheirTreesHaveTheSameEstimates) {
  ProblemArrays bodies = RandomBodiesInContact(5, 12, 40);
  bodies.regularization.rule = DelassusRule::kLoadPath;
  bodies.bodies.initial_velocity.assign(72, 0.0);
  const std::vector<double> w = DelassusEstimates(bodies);
  const std::vector<double> of_trees = DelassusEstimates(WithBodiesAsTrees(bodies));
  for (size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(of_trees[i], w[i], 1e-11 * w[i]);
}

TEST(LoadPathsTest, WithoutForcesNothingIsCarried) {
  ProblemArrays arrays = Tower({1, 1000});
  arrays.bodies.initial_velocity = arrays.bodies.free_motion_velocity;
  EXPECT_TRUE(SameBits(DelassusEstimates(arrays), ByRule(arrays, DelassusRule::kFull)));
}

TEST(LoadPathsTest, GivenEstimatesStay) {
  ProblemArrays arrays = Tower({1, 1000});
  arrays.body_contacts.law.delassus_estimate = {0.25, 3};
  EXPECT_TRUE(SameBits(DelassusEstimates(arrays), {0.25, 3}));
}

// A finger of 20 g, driven by 40 N, presses a box of 2 kg, which falls, sideways.
TEST(LoadPathsTest, ADrivenFingerCountsByItsForceWithAReferenceSpeed) {
  const double push = 40 / 0.02 * 0.01;
  ProblemArrays arrays;
  arrays.regularization.rule = DelassusRule::kLoadPath;
  arrays.AddTree(Eigen::Matrix<double, 1, 1>(0.02), Eigen::Matrix<double, 1, 1>(push));
  arrays.AddTree(2 * Eigen::Matrix3d::Identity(), Eigen::Vector3d(0, 0, -kFall));
  ProblemArrays::Jacobian finger(3, 1), box(3, 3);
  finger << 0, 0, -1;
  box << 0, 1, 0, 0, 0, 1, 1, 0, 0;  // the normal is x
  arrays.AddContact(1, box, 0, finger, {});
  arrays.trees.initial_velocity.assign(4, 0.0);
  EXPECT_EQ(DelassusEstimates(arrays)[0], ByRule(arrays, DelassusRule::kFull)[0])
      << "50/3 beside 50";
  arrays.regularization.load_reference_speed = kFall;
  // 40 N are the weight of 4.08 kg.
  EXPECT_NEAR(DelassusEstimates(arrays)[0], std::max(kFall / (0.02 * push), 0.5 / std::sqrt(3.0)),
              1e-14);
}

// Two beams that lean on each other, and on nothing else, would pass their masses on for ever.
TEST(LoadPathsTest, ACircleOfLoadsEndsAtTheMassOfItsBodies) {
  ProblemArrays arrays;
  arrays.regularization.rule = DelassusRule::kLoadPath;
  for (const double x : {1.0, -1.0}) {
    arrays.AddTree(3.0 * Eigen::Matrix3d::Identity(), Eigen::Vector3d(0, 0, x));
  }
  const Eigen::Matrix3d J = Eigen::Matrix3d::Identity();
  arrays.AddContact(1, J, 0, -J, {});
  arrays.trees.initial_velocity.assign(6, 0.0);
  EXPECT_NEAR(DelassusEstimates(arrays)[0], 1 / 6.0, 1e-15);
}

}  // namespace
}  // namespace sap::test
