#include "tests/support/random_islands.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace sap::test {
namespace {

using client::Member;

bool OneIn(Random* random, int n) { return UniformInt(random, 0, n - 1) == 0; }

std::vector<double> Uniforms(Random* random, size_t size, double low, double high) {
  std::vector<double> values(size);
  for (double& value : values) value = Uniform(random, low, high);
  return values;
}

std::array<double, 3> Array(const Eigen::Vector3d& v) { return {v.x(), v.y(), v.z()}; }

struct Cluster {
  std::vector<Member> members;
  std::vector<int> dofs;
};

class SceneMaker {
 public:
  explicit SceneMaker(uint64_t seed) : seed_(seed), random_(seed) {}

  client::Problem Make() {
    std::vector<Cluster> clusters(UniformInt(&random_, 2, 12));
    AddMembers(&clusters);
    for (Cluster& cluster : clusters) {
      const int contacts = UniformInt(&random_, 0, 2 * static_cast<int>(cluster.members.size()));
      for (int i = 0; i < contacts; ++i) AddContact(cluster);
      for (int i = UniformInt(&random_, 0, 2); i > 0; --i) AddRow(cluster);
    }
    client::Problem problem = builder_.Build();
    AddOptionalArrays(&problem);
    if (seed_ % 3 == 1) AddCouplings(clusters, &problem);
    return problem;
  }

 private:
  // One by one to any of the clusters, so that their members mix.
  void AddMembers(std::vector<Cluster>* clusters) {
    const int last = static_cast<int>(clusters->size()) - 1;
    for (int i = UniformInt(&random_, 8, 40); i >= 0; --i) {
      const bool is_tree = seed_ % 5 != 0 && OneIn(&random_, 2);
      const int dofs = is_tree ? UniformInt(&random_, 1, 8) : 6;
      const Member member = is_tree ? AddTree(dofs) : AddBody();
      if (OneIn(&random_, 8)) continue;
      Cluster& cluster = (*clusters)[UniformInt(&random_, 0, last)];
      cluster.members.push_back(member);
      cluster.dofs.push_back(dofs);
    }
  }

  Member AddTree(int dofs) {
    const Eigen::MatrixXd A = RandomDynamicsMatrix(&random_, dofs, 0.2, 4);
    return builder_.AddTree({A.data(), static_cast<size_t>(A.size())},
                            Uniforms(&random_, dofs, -1, 1));
  }

  Member AddBody() {
    const double mass = LogUniform(&random_, 0.2, 5);
    const Eigen::MatrixXd I = RandomDynamicsMatrix(&random_, 3, 0.02 * mass, 0.2 * mass);
    client::RigidBody body{.mass = mass,
                           .inertia = {I(0, 0), I(1, 1), I(2, 2), I(0, 1), I(0, 2), I(1, 2)}};
    for (double& x : body.center_of_mass) x = Uniform(&random_, -1, 1);
    for (double& v : body.free_motion_velocity) v = Uniform(&random_, -1, 1);
    return builder_.AddBody(body);
  }

  client::ContactLaw DrawLaw() {
    client::ContactLaw law{.signed_distance = Uniform(&random_, -5e-3, 1e-3),
                           .stiffness = LogUniform(&random_, 1e3, 1e6),
                           .relaxation_time = Uniform(&random_, 0, 0.05),
                           .friction = OneIn(&random_, 8) ? 0 : Uniform(&random_, 0.1, 1)};
    if (OneIn(&random_, 3)) law.surface_velocity = {Uniform(&random_, -0.3, 0.3), 0.1, 0};
    const int kind = UniformInt(&random_, 0, seed_ % 2 == 0 ? 0 : 7);
    if (kind == 1) {
      law.hunt_crossley = {.friction = OneIn(&random_, 2)
                                           ? client::HuntCrossleyLaw::Friction::kLagged
                                           : client::HuntCrossleyLaw::Friction::kSimilar,
                           .elastic_force = Uniform(&random_, -20, 100),
                           .dissipation = Uniform(&random_, 0, 1),
                           .lagged_normal_impulse = Uniform(&random_, 0, 1)};
      return law;
    }
    if (kind == 2) law.adhesion = Uniform(&random_, 0, 50);
    if (kind == 3) law.target_velocity = {0.1, 0, Uniform(&random_, -0.5, 0.5)};
    if (law.friction == 0 || kind < 4) return law;
    law.friction_2 = Uniform(&random_, 0.05, 1.5);
    if (kind >= 5) law.torsional_friction = Uniform(&random_, 0.01, 0.5);
    if (kind >= 6) law.rolling_friction = {Uniform(&random_, 0, 0.5), 0.2};
    if (kind >= 5 && seed_ % 3 == 0) law.target_angular_velocity = {0.1, -0.2, 0.3};
    return law;
  }

