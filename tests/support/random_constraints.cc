#include "tests/support/random_constraints.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/support/constrained_problem.h"
#include "tests/support/dense_algebra.h"

namespace sap::test {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool OneIn(Random* random, int n) { return UniformInt(random, 0, n - 1) == 0; }

void Fill(Random* random, size_t size, double low, double high, std::vector<double>* values) {
  values->resize(size);
  for (double& value : *values) value = Uniform(random, low, high);
}

// A quarter of the contacts stay plain, a quarter take a law of Hunt & Crossley.
void DrawLaws(Random* random, ProblemArrays* arrays) {
  LawArrays& law = arrays->contacts.law;
  const size_t contacts = law.friction.size();
  law.friction_2 = law.friction;
  for (std::vector<double>* zeros :
       {&law.torsional_friction, &law.adhesion, &law.hunt_crossley.elastic_force,
        &law.hunt_crossley.dissipation, &law.hunt_crossley.lagged_normal_impulse}) {
    zeros->assign(contacts, 0);
  }
  law.rolling_friction.assign(2 * contacts, 0);
  law.law.assign(contacts, 0);
  for (size_t i = 0; i < contacts; ++i) {
    const int draw = UniformInt(random, 0, 7);
    if (draw < 2) continue;
    if (draw < 4) {
      law.law[i] = draw == 2 ? static_cast<int32_t>(ContactLaw::kHuntCrossleyLagged)
                             : static_cast<int32_t>(ContactLaw::kHuntCrossleySimilar);
      law.hunt_crossley.elastic_force[i] = Uniform(random, -20, 100);
      law.hunt_crossley.dissipation[i] = OneIn(random, 4) ? 0 : Uniform(random, 0, 1);
      law.hunt_crossley.lagged_normal_impulse[i] = OneIn(random, 4) ? 0 : Uniform(random, 0, 1);
      law.stiffness[i] = OneIn(random, 4) ? 0 : LogUniform(random, 1e2, 1e5);
      continue;
    }
    if (OneIn(random, 2)) law.adhesion[i] = Uniform(random, 0, 50);
    if (law.friction[i] == 0) continue;
    law.friction_2[i] = OneIn(random, 5) ? 0 : Uniform(random, 0.05, 1.5);
    if (draw >= 5) law.torsional_friction[i] = Uniform(random, 0, 0.5);
    if (draw >= 6) {
      law.rolling_friction[2 * i] = Uniform(random, 0, 0.5);
      law.rolling_friction[2 * i + 1] = OneIn(random, 3) ? 0 : Uniform(random, 0, 0.5);
    }
  }
}

// Adds the arrays of contacts with torsional or rolling friction.
void AddAngularArrays(Random* random, bool with_targets, ProblemArrays* arrays) {
  ProblemArrays::Contacts& contacts = arrays->contacts;
  const LawArrays& law = contacts.law;
  const std::vector<int64_t> starts = JacobianStarts(*arrays);
  int angular = 0;
  int64_t size = 0;
  for (size_t i = 0; i < law.friction.size(); ++i) {
    if (law.torsional_friction[i] + law.rolling_friction[2 * i] + law.rolling_friction[2 * i + 1] ==
        0) {
      continue;
    }
    ++angular;
    size += starts[i + 1] - starts[i];
  }
  Fill(random, size, -1, 1, &contacts.angular_jacobian);
  if (with_targets) Fill(random, 3 * angular, -1, 1, &contacts.law.target_angular_velocity);
}

void AddRow(Random* random, int velocities, int max_entries, ProblemArrays* arrays) {
  std::vector<uint32_t> index(velocities);
  std::iota(index.begin(), index.end(), 0);
  std::shuffle(index.begin(), index.end(), *random);
  index.resize(std::min(velocities, UniformInt(random, 1, max_entries)));
  std::ranges::sort(index);
  std::vector<double> coefficient(index.size());
  for (double& J : coefficient) J = Uniform(random, -1, 1);
  arrays->AddRow(index, coefficient);
}

void DrawRowParameters(Random* random, bool with_targets, ProblemArrays::Rows* rows) {
  const size_t count = rows->entries.size();
  Fill(random, count, -1e-2, 1e-2, &rows->position_error);
  Fill(random, count, -0.3, 0.3, &rows->velocity_offset);
  Fill(random, count, 0, 0.05, &rows->relaxation_time);
  if (with_targets) Fill(random, count, -1, 1, &rows->target_velocity);
  for (size_t i = 0; i < count; ++i) {
    rows->stiffness.push_back(OneIn(random, 2) ? kInfinity : LogUniform(random, 1e2, 1e6));
    rows->regularization.push_back(OneIn(random, 4) ? LogUniform(random, 1e-3, 1) : 0);
    rows->delassus_estimate.push_back(OneIn(random, 4) ? LogUniform(random, 0.1, 10) : 0);
    rows->slip_parameter.push_back(OneIn(random, 4) ? LogUniform(random, 1e-3, 0.1) : 0);
    rows->force_offset.push_back(OneIn(random, 3) ? Uniform(random, -20, 20) : 0);
    const double lower = Uniform(random, -40, 20);
    const bool bilateral = OneIn(random, 3);
    rows->force_lower.push_back(bilateral || OneIn(random, 3) ? -kInfinity : lower);
    const double width = OneIn(random, 5) ? 0 : Uniform(random, 0, 40);
    rows->force_upper.push_back(bilateral || OneIn(random, 3) ? kInfinity : lower + width);
  }
}

// Couples each tree with the one before it, where that is drawn. The least eigenvalues of both
// trees bound the block, so that A stays positive definite.
void CoupleTrees(Random* random, ProblemArrays* arrays) {
  const double* A = arrays->trees.dynamics_matrix.data();
  double least_before = 0;
  int n_before = 0;
  for (int tree = 0; tree < static_cast<int>(arrays->trees.dofs.size()); ++tree) {
    const auto n = static_cast<int>(arrays->trees.dofs[tree]);
    const double least = EigenvaluesOf(Eigen::Map<const Eigen::MatrixXd>(A, n, n))[0];
    A += n * n;
    if (tree > 0 && !OneIn(random, 3)) {
      arrays->trees.coupled_a.push_back(tree);
      arrays->trees.coupled_b.push_back(tree - 1);
      const double largest = 0.45 * std::sqrt(least * least_before / (n * n_before));
      for (int k = 0; k < n * n_before; ++k) {
        arrays->trees.coupling_block.push_back(largest * Uniform(random, -1, 1));
      }
    }
    least_before = least;
    n_before = n;
  }
}

void AddBodies(Random* random, ProblemArrays* arrays) {
  constexpr int kBodies = 2;
  for (int body = 0; body < kBodies; ++body) {
    arrays->AddBody(LogUniform(random, 0.2, 5), UniformVector(random, 3, 0.02, 0.2),
                    UniformVector(random, 3, -1, 1), UniformVector(random, 6, -1, 1));
  }
  for (const int other : {-1, -1, 1}) {
    arrays->AddBodyContact(0, other, UniformVector(random, 3, -1, 1), RandomUnitVector(random),
                           {.signed_distance = Uniform(random, -2e-3, 1e-3),
                            .stiffness = LogUniform(random, 1e3, 1e8),
                            .friction = Uniform(random, 0.05, 1.5)});
  }
  LawArrays& law = arrays->body_contacts.law;
  Fill(random, law.friction.size(), 0, 0.1, &law.torsional_friction);
  law.torsional_friction[0] = 0;
}

// Contacts without linear rows, or hardly any: their points lie on an axis that the trees turn
// about. Without angular rows nothing moves them.
void PutOnAxes(Random* random, ProblemArrays* arrays) {
  const std::vector<int64_t> starts = JacobianStarts(*arrays);
  for (size_t i = 0; i + 1 < starts.size(); ++i) {
    if (!OneIn(random, 3)) continue;
    const double size = OneIn(random, 2) ? 0 : LogUniform(random, 1e-9, 1e-2);
    for (int64_t k = starts[i]; k < starts[i + 1]; ++k) arrays->contacts.jacobian[k] *= size;
  }
}

}  // namespace

