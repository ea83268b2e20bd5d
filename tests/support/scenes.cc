#include "tests/support/scenes.h"

#include <array>
#include <cmath>
#include <vector>

#include "client/cpp/transport/message_conversion.h"

namespace sap::test {
namespace {

using client::kWorld;
using client::Member;
using client::ProblemBuilder;

constexpr client::ContactLaw kLaw{.signed_distance = -1e-3,
                                  .stiffness = 1e5,
                                  .relaxation_time = 0.01,
                                  .friction = 0.5,
                                  .surface_velocity = {0.01, -0.02, 0.0}};

client::RigidBody Sphere(double x, double y, double z) {
  constexpr double kMass = 0.5;
  constexpr double kRadius = 0.1;
  constexpr double kInertia = 0.4 * kMass * kRadius * kRadius;
  return {.mass = kMass,
          .inertia = {kInertia, kInertia, kInertia, 0, 0, 0},
          .center_of_mass = {x, y, z},
          .free_motion_velocity = {0.1, 0.0, -0.5, 0.0, 0.2, 0.0}};
}

// Deterministic numbers in [-1, 1] without a pattern that a solver could profit from.
double Scatter(int i) { return std::sin(12.9898 * i + 4.1414 * i * i); }

// Of sphere s in a block with so many along each edge, standing on the floor z = 0.
std::array<double, 3> Center(int s, int count, double spacing) {
  return {spacing * (s % count), spacing * (s / count % count),
          spacing * (s / (count * count)) + spacing / 2};
}

}  // namespace

v1::ContactProblem MixedProblem() {
  ProblemBuilder builder(/*time_step=*/0.01);
  const Member hinge =
      builder.AddTree(std::vector<double>{2.0, 0.3, 0.3, 1.0}, std::vector<double>{-0.3, 0.4});
  const Member arm =
      builder.AddTree(std::vector<double>{3.0, 0.1, 0.2, 0.1, 2.0, 0.3, 0.2, 0.3, 1.5},
                      std::vector<double>{0.5, -1.0, 0.2});
  const Member left = builder.AddBody(Sphere(0.0, 0.0, 0.1));
  const Member right = builder.AddBody(Sphere(0.2, 0.0, 0.1));
  const std::vector<double> hinge_jacobian{1.0, 0.2, 0.1, 0.9, 0.3, 0.4};
  const std::vector<double> arm_jacobian{-1.0, 0.1, 0.2, 0.2, -0.8, 0.1, 0.1, 0.3, -0.9};
  std::vector<double> body_jacobian(18, 0.0);
  for (int row = 0; row < 3; ++row) body_jacobian[row * 6 + row] = -1.0;
  builder.AddContact(hinge, arm, hinge_jacobian, arm_jacobian, kLaw);
  builder.AddContact(arm, kWorld, arm_jacobian, {}, kLaw);
  builder.AddContact(hinge, left, hinge_jacobian, body_jacobian, kLaw);
  builder.AddBodyContact(left, right, {0.1, 0.0, 0.1}, {-1.0, 0.0, 0.0}, kLaw);
  builder.AddBodyContact(right, kWorld, {0.2, 0.0, 0.0}, {0.0, 0.0, 1.0}, kLaw);
  client::Problem problem = builder.Build();
  problem.trees.tree_id = {7, 8};
  problem.bodies.body_id = {9, 10};
  problem.trees.guess_velocity = problem.trees.free_motion_velocity;
  problem.bodies.guess_velocity = problem.bodies.free_motion_velocity;
  v1::ContactProblem message;
  client::ToMessage(problem, &message);
  return message;
}

client::Problem SphereBlock(int count) {
  constexpr double kSpacing = 0.199;  // of spheres of radius 0.1
  const client::ContactLaw law{
      .signed_distance = -1e-3, .stiffness = 1e8, .relaxation_time = 1e-4, .friction = 0.9};
  ProblemBuilder builder(/*time_step=*/0.005);
  std::vector<Member> spheres;
  // A contact of sphere s with the one before it along an axis.
  const auto touch = [&](int s, Member other, int axis) {
    std::array<double, 3> point = Center(s, count, kSpacing);
    std::array<double, 3> normal{};
    point[axis] -= kSpacing / 2;
    normal[axis] = 1;
    builder.AddBodyContact(spheres[s], other, point, normal, law);
  };
  const int layer = count * count;
  for (int s = 0; s < layer * count; ++s) {
    const auto [x, y, z] = Center(s, count, kSpacing);
    client::RigidBody sphere = Sphere(x, y, z);
    for (int i = 0; i < 6; ++i) sphere.free_motion_velocity[i] += 3 * Scatter(6 * s + i);
    spheres.push_back(builder.AddBody(sphere));
    if (s % count > 0) touch(s, spheres[s - 1], 0);
    if (s % layer >= count) touch(s, spheres[s - count], 1);
    touch(s, s >= layer ? spheres[s - layer] : kWorld, 2);
  }
  return builder.Build();
}

}  // namespace sap::test
