#include "client/cpp/simulation/scene.h"

#include <gtest/gtest.h>

#include <cmath>

#include "client/cpp/simulation/collision.h"

namespace sap::simulation {
namespace {

Scene Make(std::string_view name, const SceneOptions& options = {}) {
  auto scene = MakeScene(name, options);
  EXPECT_TRUE(scene.has_value());
  return *scene;
}

// Half sides of the smallest box along the world axes around a body.
Vector3d HalfSides(const Body& body) {
  if (body.shape.kind == ShapeKind::kSphere) return body.shape.half_extent;
  Vector3d half_sides = Vector3d::Zero();
  for (int corner = 0; corner < 8; ++corner) {
    const Vector3d sign((corner & 1) ? 1 : -1, (corner & 2) ? 1 : -1, (corner & 4) ? 1 : -1);
    const Vector3d arm = body.orientation * sign.cwiseProduct(body.shape.half_extent);
    half_sides = half_sides.cwiseMax(arm);
  }
  return half_sides;
}

// Boxes along the world axes that do not overlap prove that what is inside does not.
void ExpectNoOverlap(const Scene& scene) {
  constexpr double kTouching = 1.1e-9;
  std::vector<Vector3d> half_sides;
  for (const Body& body : scene.bodies) half_sides.push_back(HalfSides(body));
  for (size_t i = 0; i < scene.bodies.size(); ++i) {
    const Vector3d& x = scene.bodies[i].position;
    for (const Plane& plane : scene.planes) {
      const double reach = plane.normal.cwiseAbs().dot(half_sides[i]);
      ASSERT_GE(plane.normal.dot(x) - plane.offset, reach - kTouching) << "body " << i;
    }
    for (size_t j = i + 1; j < scene.bodies.size(); ++j) {
      const Vector3d gap =
          (x - scene.bodies[j].position).cwiseAbs() - half_sides[i] - half_sides[j];
      ASSERT_GE(gap.maxCoeff(), -kTouching) << "bodies " << i << " and " << j;
    }
  }
}

TEST(SceneTest, BodiesStartWithoutOverlapInEveryScene) {
  for (const std::string& name : SceneNames()) {
    for (const int bodies : {1, 2, 7, 40, 150}) {
      for (const bool walls : {false, true}) {
        for (const ShapeMix shapes : {ShapeMix::kMixed, ShapeMix::kBoxes, ShapeMix::kSpheres}) {
          for (const uint64_t seed : {0, 1, 17}) {
            SCOPED_TRACE(name + " " + std::to_string(bodies) + " seed " + std::to_string(seed));
            const Scene scene = Make(name, {bodies, walls, shapes, seed});
            ASSERT_EQ(scene.bodies.size(), static_cast<size_t>(bodies));
            ExpectNoOverlap(scene);
          }
        }
      }
    }
  }
}

TEST(SceneTest, AThousandBodiesStartWithoutOverlapToo) {
  for (const std::string& name : SceneNames()) {
    SCOPED_TRACE(name);
    ExpectNoOverlap(Make(name, {.bodies = 1000, .seed = 2}));
  }
}

TEST(SceneTest, CollisionFindsNothingButTouchingAtTheStart) {
  for (const std::string& name : SceneNames()) {
    const Scene scene = Make(name);
    ContactSet contacts;
    CollisionDetector(scene).FindContacts(scene.bodies, {}, &contacts);
    EXPECT_LT(contacts.LargestPenetration(), 1.1e-9) << name;
    // Stacks touch everywhere, in every corner.
    EXPECT_EQ(contacts.size(), name == "stacks" ? 9 * 10 * 4 : 0);
  }
}

TEST(SceneTest, ClutterIsThePapers) {
  const Scene scene = Make("clutter");
  EXPECT_EQ(scene.bodies.size(), 40u);
  EXPECT_EQ(scene.planes.size(), 5u);
  ASSERT_TRUE(scene.bin.has_value());
  EXPECT_EQ(scene.bin->half_width, 0.4);
  EXPECT_EQ(scene.bin->height, 0.8);
  EXPECT_EQ(scene.material.stiffness, 1e12);
  EXPECT_EQ(scene.material.friction, 1);
  int spheres = 0;
  int per_column[2][2] = {};
  for (const Body& body : scene.bodies) {
    spheres += body.shape.kind == ShapeKind::kSphere;
    ++per_column[body.position.x() > 0][body.position.y() > 0];
    EXPECT_NEAR(body.mass, body.shape.kind == ShapeKind::kSphere ? 0.5236 : 1.0, 1e-4);
  }
  EXPECT_GT(spheres, 10);
  EXPECT_LT(spheres, 30);
  for (const auto& row : per_column) {
    for (const int count : row) EXPECT_EQ(count, 10);
  }
}

TEST(SceneTest, StacksStandTwoMetersApart) {
  const Scene scene = Make("stacks");
  ASSERT_EQ(scene.bodies.size(), 90u);
  for (int i = 0; i < 9; ++i) {
    for (int j = 0; j < i; ++j) {
      const Vector3d apart = scene.bodies[10 * i].position - scene.bodies[10 * j].position;
      EXPECT_GT(apart.norm(), 1.99);
    }
    EXPECT_NEAR(scene.bodies[10 * i + 9].position.z(), 0.95, 2e-8);
  }
}

TEST(SceneTest, ShapesAreThoseAskedFor) {
  for (const Body& body : Make("clutter", {.shapes = ShapeMix::kBoxes}).bodies) {
    EXPECT_EQ(body.shape.kind, ShapeKind::kBox);
  }
  for (const Body& body : Make("pile", {.shapes = ShapeMix::kSpheres}).bodies) {
    EXPECT_EQ(body.shape.kind, ShapeKind::kSphere);
  }
  EXPECT_EQ(Make("clutter", {.walls = false}).planes.size(), 1u);
}

TEST(SceneTest, TheSameSeedGivesTheSameSceneAndAnotherSeedAnother) {
  const SceneOptions options{.seed = 5};
  const Scene first = Make("clutter", options);
  const Scene again = Make("clutter", options);
  const Scene other = Make("clutter", {.seed = 6});
  bool differs = false;
  for (size_t i = 0; i < first.bodies.size(); ++i) {
    EXPECT_EQ(first.bodies[i].position, again.bodies[i].position);
    EXPECT_EQ(first.bodies[i].orientation.coeffs(), again.bodies[i].orientation.coeffs());
    differs = differs || first.bodies[i].position != other.bodies[i].position;
  }
  EXPECT_TRUE(differs);
}

TEST(SceneTest, WhatCannotBeMadeIsRefusedWithWhatCould) {
  EXPECT_EQ(MakeScene("cluter").error(),
            "there is no scene 'cluter'; the scenes are clutter stacks heaps pile");
  EXPECT_EQ(MakeScene("pile", {.bodies = 0}).error(),
            "the number of bodies is 0; it must be between 1 and 1048576");
}

}  // namespace
}  // namespace sap::simulation
