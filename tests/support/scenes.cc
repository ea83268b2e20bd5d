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

constexpr std::array<double, 6> kHingeJacobian{1.0, 0.2, 0.1, 0.9, 0.3, 0.4};
constexpr std::array<double, 9> kArmJacobian{-1.0, 0.1, 0.2, 0.2, -0.8, 0.1, 0.1, 0.3, -0.9};

// Jacobian of a body's center.
std::vector<double> BodyJacobian() {
  std::vector<double> jacobian(18, 0.0);
  for (int row = 0; row < 3; ++row) jacobian[row * 6 + row] = -1.0;
  return jacobian;
}

struct MixedMembers {
  Member hinge;  // 2 dofs
  Member arm;    // 3 dofs
  Member left;   // bodies
  Member right;
};

MixedMembers AddMixedMembers(ProblemBuilder* builder) {
  return {.hinge = builder->AddTree(std::vector<double>{2.0, 0.3, 0.3, 1.0},
                                    std::vector<double>{-0.3, 0.4}),
          .arm = builder->AddTree(std::vector<double>{3.0, 0.1, 0.2, 0.1, 2.0, 0.3, 0.2, 0.3, 1.5},
                                  std::vector<double>{0.5, -1.0, 0.2}),
          .left = builder->AddBody(Sphere(0.0, 0.0, 0.1)),
          .right = builder->AddBody(Sphere(0.2, 0.0, 0.1))};
}

// Deterministic numbers in [-1, 1] without a pattern that a solver could profit from.
double Scatter(int i) { return std::sin(12.9898 * i + 4.1414 * i * i); }

// Center of sphere s in a block with `count` along each edge, standing on the floor z = 0.
std::array<double, 3> Center(int s, int count, double spacing) {
  return {spacing * (s % count), spacing * (s / count % count),
          spacing * (s / (count * count)) + spacing / 2};
}

}  // namespace

v1::ContactProblem MixedProblem() {
  ProblemBuilder builder(/*time_step=*/0.01);
  const auto [hinge, arm, left, right] = AddMixedMembers(&builder);
  builder.AddContact(hinge, arm, kHingeJacobian, kArmJacobian, kLaw);
  builder.AddContact(arm, kWorld, kArmJacobian, {}, kLaw);
  builder.AddContact(hinge, left, kHingeJacobian, BodyJacobian(), kLaw);
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

client::Problem EveryConstraint() {
  using client::HuntCrossleyLaw;
  ProblemBuilder builder(/*time_step=*/0.01);
  const auto [hinge, arm, left, right] = AddMixedMembers(&builder);

  client::ContactLaw cone = kLaw;
  cone.friction_2 = 0.3;
  cone.torsional_friction = 0.01;
  client::ContactLaw rolling = cone;
  rolling.rolling_friction = {0.005, 0.01};
  rolling.adhesion = 2;
  rolling.target_velocity = {0.1, 0.0, 0.05};
  rolling.target_angular_velocity = {0.0, 0.2, 0.1};
  client::ContactLaw lagged = kLaw;
  lagged.hunt_crossley = {.friction = HuntCrossleyLaw::Friction::kLagged,
                          .elastic_force = 100,
                          .dissipation = 0.5,
                          .lagged_normal_impulse = 1};
  client::ContactLaw similar = lagged;
  similar.hunt_crossley->friction = HuntCrossleyLaw::Friction::kSimilar;
  builder.AddContact(hinge, arm, kHingeJacobian, kArmJacobian, cone, kHingeJacobian, kArmJacobian);
  builder.AddContact(arm, kWorld, kArmJacobian, {}, lagged);
  builder.AddContact(hinge, left, kHingeJacobian, BodyJacobian(), kLaw);
  builder.AddBodyContact(left, right, {0.1, 0.0, 0.1}, {-1.0, 0.0, 0.0}, similar);
  builder.AddBodyContact(right, kWorld, {0.2, 0.0, 0.0}, {0.0, 0.0, 1.0}, rolling, {{0, 1, 0}});

  // A limit, a coupler, a weld, a tendon, a motor and dry friction.
  builder.AddRow({{arm, 2, -1}}, {.position_error = 0.001, .force_lower = 0});
  builder.AddRow({{hinge, 0, 1}, {arm, 0, -0.5}}, {.position_error = 0.002});
  builder.AddRow({{left, 2, 1}, {right, 2, -1}, {left, 4, -0.1}, {right, 4, -0.1}}, {});
  builder.AddRow(
      {{right, 0, 1}, {arm, 1, 0.3}, {hinge, 1, -0.2}},
      {.position_error = 0.01, .stiffness = 1e3, .relaxation_time = 0.01, .force_upper = 0});
  builder.AddRow({{arm, 0, 1}}, {.force_lower = -5, .force_upper = 5, .target_velocity = 2});
  builder.AddRow({{hinge, 1, 1}}, {.force_lower = -3, .force_upper = 3, .slip_parameter = 1e-3});
  return builder.Build();
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

client::Problem Stacks(int stacks, int height) {
  ProblemBuilder builder(0.01);
  const client::ContactLaw law{.signed_distance = -1e-4, .stiffness = 1e5, .friction = 0.5};
  for (int stack = 0; stack < stacks; ++stack) {
    Member below = kWorld;
    for (int level = 0; level < height; ++level) {
      const double x = stack, z = 0.2 * level;
      const Member ball =
          builder.AddBody({.mass = 1 + 0.1 * (stack % 7),
                           .inertia = {0.004, 0.004, 0.004, 0, 0, 0},
                           .center_of_mass = {x, 0, z + 0.1},
                           .free_motion_velocity = {0.3, 0, -0.1, 0, 0.2 * level, 0}});
      for (const double side : {-0.05, 0.05}) {
        builder.AddBodyContact(ball, below, {x + side, 0, z}, {0, 0, 1}, law);
        builder.AddBodyContact(ball, below, {x, side, z}, {0, 0, 1}, law);
      }
      below = ball;
    }
  }
  return builder.Build();
}

}  // namespace sap::test
