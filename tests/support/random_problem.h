// Random contact problems, reproducible by seed, for properties that hold for every problem.
#pragma once

#include <cstdint>
#include <random>

#include "tests/support/problem_arrays.h"

namespace sap::test {

using Random = std::mt19937_64;

// Uniform in [low, high), by arithmetic that is the same on every platform.
double Uniform(Random* random, double low, double high);
int UniformInt(Random* random, int low, int high);  // in [low, high]
Eigen::VectorXd UniformVector(Random* random, int size, double low, double high);
// e^x with x uniform, over many orders of magnitude.
double LogUniform(Random* random, double low, double high);
Eigen::Vector3d RandomUnitVector(Random* random);
// Symmetric positive definite, eigenvalues within [low, high].
Eigen::MatrixXd RandomDynamicsMatrix(Random* random, int size, double low, double high);

struct TreesInContact {
  int trees{12};
  int contacts{30};
  int min_dofs{1};
  int max_dofs{9};
  double friction_max{1.5};
  double world_share{0.3};  // of contacts with one tree only
};

// Trees with random contacts by Jacobian; every tenth contact frictionless.
ProblemArrays RandomTreesInContact(uint64_t seed, const TreesInContact& parameters = {});

// One tree of many dofs, of which every contact with the world moves all.
ProblemArrays LargeTree(int dofs, int contacts);

// Rigid bodies in random places that touch each other and the world at random points, thrown
// together; the inertias are full matrices.
ProblemArrays RandomBodiesInContact(uint64_t seed, int bodies, int contacts);

// A row of heaps that do not touch each other: `heaps` stacks of `height` unit boxes of 1 to 2 kg,
// each with four contact points to the one below or the ground, pushed sideways.
ProblemArrays Heaps(uint64_t seed, int heaps, int height);

// One tree that so many others lie on, by four contacts each.
ProblemArrays BodiesOnATable(int bodies);

// A cube of `side`^3 bodies, thrown together: each has a contact with the next one along every axis
// and along two diagonals, those of the lowest layer with the ground.
ProblemArrays BlockOfBodies(int side);

// Heaps of seven boxes, and after them a pile: one island of `bodies` bodies.
ProblemArrays HeapsBeforeAPile(int heaps, int bodies);

}  // namespace sap::test
