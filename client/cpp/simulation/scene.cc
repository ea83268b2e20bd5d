#include "client/cpp/simulation/scene.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace sap::simulation {
namespace {

constexpr double kDensity = 1000;  // kg/m^3
constexpr double kHalfSide = 0.05;
constexpr double kLargestCount = 1 << 20;
// A box at any yaw and a tilt of at most kTilt extends by kReach to each side and by kRise upward.
constexpr double kTilt = 0.1;
constexpr double kReach = 0.0762;
constexpr double kRise = 0.0571;

// Random numbers that do not depend on the standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : generator_(seed) {}

  double Uniform(double low, double high) {
    return low + (high - low) * 0x1p-53 * static_cast<double>(generator_() >> 11);
  }

 private:
  std::mt19937_64 generator_;
};

// The next body of a mix, at rest at the origin.
Body NextBody(ShapeMix mix, Random* random) {
  const bool sphere =
      mix == ShapeMix::kSpheres || (mix == ShapeMix::kMixed && random->Uniform(0, 1) < 0.5);
  return MakeBody(sphere ? Shape::Sphere(kHalfSide) : Shape::Box(Vector3d::Constant(kHalfSide)),
                  kDensity);
}

// Any yaw and a small tilt, so that no two faces start parallel.
Quaterniond SmallTurn(Random* random) {
  const double heading = random->Uniform(-EIGEN_PI, EIGEN_PI);
  const Vector3d tilt_axis(std::cos(heading), std::sin(heading), 0);
  const double tilt = random->Uniform(0, kTilt);
  const double yaw = random->Uniform(-EIGEN_PI, EIGEN_PI);
  return Quaterniond(Eigen::AngleAxisd(tilt, tilt_axis)) *
         Quaterniond(Eigen::AngleAxisd(yaw, Vector3d::UnitZ()));
}

void AddGroundAndWalls(const std::optional<Bin>& bin, Scene* scene) {
  scene->planes.push_back({Vector3d::UnitZ(), 0});
  scene->bin = bin;
  if (!bin) return;
  scene->planes.push_back({Vector3d::UnitX(), -bin->half_width});
  scene->planes.push_back({-Vector3d::UnitX(), -bin->half_width});
  scene->planes.push_back({Vector3d::UnitY(), -bin->half_width});
  scene->planes.push_back({-Vector3d::UnitY(), -bin->half_width});
}

// Center of a cell of a square grid around the origin.
Vector3d GridPlace(int cell, int side, double spacing) {
  const int row = cell / side;
  const int column = cell % side;
  return {(column + 0.5 - 0.5 * side) * spacing, (row + 0.5 - 0.5 * side) * spacing, 0};
}

Scene Clutter(int bodies, bool walls, ShapeMix mix, Random* random) {
  constexpr double kColumn = 0.2;  // distance of a column from the planes x = 0 and y = 0
  constexpr double kSpread = 0.02;
  constexpr double kLayer = 0.12;
  Scene scene;
  AddGroundAndWalls(walls ? std::optional<Bin>(Bin{}) : std::nullopt, &scene);
  for (int i = 0; i < bodies; ++i) {
    const int layer = i / 4;
    Body body = NextBody(mix, random);
    body.orientation = SmallTurn(random);
    body.position = {(i % 2 == 0 ? kColumn : -kColumn) + random->Uniform(-kSpread, kSpread),
                     ((i / 2) % 2 == 0 ? kColumn : -kColumn) + random->Uniform(-kSpread, kSpread),
                     0.1 + kLayer * layer};
    scene.bodies.push_back(body);
  }
  return scene;
}

Scene Stacks(int bodies, bool walls, ShapeMix mix, Random* random) {
  constexpr int kHeight = 10;
  constexpr double kSpacing = 2;
  constexpr double kSpread = 0.001;
  // Boxes overlap by a nanometer, so that rounding opens no gaps.
  constexpr double kStorey = 2 * kHalfSide - 1e-9;
  const int stacks = (bodies + kHeight - 1) / kHeight;
  const int side = static_cast<int>(std::ceil(std::sqrt(stacks)));
  const double half_width = 0.5 * kSpacing * side;
  Scene scene;
  AddGroundAndWalls(walls ? std::optional<Bin>(Bin{half_width, 1.2}) : std::nullopt, &scene);
  for (int i = 0; i < bodies; ++i) {
    Body body = NextBody(mix, random);
    body.position = GridPlace(i / kHeight, side, kSpacing);
    body.position.x() += random->Uniform(-kSpread, kSpread);
    body.position.y() += random->Uniform(-kSpread, kSpread);
    body.position.z() = kStorey * (i % kHeight + 1) - kHalfSide;
    scene.bodies.push_back(body);
  }
  return scene;
}

