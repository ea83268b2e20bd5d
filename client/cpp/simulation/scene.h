// Scenes: bodies that do not overlap, the planes around them, and the material of all surfaces.
//
//   clutter  as in the paper: four columns of spheres (radius 5 cm) and boxes (sides 10 cm) above a
//            container of 80 cm, or above open ground [Castro et al. 2021, Section VI.C]
//   stacks   stacks of ten boxes that touch, 2 m apart: one island per stack
//   heaps    heaps of three bodies, 1 m apart: many small islands
//   pile     one pile in a bin that grows with the number of bodies
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "client/cpp/simulation/body.h"

namespace sap::simulation {

enum class ShapeMix : uint8_t { kMixed, kBoxes, kSpheres };

struct SceneOptions {
  std::optional<int> bodies{};       // absent: default of the scene
  std::optional<bool> walls{};       // absent: default of the scene
  std::optional<ShapeMix> shapes{};  // absent: default of the scene
  uint64_t seed{0};                  // of shapes, positions and orientations
};

// Walls of a bin, for pictures. In the simulation they are planes without an upper end, so that no
// body leaves over the rim.
struct Bin {
  double half_width{0.4};  // inside, along x and y, centered at the origin [m]
  double height{0.8};      // [m]
};

// Material of all contacts. The relaxation time tau_d is the time step, as in the paper.
struct Material {
  double stiffness{1e12};  // [N/m], so high that contacts are near-rigid
  double friction{1};      // [-]
};

struct Scene {
  std::vector<Body> bodies;
  std::vector<Plane> planes;  // the ground first
  std::optional<Bin> bin;
  Material material;
  Vector3d gravity{0, 0, -9.81};  // [m/s^2]
};

// Names of all scenes.
std::vector<std::string> SceneNames();

// An error states what is allowed.
tl::expected<Scene, std::string> MakeScene(std::string_view name, const SceneOptions& options = {});

}  // namespace sap::simulation
