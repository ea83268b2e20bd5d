#include "client/cpp/simulation/collision.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "client/cpp/simulation/dynamics.h"

namespace sap::simulation {
namespace {

const Shape kSphere = Shape::Sphere(0.05);
const Shape kBox = Shape::Box(Vector3d::Constant(0.05));

Body At(const Shape& shape, const Vector3d& position,
        const Quaterniond& orientation = Quaterniond(1, 0, 0, 0)) {
  Body body = MakeBody(shape, 1000);
  body.position = position;
  body.orientation = orientation;
  return body;
}

Quaterniond TurnBy(double angle, const Vector3d& axis) {
  return Quaterniond(Eigen::AngleAxisd(angle, axis.normalized()));
}

ContactSet Contacts(const std::vector<Body>& bodies, const std::vector<Plane>& planes = {}) {
  Scene scene;
  scene.bodies = bodies;
  scene.planes = planes;
  ContactSet contacts;
  CollisionDetector(scene).FindContacts(bodies, {}, &contacts);
  return contacts;
}

Vector3d Normal(const ContactSet& contacts, int i) {
  return Eigen::Map<const Vector3d>(contacts.normal.data() + 3 * i);
}

Vector3d Point(const ContactSet& contacts, int i) {
  return Eigen::Map<const Vector3d>(contacts.point.data() + 3 * i);
}

Quaterniond RandomTurn(std::mt19937* generator) {
  std::normal_distribution<double> normal;
  return Quaterniond(normal(*generator), normal(*generator), normal(*generator), normal(*generator))
      .normalized();
}

TEST(CollisionTest, SpheresTouchOnTheLineOfTheirCenters) {
  const Vector3d a(0.1, 0.2, 0.3);
  const Vector3d between(0.03, -0.04, 0.05);
  const ContactSet contacts = Contacts({At(kSphere, a + between), At(kSphere, a)});
  ASSERT_EQ(contacts.size(), 1);
  EXPECT_EQ(contacts.body_a[0], 0);
  EXPECT_EQ(contacts.body_b[0], 1);
  EXPECT_NEAR(contacts.signed_distance[0], between.norm() - 0.1, 1e-15);
  EXPECT_TRUE(Normal(contacts, 0).isApprox(between.normalized(), 1e-14));
  EXPECT_TRUE(Point(contacts, 0).isApprox(a + 0.5 * between, 1e-14));
}

TEST(CollisionTest, SpheresApartOrJustBesideEachOtherDoNotTouch) {
  EXPECT_EQ(Contacts({At(kSphere, {0, 0, 0}), At(kSphere, {0.1001, 0, 0})}).size(), 0);
  EXPECT_EQ(Contacts({At(kSphere, {0, 0, 0}), At(kSphere, {0.08, 0.08, 0.08})}).size(), 0);
}

TEST(CollisionTest, ASphereTouchesFaceEdgeAndCornerOfABoxAtItsNearestPoint) {
  std::mt19937 generator(1);
  const Quaterniond turn = RandomTurn(&generator);
  const Vector3d center(0.1, -0.2, 0.3);
  const std::pair<Vector3d, Vector3d> cases[] = {
      // nearest point of the box, outward direction, both in its axes
      {{0.01, -0.02, 0.05}, {0, 0, 1}},
      {{0.05, 0.02, -0.01}, {1, 0, 0}},
      {{0.05, -0.05, 0.02}, Vector3d(1, -2, 0).normalized()},
      {{-0.05, 0.05, 0.05}, Vector3d(-1, 2, 3).normalized()},
  };
  const double phi0 = -1e-3;
  for (const auto& [nearest, outward] : cases) {
    const Vector3d sphere = center + turn * (nearest + (0.05 + phi0) * outward);
    for (const bool sphere_first : {true, false}) {
      std::vector<Body> bodies = {At(kSphere, sphere), At(kBox, center, turn)};
      if (!sphere_first) std::swap(bodies[0], bodies[1]);
      const ContactSet contacts = Contacts(bodies);
      ASSERT_EQ(contacts.size(), 1);
      EXPECT_NEAR(contacts.signed_distance[0], phi0, 1e-15);
      const Vector3d normal = (sphere_first ? 1 : -1) * (turn * outward);
      EXPECT_TRUE(Normal(contacts, 0).isApprox(normal, 1e-12));
      const Vector3d point = center + turn * (nearest + 0.5 * phi0 * outward);
      EXPECT_TRUE(Point(contacts, 0).isApprox(point, 1e-12));
    }
  }
}

TEST(CollisionTest, ASphereInsideABoxLeavesThroughTheNearestFace) {
  const ContactSet contacts = Contacts({At(kSphere, {0.01, 0.04, 0.02}), At(kBox, {0, 0, 0})});
  ASSERT_EQ(contacts.size(), 1);
  EXPECT_NEAR(contacts.signed_distance[0], -0.06, 1e-15);
  EXPECT_TRUE(Normal(contacts, 0).isApprox(Vector3d::UnitY(), 1e-14));
}

TEST(CollisionTest, ASphereTouchesAPlaneInItsLowestPoint) {
  const Plane plane{Vector3d(1, 2, 2) / 3, 0.4};
  const double phi0 = -2e-3;
  const Vector3d in_plane = Vector3d(2, -1, 0).normalized();
  const Vector3d lowest = (plane.offset + phi0) * plane.normal + 0.3 * in_plane;
  const ContactSet contacts = Contacts({At(kSphere, lowest + 0.05 * plane.normal)}, {plane});
  ASSERT_EQ(contacts.size(), 1);
  EXPECT_EQ(contacts.body_a[0], 0);
  EXPECT_EQ(contacts.body_b[0], -1);
  EXPECT_NEAR(contacts.signed_distance[0], phi0, 1e-15);
  EXPECT_EQ(Normal(contacts, 0), plane.normal);
  EXPECT_TRUE(Point(contacts, 0).isApprox(lowest - 0.5 * phi0 * plane.normal, 1e-12));
}

TEST(CollisionTest, ABoxOnAPlaneTouchesWithTheCornersBelowIt) {
  const Plane ground{Vector3d::UnitZ(), 0};
  EXPECT_EQ(Contacts({At(kBox, {0, 0, 0.0499})}, {ground}).size(), 4);
  EXPECT_EQ(Contacts({At(kBox, {0, 0, 0.0501})}, {ground}).size(), 0);
  const double edge = 0.05 * std::sqrt(2.0);
  const ContactSet on_edge =
      Contacts({At(kBox, {0, 0, edge - 1e-3}, TurnBy(EIGEN_PI / 4, {1, 0, 0}))}, {ground});
  ASSERT_EQ(on_edge.size(), 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_NEAR(on_edge.signed_distance[i], -1e-3, 1e-15);
    EXPECT_NEAR(std::abs(Point(on_edge, i).x()), 0.05, 1e-15);
    EXPECT_NEAR(Point(on_edge, i).y(), 0, 1e-15);
  }
}

// Also turned and shifted as a whole, which must change nothing but the axes.
TEST(CollisionTest, ABoxOnABoxTouchesInAtLeastFourPointsThatSpanTheCommonFace) {
  std::mt19937 generator(2);
  for (const double yaw : {0.0, 1e-6, 0.01, 0.3, 0.785398, 1.2}) {
    for (const double offset : {0.0, 1e-6, 0.01, 0.03}) {
      const Quaterniond turn = RandomTurn(&generator);
      const Vector3d shift(0.3, -0.7, 0.2);
      const ContactSet contacts =
          Contacts({At(kBox, shift + turn * Vector3d(offset, 0.5 * offset, 0.0999),
                       turn * TurnBy(yaw, {0, 0, 1})),
                    At(kBox, shift, turn)});
      SCOPED_TRACE("yaw " + std::to_string(yaw) + " offset " + std::to_string(offset));
      ASSERT_GE(contacts.size(), 4);
      Vector3d low = Vector3d::Constant(1);
      Vector3d high = Vector3d::Constant(-1);
      for (int i = 0; i < contacts.size(); ++i) {
        EXPECT_NEAR(contacts.signed_distance[i], -1e-4, 1e-14);
        EXPECT_TRUE(Normal(contacts, i).isApprox(turn * Vector3d::UnitZ(), 1e-12));
        const Vector3d local = turn.conjugate() * (Point(contacts, i) - shift);
        EXPECT_NEAR(local.z(), 0.04995, 1e-14);
        low = low.cwiseMin(local);
        high = high.cwiseMax(local);
      }
      // A square inside both faces, whatever the yaw, has these half sides.
      EXPECT_GE(high.x() - low.x(), 0.1 - 1.01 * offset - 1e-3);
      EXPECT_GE(high.y() - low.y(), 0.1 - 1.01 * offset - 1e-3);
    }
  }
}

TEST(CollisionTest, ABoxThatStandsOnItsFaceNeverStandsOnOnePoint) {
  // Tilts and depths of near-rigid contact, where the shortest way out may be between edges.
  std::mt19937 generator(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int trial = 0; trial < 2000; ++trial) {
    const Vector3d axis(uniform(generator), uniform(generator), uniform(generator));
    const double tilt = 1e-4 * uniform(generator);
    const Vector3d offset(1e-4 * uniform(generator), 1e-4 * uniform(generator), 0);
    const ContactSet contacts = Contacts(
        {At(kBox, Vector3d(0, 0, 0.09998) + offset, TurnBy(tilt, axis)), At(kBox, {0, 0, 0})});
    ASSERT_GE(contacts.size(), 3) << trial;
    for (int i = 0; i < contacts.size(); ++i) {
      ASSERT_GT(Normal(contacts, i).z(), 0.9999);
    }
  }
}

TEST(CollisionTest, CrossedEdgesTouchInOnePointAlongTheirCommonPerpendicular) {
  const double ridge = 0.05 * std::sqrt(2.0);
  const Vector3d along = Vector3d(1, 0.8, 0).normalized();  // of the upper ridge
  const Quaterniond upper =
      TurnBy(std::atan2(along.y(), along.x()), {0, 0, 1}) * TurnBy(EIGEN_PI / 4, {1, 0, 0});
  const ContactSet contacts = Contacts({At(kBox, {0.01, 0.02, 2 * ridge - 1e-3}, upper),
                                        At(kBox, {0, 0.02, 0}, TurnBy(EIGEN_PI / 4, {1, 0, 0}))});
  ASSERT_EQ(contacts.size(), 1);
  EXPECT_TRUE(Normal(contacts, 0).isApprox(Vector3d::UnitZ(), 1e-12));
  EXPECT_NEAR(contacts.signed_distance[0], -1e-3, 1e-13);
  EXPECT_NEAR((Point(contacts, 0) - Vector3d(0.01, 0.02, ridge - 5e-4)).norm(), 0, 1e-12);
}

TEST(CollisionTest, MovingABodyAlongTheNormalChangesTheDistanceByAsMuch) {
  std::mt19937 generator(4);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const double step = 1e-7;
  int checked = 0;
  for (int trial = 0; trial < 9000; ++trial) {
    const Shape& shape_a = trial % 2 == 0 ? kBox : kSphere;
    const Shape& shape_b = trial % 3 == 0 ? kSphere : kBox;
    const Vector3d direction =
        Vector3d(uniform(generator), uniform(generator), uniform(generator)).normalized();
    std::vector<Body> bodies = {
        At(shape_a, (0.09 + 0.04 * uniform(generator)) * direction, RandomTurn(&generator)),
        At(shape_b, {0, 0, 0}, RandomTurn(&generator))};
    const ContactSet before = Contacts(bodies);
    // Shallow, so that moving on does not change which way out is the shortest.
    if (before.size() == 0 || before.LargestPenetration() > 5e-3) continue;
    bodies[0].position -= step * Normal(before, 0);
    const ContactSet after = Contacts(bodies);
    ASSERT_GE(after.size(), before.size()) << trial;
    EXPECT_NEAR(after.LargestPenetration() - before.LargestPenetration(), step, 1e-3 * step)
        << trial;
    ++checked;
  }
  EXPECT_GT(checked, 300);
}

// The normal is the way out: moved along it by the penetration, nothing overlaps any more.
TEST(CollisionTest, MovingABodyByThePenetrationAlongTheNormalSeparatesThem) {
  std::mt19937 generator(5);
  std::uniform_real_distribution<double> uniform(-1, 1);
  int checked = 0;
  for (int trial = 0; trial < 9000; ++trial) {
    const Vector3d direction =
        Vector3d(uniform(generator), uniform(generator), uniform(generator)).normalized();
    std::vector<Body> bodies = {
        At(kBox, (0.09 + 0.04 * uniform(generator)) * direction, RandomTurn(&generator)),
        At(trial % 2 == 0 ? kBox : kSphere, {0, 0, 0}, RandomTurn(&generator))};
    const ContactSet before = Contacts(bodies);
    if (before.size() == 0 || before.LargestPenetration() > 5e-3) continue;
    bodies[0].position += (before.LargestPenetration() + 1e-9) * Normal(before, 0);
    // A normal that was rounded to a face's leaves at most the difference of the two.
    EXPECT_LT(Contacts(bodies).LargestPenetration(), 0.1 * before.LargestPenetration()) << trial;
    ++checked;
  }
  EXPECT_GT(checked, 300);
}

// A pile of random bodies, as dense as a settled one.
std::vector<Body> RandomPile(int count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(0, 0.1 * std::cbrt(1.5 * count));
  std::vector<Body> bodies;
  for (int i = 0; i < count; ++i) {
    bodies.push_back(At(i % 2 == 0 ? kBox : kSphere,
                        {uniform(generator), uniform(generator), uniform(generator)},
                        RandomTurn(&generator)));
  }
  return bodies;
}

TEST(CollisionTest, ContactsAreInOrderAndTheSameWhateverWasAskedBefore) {
  const std::vector<Body> bodies = RandomPile(300, 6);
  const std::vector<Plane> planes = {{Vector3d::UnitZ(), 0.1}, {Vector3d::UnitX(), 0.1}};
  const ContactSet contacts = Contacts(bodies, planes);
  ASSERT_GT(contacts.size(), 300);
  for (int i = 1; i < contacts.size(); ++i) {
    EXPECT_LE(std::pair(contacts.body_a[i - 1], contacts.body_b[i - 1]),
              std::pair(contacts.body_a[i], contacts.body_b[i]));
  }

  Scene scene;
  scene.bodies = RandomPile(300, 7);
  scene.planes = planes;
  for (int i = 0; i < 300; ++i) scene.bodies[i].shape = bodies[i].shape;
  CollisionDetector detector(scene);
  ContactSet again;
  for (const uint32_t seed : {8, 9, 10}) {
    detector.FindContacts(RandomPile(300, seed), {}, &again);
  }
  detector.FindContacts(bodies, {}, &again);
  EXPECT_EQ(again.body_a, contacts.body_a);
  EXPECT_EQ(again.body_b, contacts.body_b);
  EXPECT_EQ(again.point, contacts.point);
  EXPECT_EQ(again.normal, contacts.normal);
  EXPECT_EQ(again.signed_distance, contacts.signed_distance);
}

TEST(CollisionTest, NoPairIsMissed) {
  // Spheres only: whether two overlap is a matter of their centers.
  std::vector<Body> bodies = RandomPile(500, 11);
  for (Body& body : bodies) body.shape = kSphere;
  const ContactSet contacts = Contacts(bodies);
  int found = 0;
  for (size_t i = 0; i < bodies.size(); ++i) {
    for (size_t j = i + 1; j < bodies.size(); ++j) {
      if ((bodies[i].position - bodies[j].position).norm() > 0.1) continue;
      ASSERT_LT(found, contacts.size());
      EXPECT_EQ(contacts.body_a[found], static_cast<int>(i));
      EXPECT_EQ(contacts.body_b[found], static_cast<int>(j));
      ++found;
    }
  }
  EXPECT_EQ(found, contacts.size());
}

ContactSet ContactsWithin(double reach, const std::vector<Body>& bodies,
                          const std::vector<Plane>& planes = {}) {
  Scene scene;
  scene.bodies = bodies;
  scene.planes = planes;
  const std::vector<Motion> motions(bodies.size(), Motion{Vector3d::Zero(), reach});
  ContactSet contacts;
  CollisionDetector(scene).FindContacts(bodies, motions, &contacts);
  return contacts;
}

TEST(ReachTest, ASphereIsSeenByPlaneSphereAndBoxAtItsGapAndNoFurther) {
  std::mt19937 generator(12);
  const Quaterniond turn = RandomTurn(&generator);
  const double gap = 3e-3;
  const Shape small = Shape::Sphere(0.02);
  struct Case {
    std::vector<Body> bodies;
    std::vector<Plane> planes;
    Vector3d normal;
    Vector3d point;  // on the smaller of the two
  };
  const Vector3d outward = turn * Vector3d(-1, 2, 3).normalized();  // of a corner of the box
  const Vector3d corner = turn * Vector3d(-0.05, 0.05, 0.05);
  const Vector3d up = Vector3d(1, 2, 2) / 3;
  const Case cases[] = {
      {{At(small, (0.02 + gap) * up)}, {{up, 0}}, up, gap * up},
      {{At(small, (0.07 + gap) * up), At(kSphere, {0, 0, 0})}, {}, up, (0.05 + gap) * up},
      {{At(kBox, {0, 0, 0}, turn), At(small, corner + (0.02 + gap) * outward)},
       {},
       -outward,
       corner + gap * outward}};
  for (const Case& c : cases) {
    const double reach_of_each = 1.01 * gap / static_cast<double>(c.bodies.size());
    const ContactSet contacts = ContactsWithin(reach_of_each, c.bodies, c.planes);
    ASSERT_EQ(contacts.size(), 1);
    EXPECT_NEAR(contacts.signed_distance[0], gap, 1e-15);
    EXPECT_TRUE(Normal(contacts, 0).isApprox(c.normal, 1e-12));
    EXPECT_TRUE(Point(contacts, 0).isApprox(c.point, 1e-12));
    EXPECT_EQ(contacts.LargestPenetration(), 0);
    EXPECT_EQ(ContactsWithin(0.98 * reach_of_each, c.bodies, c.planes).size(), 0);
  }
}

TEST(ReachTest, ABoxOverAPlaneIsSeenWithTheCornersWithinReach) {
  const double tilt = 0.02;  // the low edge is 2 mm under the other
  const std::vector<Body> bodies = {At(kBox, {0, 0, 0.052}, TurnBy(tilt, {0, 1, 0}))};
  const std::vector<Plane> planes = {{Vector3d::UnitZ(), 0}};
  const double low = 0.052 - 0.05 * std::cos(tilt) - 0.05 * std::sin(tilt);
  EXPECT_EQ(ContactsWithin(0.9 * low, bodies, planes).size(), 0);
  const ContactSet edge = ContactsWithin(1.1 * low, bodies, planes);
  ASSERT_EQ(edge.size(), 2);
  for (int i = 0; i < 2; ++i) EXPECT_NEAR(edge.signed_distance[i], low, 1e-15);
  EXPECT_EQ(ContactsWithin(4e-3, bodies, planes).size(), 4);
}

TEST(ReachTest, FacesThatNearlyTouchAreSeenFaceToFaceInFourCorners) {
  std::mt19937 generator(13);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int trial = 0; trial < 1000; ++trial) {
    const Quaterniond turn = RandomTurn(&generator);
    const double gap = 2e-3 * (1 + 0.4 * uniform(generator));
    const Quaterniond tilt = TurnBy(5e-3 * uniform(generator), RandomTurn(&generator).vec());
    const Vector3d offset(0.04 * uniform(generator), 0.04 * uniform(generator), 0.1 + gap);
    const ContactSet contacts =
        ContactsWithin(3e-3, {At(kBox, turn * offset, turn * tilt), At(kBox, {0, 0, 0}, turn)});
    ASSERT_GE(contacts.size(), 4) << trial;
    for (int i = 0; i < contacts.size(); ++i) {
      EXPECT_GT(Normal(contacts, i).dot(turn * Vector3d::UnitZ()), 0.9999) << trial;
      // No corner is further off the gap than the tilt takes it.
      EXPECT_NEAR(contacts.signed_distance[i], gap, 6e-4) << trial;
    }
  }
}

// Whatever the boxes show to each other: a body that comes by the gap along the normal then
// touches. A normal that was rounded to a face's may miss by a little an edge that comes first.
TEST(ReachTest, GapsOfBoxesCloseByTheWayAlongTheNormal) {
  std::mt19937 generator(14);
  std::uniform_real_distribution<double> uniform(-1, 1);
  int checked = 0;
  int early = 0;
  for (int trial = 0; trial < 5000; ++trial) {
    const Vector3d direction = RandomTurn(&generator).vec().normalized();
    std::vector<Body> bodies = {
        At(kBox, (0.13 + 0.03 * uniform(generator)) * direction, RandomTurn(&generator)),
        At(kBox, {0, 0, 0}, RandomTurn(&generator))};
    const ContactSet before = ContactsWithin(4e-3, bodies);
    if (before.size() == 0 || before.LargestPenetration() > 0) continue;
    const auto least =
        std::min_element(before.signed_distance.begin(), before.signed_distance.end()) -
        before.signed_distance.begin();
    const double gap = before.signed_distance[least];
    const Vector3d normal = Normal(before, static_cast<int>(least));
    bodies[0].position -= gap * normal;
    const double overlap = Contacts(bodies).LargestPenetration();
    EXPECT_LT(overlap, 4e-4) << trial;
    early += overlap > 1e-9;
    ++checked;
  }
  EXPECT_GT(checked, 100);
  EXPECT_LT(early, 0.05 * checked);
}

TEST(ReachTest, WithoutReachOnlyWhatTouchesIsSeen) {
  const std::vector<Body> bodies = RandomPile(300, 15);
  const std::vector<Plane> planes = {{Vector3d::UnitZ(), 0.1}};
  const ContactSet touching = Contacts(bodies, planes);
  const ContactSet within = ContactsWithin(0, bodies, planes);
  EXPECT_EQ(within.body_a, touching.body_a);
  EXPECT_EQ(within.body_b, touching.body_b);
  EXPECT_EQ(within.point, touching.point);
  EXPECT_EQ(within.normal, touching.normal);
  EXPECT_EQ(within.signed_distance, touching.signed_distance);
}

// What slides over a box lies a little deep in it, and as deep is the side of the next box ahead.
TEST(ReachTest, TheSideOfABoxIsNoWallToWhatSlidesOntoIt) {
  const double depth = 1e-4;
  for (const Shape& shape : {kBox, kSphere}) {
    const double edge = shape.kind == ShapeKind::kBox ? 0.05 : 0.003;
    const std::vector<Body> bodies = {At(shape, {-edge - 2e-3, 0, 0.1 - depth}),
                                      At(kBox, {0.05, 0, 0})};
    Scene scene;
    scene.bodies = bodies;
    ContactSet contacts;
    const std::vector<Motion> motions = {{Vector3d(6e-3, 0, 0), 7e-3}, {Vector3d::Zero(), 1e-3}};
    CollisionDetector(scene).FindContacts(bodies, motions, &contacts);
    for (int i = 0; i < contacts.size(); ++i) {
      EXPECT_NEAR(Normal(contacts, i).x(), 0, 1e-12);
      EXPECT_EQ(contacts.signed_distance[i], 0);  // they do not touch yet
    }
    EXPECT_GE(contacts.size(), 1);
  }
}

TEST(CollisionTest, EmptyScenesHaveNoContacts) {
  EXPECT_EQ(Contacts({}).size(), 0);
  EXPECT_EQ(Contacts({At(kBox, {0, 0, 1})}).size(), 0);
}

// Who rests changes from call to call, and what rests does not move: contacts are those of a
// detector for which nobody rests, without those of resting bodies among themselves.
TEST(CollisionTest, ContactsOfRestingBodiesAmongThemselvesAreLeftOut) {
  Scene scene;
  scene.bodies = RandomPile(200, 5);
  scene.planes = {{Vector3d::UnitZ(), 0.1}};
  CollisionDetector detector(scene);
  std::vector<uint8_t> resting(scene.bodies.size(), 0);
  std::vector<Motion> motions(scene.bodies.size(), Motion{.reach = 0.005});
  std::mt19937 random(1);
  size_t with_resting = 0;
  for (int call = 0; call < 60; ++call) {
    for (size_t i = 0; i < resting.size(); ++i) {
      if (random() % 8 == 0) resting[i] ^= 1;
      if (resting[i] == 0) scene.bodies[i].position += 0.002 * Vector3d::Random();
    }
    ContactSet found, all, expected;
    detector.FindContacts(scene.bodies, motions, resting, &found);
    CollisionDetector(scene).FindContacts(scene.bodies, motions, &all);
    for (int i = 0; i < all.size(); ++i) {
      const int a = all.body_a[i], b = all.body_b[i];
      if (resting[a] != 0 && (b < 0 || resting[b] != 0)) continue;
      if (b >= 0 && resting[a] + resting[b] == 1) ++with_resting;
      expected.Add(a, b, Vector3d(all.point.data() + 3 * i), Vector3d(all.normal.data() + 3 * i),
                   all.signed_distance[i]);
    }
    ASSERT_EQ(found.body_a, expected.body_a) << call;
    EXPECT_EQ(found.body_b, expected.body_b);
    EXPECT_EQ(found.point, expected.point);
    EXPECT_EQ(found.normal, expected.normal);
    EXPECT_EQ(found.signed_distance, expected.signed_distance);
  }
  EXPECT_GT(with_resting, 1000u);
}

}  // namespace
}  // namespace sap::simulation