// Two bodies side by side and a third above the gap.
Scene Heaps(int bodies, bool walls, ShapeMix mix, Random* random) {
  constexpr int kHeap = 3;
  constexpr double kSpacing = 1;
  constexpr double kSpread = 0.002;
  const int heaps = (bodies + kHeap - 1) / kHeap;
  const int side = static_cast<int>(std::ceil(std::sqrt(heaps)));
  const double half_width = 0.5 * kSpacing * side;
  const Vector3d places[kHeap] = {
      {kReach + kSpread, 0, 0.06}, {-kReach - kSpread, 0, 0.06}, {0, 0, 0.06 + 2 * kRise + 0.01}};
  Scene scene;
  AddGroundAndWalls(walls ? std::optional<Bin>(Bin{half_width, 0.3}) : std::nullopt, &scene);
  for (int i = 0; i < bodies; ++i) {
    Body body = NextBody(mix, random);
    body.orientation = SmallTurn(random);
    body.position = GridPlace(i / kHeap, side, kSpacing) + places[i % kHeap];
    body.position.x() += random->Uniform(-kSpread, kSpread);
    scene.bodies.push_back(body);
  }
  return scene;
}

// Layers of a square grid, as wide as the settled pile is high.
Scene Pile(int bodies, bool walls, ShapeMix mix, Random* random) {
  constexpr double kCell = 0.16;
  constexpr double kLayer = 0.12;
  constexpr double kSpread = 0.003;
  const int side = std::max(2, static_cast<int>(std::ceil(std::cbrt(0.8 * bodies))));
  const double half_width = 0.5 * kCell * side;
  Scene scene;
  AddGroundAndWalls(walls ? std::optional<Bin>(Bin{half_width, 1.8 * half_width}) : std::nullopt,
                    &scene);
  for (int i = 0; i < bodies; ++i) {
    const int layer = i / (side * side);
    Body body = NextBody(mix, random);
    body.orientation = SmallTurn(random);
    body.position = GridPlace(i % (side * side), side, kCell);
    body.position.x() += random->Uniform(-kSpread, kSpread);
    body.position.y() += random->Uniform(-kSpread, kSpread);
    body.position.z() = 0.06 + kLayer * layer;
    scene.bodies.push_back(body);
  }
  return scene;
}

struct SceneEntry {
  std::string_view name;
  Scene (*make)(int bodies, bool walls, ShapeMix mix, Random* random);
  int bodies;  // defaults of the options
  bool walls;
  ShapeMix shapes;
};

constexpr SceneEntry kScenes[] = {
    {"clutter", &Clutter, 40, true, ShapeMix::kMixed},
    {"stacks", &Stacks, 90, false, ShapeMix::kBoxes},
    {"heaps", &Heaps, 300, false, ShapeMix::kMixed},
    {"pile", &Pile, 1000, true, ShapeMix::kMixed},
};

}  // namespace

std::vector<std::string> SceneNames() {
  std::vector<std::string> names;
  for (const SceneEntry& entry : kScenes) names.emplace_back(entry.name);
  return names;
}

tl::expected<Scene, std::string> MakeScene(std::string_view name, const SceneOptions& options) {
  const auto entry = std::find_if(std::begin(kScenes), std::end(kScenes),
                                  [name](const SceneEntry& scene) { return scene.name == name; });
  if (entry == std::end(kScenes)) {
    std::string message = "there is no scene '";
    message.append(name).append("'; the scenes are");
    for (const SceneEntry& scene : kScenes) message.append(" ").append(scene.name);
    return tl::unexpected(message);
  }
  const int bodies = options.bodies.value_or(entry->bodies);
  if (bodies < 1 || bodies > kLargestCount) {
    return tl::unexpected("the number of bodies is " + std::to_string(bodies) +
                          "; it must be between 1 and " +
                          std::to_string(static_cast<int>(kLargestCount)));
  }
  Random random(options.seed);
  return entry->make(bodies, options.walls.value_or(entry->walls),
                     options.shapes.value_or(entry->shapes), &random);
}

}  // namespace sap::simulation
