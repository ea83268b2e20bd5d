#include "tests/support/random_constraints.h"

#include <algorithm>
#include <limits>
#include <numeric>

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

}  // namespace

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
  return arrays;
}

}  // namespace sap::test
