#include "client/cpp/simulation/picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <vector>

#include "client/cpp/simulation/camera.h"

namespace sap::simulation {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(CameraTest, WhatItLooksAtIsAheadAndUpIsUp) {
  Camera camera({1, 2, 3}, {0, -1, 0}, 5);
  const std::vector<Vector3d> corners{{0, 2, 2}, {2, 2, 4}};
  camera.Frame(corners, {0, 0}, {100, 100});
  EXPECT_TRUE(camera.eye().isApprox(Vector3d(1, -3, 3)));
  EXPECT_NEAR(camera.Depth({1, 2, 3}), 5, 1e-12);
  EXPECT_TRUE(camera.Project({1, 2, 3}).isApprox(Vector2d(50, 50)));
  EXPECT_TRUE(camera.Project({2, 2, 4}).isApprox(Vector2d(100, 0)));
  EXPECT_NEAR((camera.Project({0, 2, 2}) - Vector2d(0, 100)).norm(), 0, 1e-10);
}

TEST(CameraTest, TwiceAsFarIsHalfAsLarge) {
  Camera camera({0, 0, 0}, {0, -1, 0}, 10);
  const double near = (camera.Project({1, 0, 0}) - camera.Project({0, 0, 0})).norm();
  const double far = (camera.Project({1, 10, 0}) - camera.Project({0, 10, 0})).norm();
  EXPECT_NEAR(near / far, 2, 1e-12);
  EXPECT_NEAR(camera.ProjectRadius({0, 90, 0}, 0.01) / camera.ProjectRadius({0, 190, 0}, 0.01), 2,
              1e-4);
}

int Count(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  return static_cast<int>(std::distance(std::sregex_iterator(text.begin(), text.end(), regex), {}));
}

// Every tag that opens is closed, in order.
void ExpectWellFormed(const std::string& svg) {
  std::vector<std::string> open;
  const std::regex tag("<(/?)([a-zA-Z]+)[^<>]*?(/?)>");
  for (std::sregex_iterator match(svg.begin(), svg.end(), tag), end; match != end; ++match) {
    const std::string name = (*match)[2];
    if ((*match)[1] == "/") {
      ASSERT_FALSE(open.empty());
      ASSERT_EQ(open.back(), name);
      open.pop_back();
    } else if ((*match)[3] != "/") {
      open.push_back(name);
    }
  }
  EXPECT_TRUE(open.empty());
}

Scene TwoBalls(double near_y, double far_y) {
  Scene scene;
  scene.planes = {{Vector3d::UnitZ(), 0}};
  scene.bodies = {MakeBody(Shape::Sphere(0.05), 1000), MakeBody(Shape::Sphere(0.05), 1000)};
  scene.bodies[0].position = {0, near_y, 0.05};
  scene.bodies[1].position = {0, far_y, 0.05};
  return scene;
}

TEST(PictureTest, EverySceneGivesAWellFormedPictureWithAllItsBodies) {
  for (const std::string& name : SceneNames()) {
    const Scene scene = *MakeScene(name);
    const std::vector<int32_t> islands(scene.bodies.size(), 0);
    const std::string svg = DrawPicture(scene, islands);
    ExpectWellFormed(svg);
    int spheres = 0;
    for (const Body& body : scene.bodies) spheres += body.shape.kind == ShapeKind::kSphere;
    EXPECT_EQ(Count(svg, "<circle"), spheres) << name;
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
}

TEST(PictureTest, ABoxShowsThreeFacesInThreeShades) {
  Scene scene;
  scene.bodies = {MakeBody(Shape::Box(Vector3d::Constant(0.05)), 1000)};
  const std::vector<int32_t> islands{0};
  const std::string svg = DrawPicture(scene, islands);
  const std::regex face(
      "<polygon points=\"[^\"]*\" fill=\"(#[0-9a-f]{6})\" stroke=\"#[0-9a-f]{6}\" "
      "stroke-width=\"0.8\"");
  std::set<std::string> shades;
  int faces = 0;
  for (std::sregex_iterator match(svg.begin(), svg.end(), face), end; match != end; ++match) {
    shades.insert((*match)[1]);
    ++faces;
  }
  EXPECT_EQ(faces, 3);
  EXPECT_EQ(shades.size(), 3u);
}

TEST(PictureTest, WhatIsFarIsDrawnFirst) {
  // The camera looks along +y; which ball is which shows in the color of its island.
  for (const bool first_is_near : {true, false}) {
    const Scene scene = first_is_near ? TwoBalls(-0.1, 0.1) : TwoBalls(0.1, -0.1);
    const std::vector<int32_t> islands{1, 2};
    const std::string svg = DrawPicture(scene, islands);
    const size_t first = svg.find("url(#s1)");
    const size_t second = svg.find("url(#s2)");
    EXPECT_EQ(first > second, first_is_near);
  }
}

TEST(PictureTest, IslandsHaveColorsOfTheirOwnAndNoIslandIsGray) {
  const Scene scene = TwoBalls(-0.1, 0.1);
  const auto gradient = [&](int32_t island) {
    const std::vector<int32_t> islands{island, island};
    const std::string svg = DrawPicture(scene, islands);
    std::smatch match;
    EXPECT_TRUE(
        std::regex_search(svg, match, std::regex("offset=\"0.45\" stop-color=\"(#[^\"]*)")));
    return match[1].str();
  };
  std::set<std::string> colors;
  for (int island = -1; island < 30; ++island) colors.insert(gradient(island));
  EXPECT_EQ(colors.size(), 31u);
  const auto part = [gray = gradient(-1)](int place) {
    return std::stoi(gray.substr(1 + 2 * place, 2), nullptr, 16);
  };
  EXPECT_NEAR(part(0), part(1), 8);
  EXPECT_NEAR(part(1), part(2), 8);
}

TEST(PictureTest, TheCaptionIsText) {
  const std::vector<int32_t> islands{0, 0};
  const std::string svg =
      DrawPicture(TwoBalls(-0.1, 0.1), islands, {.caption = "a < b & c", .note = "note"});
  EXPECT_THAT(svg, HasSubstr(">a &lt; b &amp; c</text>"));
  EXPECT_THAT(svg, HasSubstr(">note</text>"));
  ExpectWellFormed(svg);
}

TEST(PictureTest, AnEmptySceneIsAPictureToo) { ExpectWellFormed(DrawPicture(Scene(), {})); }

}  // namespace
}  // namespace sap::simulation
