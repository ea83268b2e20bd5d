// A problem in structs of the C interface, of any size.
#pragma once

#include <cstdint>
#include <vector>

#include "client/c/sap_islands.h"

namespace sap::test {

// A lattice of spheres at rest on each other, large enough for several threads; in columns that do
// not touch each other, each is an island.
struct Pile {
  explicit Pile(int side, bool in_columns = false) {
    const int count = side * side * side;
    const auto number = [side](int x, int y, int z) { return (z * side + y) * side + x; };
    for (int i = 0; i < count; ++i) {
      mass.push_back(1 + 0.001 * i);
      for (const double value : {0.1, 0.1, 0.1, 0.0, 0.0, 0.0}) inertia.push_back(value);
      for (const int d : {i % side, i / side % side, i / side / side}) center.push_back(d);
      for (const double value : {0.1, 0.0, -0.1, 0.0, 0.0, 0.0}) v_star.push_back(value);
      id.push_back(static_cast<uint32_t>(i));
    }
    for (int z = 0; z < side; ++z) {
      for (int y = 0; y < side; ++y) {
        for (int x = 0; x < side; ++x) {
          if (x > 0 && !in_columns) Touch(number(x, y, z), number(x - 1, y, z), {1, 0, 0});
          if (y > 0 && !in_columns) Touch(number(x, y, z), number(x, y - 1, z), {0, 1, 0});
          Touch(number(x, y, z), z > 0 ? number(x, y, z - 1) : -1, {0, 0, 1});
        }
      }
    }
    const auto doubles = [](const std::vector<double>& values) {
      return sap_doubles{values.data(), static_cast<int64_t>(values.size())};
    };
    laws.struct_size = sizeof laws;
    contacts.struct_size = sizeof contacts;
    bodies.struct_size = sizeof bodies;
    problem.struct_size = sizeof problem;
    laws.signed_distance = doubles(distance);
    laws.stiffness = doubles(stiffness);
    laws.relaxation_time = doubles(relaxation);
    laws.friction = doubles(friction);
    contacts.body_a = {body_a.data(), static_cast<int64_t>(body_a.size())};
    contacts.body_b = {body_b.data(), static_cast<int64_t>(body_b.size())};
    contacts.point = doubles(point);
    contacts.normal = doubles(normal);
    contacts.laws = &laws;
    bodies.mass = doubles(mass);
    bodies.inertia = doubles(inertia);
    bodies.center_of_mass = doubles(center);
    bodies.free_motion_velocity = doubles(v_star);
    bodies.body_id = {id.data(), static_cast<int64_t>(id.size())};
    problem.time_step = 0.01;
    problem.bodies = &bodies;
    problem.body_contacts = &contacts;
  }
  Pile(const Pile&) = delete;
  Pile& operator=(const Pile&) = delete;

  void Touch(int a, int b, const std::vector<double>& n) {
    body_a.push_back(a);
    body_b.push_back(b);
    for (int d = 0; d < 3; ++d) point.push_back(center[3 * a + d] - 0.5 * n[d]);
    normal.insert(normal.end(), n.begin(), n.end());
    distance.push_back(-1e-4);
    stiffness.push_back(1e5);
    relaxation.push_back(0.01);
    friction.push_back(0.5);
  }

  std::vector<double> mass, inertia, center, v_star;
  std::vector<uint32_t> id;
  std::vector<int32_t> body_a, body_b;
  std::vector<double> point, normal, distance, stiffness, relaxation, friction;
  sap_contact_laws laws{};
  sap_body_contacts contacts{};
  sap_bodies bodies{};
  sap_problem problem{};
};

}  // namespace sap::test