ProblemArrays RandomLegalProblem(uint64_t seed) {
  Random random(seed + 2000);
  ProblemArrays arrays = RandomConstraintsOfEveryKind(
      seed, {.contacts = {.trees = 4, .contacts = 5, .max_dofs = 6}, .rows = 4});
  arrays.regularization.rule = seed % 2 == 0 ? DelassusRule::kFull : DelassusRule::kDiagonal;
  if (seed % 4 < 2) CoupleTrees(&random, &arrays);
  if (seed % 3 == 0) AddBodies(&random, &arrays);
  if (seed % 5 < 2) PutOnAxes(&random, &arrays);
  LawArrays& law = arrays.contacts.law;
  const size_t contacts = law.friction.size();
  if (seed % 7 == 5) {
    for (size_t i = 0; i < contacts; ++i) {
      law.regularization_t.push_back(LogUniform(&random, 1e-4, 1e-2));
      law.regularization_n.push_back(LogUniform(&random, 1e-3, 1e-1));
    }
  }
  if (seed % 7 == 6) {
    for (size_t i = 0; i < contacts; ++i) {
      law.delassus_estimate.push_back(LogUniform(&random, 0.1, 10));
    }
  }
  return arrays;
}

ProblemArrays RandomStiffContacts(uint64_t seed) {
  Random random(seed + 3000);
  const int trees = UniformInt(&random, 1, 5);
  ProblemArrays arrays = RandomTreesInContact(
      seed, {.trees = trees, .contacts = UniformInt(&random, 1, 2 * trees), .min_dofs = 3});
  arrays.time_step = LogUniform(&random, 1e-3, 0.1);
  for (double& inertia : arrays.trees.dynamics_matrix) inertia *= 1e-3;
  const ConstrainedProblem exact(arrays);
  LawArrays& law = arrays.contacts.law;
  law.law.assign(law.friction.size(), static_cast<int32_t>(ContactLaw::kHuntCrossleySimilar));
  for (size_t i = 0; i < law.friction.size(); ++i) {
    const auto w = static_cast<double>(exact.contacts()[i].w);
    const double dt2 = arrays.time_step * arrays.time_step;
    const double k = LogUniform(&random, 1e3, 1e10) / (dt2 * w);
    law.stiffness[i] = k;
    law.friction[i] = Uniform(&random, 0, 3);
    law.hunt_crossley.elastic_force.push_back(-k * Uniform(&random, -2e-4, 1e-4));
    law.hunt_crossley.dissipation.push_back(OneIn(&random, 2) ? 0 : 0.1);
    law.hunt_crossley.lagged_normal_impulse.push_back(Uniform(&random, 0, 1) * 0.1 / w);
  }
  const int velocities = VelocityStarts(arrays).back();
  for (int row = UniformInt(&random, 0, 2); row > 0; --row) {
    AddRow(&random, velocities, 5, &arrays);
    arrays.rows.force_lower.push_back(row == 1 ? -kInfinity : Uniform(&random, -1, 0));
    arrays.rows.force_upper.push_back(Uniform(&random, 0, 1));
  }
  return arrays;
}

ProblemArrays RandomConstraintsOfEveryKind(uint64_t seed, const RandomConstraints& parameters) {
  ProblemArrays arrays = RandomTreesInContact(seed, parameters.contacts);
  Random random(seed + 1000);
  const size_t contacts = arrays.contacts.tree_a.size();
  DrawLaws(&random, &arrays);
  AddAngularArrays(&random, seed % 3 == 0, &arrays);
  Fill(&random, 3 * contacts, -0.3, 0.3, &arrays.contacts.law.surface_velocity);
  if (seed % 2 == 0) Fill(&random, 3 * contacts, -0.5, 0.5, &arrays.contacts.law.target_velocity);
  const int velocities = VelocityStarts(arrays).back();
  for (int row = 0; row < parameters.rows; ++row) {
    AddRow(&random, velocities, parameters.max_entries, &arrays);
  }
  DrawRowParameters(&random, seed % 4 < 2, &arrays.rows);
  Fill(&random, velocities, -1, 1, &arrays.trees.guess_velocity);
  if (seed % 5 == 3) arrays.regularization.reference_time_step = LogUniform(&random, 2e-3, 5e-2);
  return arrays;
}

}  // namespace sap::test
