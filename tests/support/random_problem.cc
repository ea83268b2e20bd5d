#include "tests/support/random_problem.h"

#include <Eigen/QR>
#include <cmath>

namespace sap::test {

using Eigen::Vector3d;

double Uniform(Random* random, double low, double high) {
  const double in_unit = static_cast<double>((*random)() >> 11) * 0x1p-53;
  return low + (high - low) * in_unit;
}

int UniformInt(Random* random, int low, int high) {
  return low + static_cast<int>((*random)() % static_cast<uint64_t>(high - low + 1));
}

Eigen::VectorXd UniformVector(Random* random, int size, double low, double high) {
  Eigen::VectorXd values(size);
  for (double& value : values) value = Uniform(random, low, high);
  return values;
}

double LogUniform(Random* random, double low, double high) {
  return std::exp(Uniform(random, std::log(low), std::log(high)));
}

Vector3d RandomUnitVector(Random* random) {
  for (;;) {
    const Vector3d v = UniformVector(random, 3, -1, 1);
    const double length = v.norm();
    if (length > 0.1 && length < 1) return v / length;
  }
}

Eigen::MatrixXd RandomDynamicsMatrix(Random* random, int size, double low, double high) {
  Eigen::MatrixXd square(size, size);
  for (double& value : square.reshaped()) value = Uniform(random, -1, 1);
  const Eigen::MatrixXd Q = Eigen::HouseholderQR<Eigen::MatrixXd>(square).householderQ();
  Eigen::VectorXd eigenvalues(size);
  for (double& value : eigenvalues) value = LogUniform(random, low, high);
  const Eigen::MatrixXd A = Q * eigenvalues.asDiagonal() * Q.transpose();
  return (A + A.transpose()) / 2;
}

namespace {

Material RandomMaterial(Random* random, double friction_max) {
  Material material;
  material.signed_distance = Uniform(random, -2e-3, 1e-3);
  material.stiffness = LogUniform(random, 1e3, 1e8);
  material.relaxation_time = Uniform(random, 0, 0.02);
  material.friction = UniformInt(random, 0, 9) == 0 ? 0.0 : Uniform(random, 0.05, friction_max);
  return material;
}

ProblemArrays::Jacobian RandomJacobian(Random* random, int columns) {
  ProblemArrays::Jacobian J(3, columns);
  for (double& value : J.reshaped()) value = Uniform(random, -1, 1);
  return J;
}

}  // namespace

ProblemArrays RandomTreesInContact(uint64_t seed, const TreesInContact& parameters) {
  Random random(seed);
  ProblemArrays arrays;
  for (int tree = 0; tree < parameters.trees; ++tree) {
    const int n = UniformInt(&random, parameters.min_dofs, parameters.max_dofs);
    const double mass = LogUniform(&random, 0.1, 10);
    arrays.AddTree(RandomDynamicsMatrix(&random, n, 0.1 * mass, mass),
                   UniformVector(&random, n, -1, 1));
  }
  for (int contact = 0; contact < parameters.contacts; ++contact) {
    const int a = UniformInt(&random, 0, parameters.trees - 1);
    const auto J_a = RandomJacobian(&random, static_cast<int>(arrays.trees.dofs[a]));
    const Material material = RandomMaterial(&random, parameters.friction_max);
    int b = UniformInt(&random, 0, parameters.trees - 1);
    if (b == a || Uniform(&random, 0, 1) < parameters.world_share) {
      arrays.AddContact(a, J_a, material);
    } else {
      arrays.AddContact(a, J_a, b, RandomJacobian(&random, static_cast<int>(arrays.trees.dofs[b])),
                        material);
    }
  }
  return arrays;
}

ProblemArrays LargeTree(int dofs, int contacts) {
  Random random(dofs);
  Eigen::MatrixXd A(dofs, dofs);
  for (int i = 0; i < dofs; ++i) {
    for (int j = 0; j < dofs; ++j) A(i, j) = 1.0 / (1 + std::abs(i - j));
  }
  ProblemArrays arrays;
  arrays.AddTree(A + Eigen::MatrixXd::Identity(dofs, dofs), UniformVector(&random, dofs, -1, 1));
  for (int contact = 0; contact < contacts; ++contact) {
    arrays.AddContact(0, RandomJacobian(&random, dofs), RandomMaterial(&random, 1.5));
  }
  return arrays;
}

ProblemArrays RandomBodiesInContact(uint64_t seed, int bodies, int contacts) {
  Random random(seed);
  ProblemArrays arrays;
  for (int body = 0; body < bodies; ++body) {
    const double mass = LogUniform(&random, 0.2, 5);
    arrays.AddBody(mass, Vector3d::Ones(), UniformVector(&random, 3, -1, 1),
                   UniformVector(&random, 6, -1, 1));
    const Eigen::MatrixXd I = RandomDynamicsMatrix(&random, 3, 0.02 * mass, 0.2 * mass);
    double* inertia = arrays.bodies.inertia.data() + 6 * static_cast<size_t>(body);
    for (int i = 0; i < 3; ++i) inertia[i] = I(i, i);
    inertia[3] = I(0, 1);
    inertia[4] = I(0, 2);
    inertia[5] = I(1, 2);
  }
  for (int contact = 0; contact < contacts; ++contact) {
    const int a = UniformInt(&random, 0, bodies - 1);
    int b = UniformInt(&random, -1, bodies - 1);
    if (b == a) b = -1;
    arrays.AddBodyContact(a, b, UniformVector(&random, 3, -1.2, 1.2), RandomUnitVector(&random),
                          RandomMaterial(&random, 1.5));
  }
  return arrays;
}

ProblemArrays Heaps(uint64_t seed, int heaps, int height) {
  Random random(seed);
  constexpr double kGravity = 9.81;
  constexpr double kHalf = 0.5;
  ProblemArrays arrays;
  for (int heap = 0; heap < heaps; ++heap) {
    for (int level = 0; level < height; ++level) {
      const double mass = Uniform(&random, 1, 2);
      const Vector3d center(3.0 * heap, 0, kHalf + level);
      Eigen::Matrix<double, 6, 1> v_star = Eigen::Matrix<double, 6, 1>::Zero();
      v_star[0] = Uniform(&random, -0.2, 0.2);
      v_star[2] = -kGravity * arrays.time_step;
      const int body = arrays.AddBody(mass, Vector3d::Constant(mass / 6), center, v_star);
      for (const double x : {-kHalf, kHalf}) {
        for (const double y : {-kHalf, kHalf}) {
          arrays.AddBodyContact(body, level == 0 ? -1 : body - 1, center + Vector3d(x, y, -kHalf),
                                Vector3d::UnitZ(),
                                {.signed_distance = Uniform(&random, -1e-4, 0),
                                 .stiffness = 1e7,
                                 .relaxation_time = 0.01,
                                 .friction = Uniform(&random, 0.2, 0.8)});
        }
      }
    }
  }
  return arrays;
}

ProblemArrays BodiesOnATable(int bodies) {
  Random random(7);
  ProblemArrays arrays;
  const auto add_tree = [&](double mass) {
    Eigen::VectorXd v = UniformVector(&random, 6, -0.1, 0.1);
    v[2] -= 0.1;
    return arrays.AddTree(mass * RandomDynamicsMatrix(&random, 6, 0.5, 2), v);
  };
  const auto jacobian = [&](double sign) {
    ProblemArrays::Jacobian J(3, 6);
    for (double& entry : J.reshaped()) entry = Uniform(&random, -0.3, 0.3);
    J.leftCols(3) += sign * Eigen::Matrix3d::Identity();
    return J;
  };
  constexpr int kContacts = 4;
  const int table = add_tree(100);
  for (int k = 0; k < kContacts; ++k) arrays.AddContact(table, jacobian(1), {});
  for (int i = 0; i < bodies; ++i) {
    const int body = add_tree(1);
    for (int k = 0; k < kContacts; ++k) {
      arrays.AddContact(body, jacobian(1), table, jacobian(-1), {.signed_distance = -1e-4});
    }
  }
  return arrays;
}

ProblemArrays BlockOfBodies(int side) {
  Random random(11);
  ProblemArrays arrays;
  const auto number = [side](int x, int y, int z) { return (z * side + y) * side + x; };
  for (int i = 0; i < side * side * side; ++i) {
    const Vector3d center(i % side, i / side % side, i / (side * side));
    arrays.AddBody(1, Vector3d::Constant(0.1), center, UniformVector(&random, 6, -0.3, 0.3));
  }
  constexpr int kAhead[][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 1}, {0, 1, 1}};
  for (int i = 0; i < side * side * side; ++i) {
    const int x = i % side, y = i / side % side, z = i / (side * side);
    const Vector3d center(x, y, z);
    if (z == 0) {
      arrays.AddBodyContact(i, -1, center - 0.5 * Vector3d::UnitZ(), Vector3d::UnitZ(),
                            {.signed_distance = -1e-4});
    }
    for (const auto& [dx, dy, dz] : kAhead) {
      if (x + dx >= side || y + dy >= side || z + dz >= side) continue;
      const Vector3d step(dx, dy, dz);
      arrays.AddBodyContact(i, number(x + dx, y + dy, z + dz), center + 0.5 * step,
                            -step.normalized(), {.signed_distance = -1e-4});
    }
  }
  return arrays;
}

ProblemArrays HeapsBeforeAPile(int heaps, int bodies) {
  ProblemArrays arrays = Heaps(1, heaps, 7);
  Random random(2);
  const int first = 7 * heaps;
  for (int i = 0; i < bodies; ++i) {
    arrays.AddBody(1, Vector3d::Constant(0.1), UniformVector(&random, 3, -1, 1),
                   UniformVector(&random, 6, -1, 1));
  }
  for (int contact = 0; contact < 3 * bodies; ++contact) {
    const int i = contact % bodies;
    const int other = contact < bodies ? i - 1 : UniformInt(&random, 0, bodies - 1);
    const int b = other < 0 || other == i ? -1 : first + other;
    arrays.AddBodyContact(first + i, b, UniformVector(&random, 3, -1.2, 1.2),
                          RandomUnitVector(&random), RandomMaterial(&random, 1.5));
  }
  return arrays;
}

}  // namespace sap::test