  void AddContact(const Cluster& cluster) {
    const int last = static_cast<int>(cluster.members.size()) - 1;
    const int a = UniformInt(&random_, 0, last);
    int b = UniformInt(&random_, -1, last);
    if (b == a) b = -1;
    const Member member = cluster.members[a];
    const Member other = b < 0 ? client::kWorld : cluster.members[b];
    const client::ContactLaw law = DrawLaw();
    if (member.kind == Member::Kind::kBody && other.kind != Member::Kind::kTree) {
      builder_.AddBodyContact(member, other, Array(UniformVector(&random_, 3, -1.2, 1.2)),
                              Array(RandomUnitVector(&random_)), law);
      return;
    }
    const int dofs_b = b < 0 ? 0 : cluster.dofs[b];
    const auto J_a = Uniforms(&random_, 3 * cluster.dofs[a], -1, 1);
    const auto J_b = Uniforms(&random_, 3 * dofs_b, -1, 1);
    const auto angular_a = Uniforms(&random_, 3 * cluster.dofs[a], -1, 1);
    const auto angular_b = Uniforms(&random_, 3 * dofs_b, -1, 1);
    builder_.AddContact(member, other, J_a, J_b, law, angular_a, angular_b);
  }

  // Couples the first trees of each cluster, and names the trees of contacts by parts.
  void AddCouplings(const std::vector<Cluster>& clusters, client::Problem* problem) {
    std::vector<std::pair<int32_t, int32_t>> pairs;
    for (const Cluster& cluster : clusters) {
      std::vector<int32_t> trees;
      for (const Member& member : cluster.members) {
        if (member.kind == Member::Kind::kTree) trees.push_back(member.index);
      }
      for (size_t i = 1; i < trees.size() && i < 4; ++i) {
        pairs.push_back(std::minmax(trees[i - 1], trees[i], std::greater()));
      }
    }
    std::ranges::sort(pairs);
    for (const auto& [a, b] : pairs) {
      problem->trees.coupled_a.push_back(a);
      problem->trees.coupled_b.push_back(b);
      // The least eigenvalue of a block is 0.2.
      const size_t size = size_t{problem->trees.dofs[a]} * problem->trees.dofs[b];
      const auto block = Uniforms(&random_, size, -0.01, 0.01);
      problem->trees.coupling_block.insert(problem->trees.coupling_block.end(), block.begin(),
                                           block.end());
    }
    auto& contacts = problem->contacts;
    for (size_t i = 0; i < contacts.tree_a.size(); ++i) {
      const bool has_b = contacts.tree_b[i] >= 0;
      contacts.parts.push_back(has_b ? 2 : 1);
      contacts.part_tree.push_back(contacts.tree_a[i]);
      if (has_b) contacts.part_tree.push_back(contacts.tree_b[i]);
    }
    contacts.tree_a.clear();
    contacts.tree_b.clear();
  }

  void AddRow(const Cluster& cluster) {
    std::vector<client::RowTerm> terms;
    for (size_t i = 0; i < cluster.members.size() && i < 3; ++i) {
      if (OneIn(&random_, 3)) continue;
      terms.push_back({cluster.members[i], UniformInt(&random_, 0, cluster.dofs[i] - 1),
                       Uniform(&random_, 0.1, 1)});
    }
    if (terms.empty()) return;
    client::RowLaw law{.position_error = Uniform(&random_, -1e-2, 1e-2)};
    if (OneIn(&random_, 2)) law.stiffness = LogUniform(&random_, 1e2, 1e6);
    if (OneIn(&random_, 2)) law.force_lower = Uniform(&random_, -40, 0);
    if (OneIn(&random_, 3)) law.slip_parameter = 1e-2;
    if (OneIn(&random_, 3)) law.force_offset = Uniform(&random_, -20, 20);
    if (seed_ % 4 == 0) law.target_velocity = Uniform(&random_, -1, 1);
    builder_.AddRow(terms, law);
  }

  void AddOptionalArrays(client::Problem* problem) {
    auto& [time_step, trees, bodies, contacts, body_contacts, rows, regularization] = *problem;
    if (seed_ % 2 == 1) {
      trees.guess_velocity = Uniforms(&random_, trees.free_motion_velocity.size(), -1, 1);
    }
    if (seed_ % 3 == 1) {
      bodies.guess_velocity = Uniforms(&random_, bodies.free_motion_velocity.size(), -1, 1);
      bodies.body_id.resize(bodies.mass.size());
      std::iota(bodies.body_id.begin(), bodies.body_id.end(), 1000u);
    }
    if (seed_ % 4 == 1) {
      regularization.rule = DelassusRule::kDiagonal;
      regularization.sigma = 1e-2;
      body_contacts.law.regularization_t =
          Uniforms(&random_, body_contacts.body_a.size(), 1e-3, 1e-1);
      contacts.law.delassus_estimate = Uniforms(&random_, contacts.tree_a.size(), 0.1, 2);
      trees.tree_id.resize(trees.dofs.size());
      std::iota(trees.tree_id.begin(), trees.tree_id.end(), 1u);
    }
  }

  const uint64_t seed_;
  Random random_;
  client::ProblemBuilder builder_{0.01};
};

}  // namespace

client::Problem RandomIslands(uint64_t seed) { return SceneMaker(seed).Make(); }

}  // namespace sap::test
