#include "tests/support/problem_arrays.h"

#include <gtest/gtest.h>

#include "solver/problem/input_arrays.h"

namespace sap::test {

namespace {

template <typename Values>
void Append(const Values& values, std::vector<double>* to) {
  to->insert(to->end(), values.begin(), values.end());
}

void AppendRows(const ProblemArrays::Jacobian& J, std::vector<double>* to) {
  to->insert(to->end(), J.data(), J.data() + J.size());
}

void AddLaw(const Material& material, LawArrays* law) {
  law->signed_distance.push_back(material.signed_distance);
  law->stiffness.push_back(material.stiffness);
  law->relaxation_time.push_back(material.relaxation_time);
  law->friction.push_back(material.friction);
}

}  // namespace

int ProblemArrays::AddTree(const Eigen::MatrixXd& A, const Eigen::VectorXd& v_star) {
  trees.dofs.push_back(static_cast<uint32_t>(A.rows()));
  Append(A.reshaped(), &trees.dynamics_matrix);  // symmetric: the order of rows does not matter
  Append(v_star, &trees.free_motion_velocity);
  return static_cast<int>(trees.dofs.size()) - 1;
}

int ProblemArrays::AddBody(double mass, const Eigen::Vector3d& inertia,
                           const Eigen::Vector3d& center,
                           const Eigen::Matrix<double, 6, 1>& v_star) {
  bodies.mass.push_back(mass);
  Append(inertia, &bodies.inertia);
  Append(Eigen::Vector3d::Zero().eval(), &bodies.inertia);
  Append(center, &bodies.center_of_mass);
  Append(v_star, &bodies.free_motion_velocity);
  return static_cast<int>(bodies.mass.size()) - 1;
}

int ProblemArrays::AddContact(int tree_a, const Jacobian& J_a, const Material& material) {
  contacts.tree_a.push_back(tree_a);
  contacts.tree_b.push_back(-1);
  AppendRows(J_a, &contacts.jacobian);
  AddLaw(material, &contacts.law);
  return static_cast<int>(contacts.tree_a.size()) - 1;
}

int ProblemArrays::AddContact(int tree_a, const Jacobian& J_a, int tree_b, const Jacobian& J_b,
                              const Material& material) {
  const int contact = AddContact(tree_a, J_a, material);
  contacts.tree_b.back() = tree_b;
  AppendRows(J_b, &contacts.jacobian);
  return contact;
}

int ProblemArrays::AddBodyContact(int body_a, int body_b, const Eigen::Vector3d& point,
                                  const Eigen::Vector3d& normal, const Material& material) {
  body_contacts.body_a.push_back(body_a);
  body_contacts.body_b.push_back(body_b);
  Append(point, &body_contacts.point);
  Append(normal, &body_contacts.normal);
  AddLaw(material, &body_contacts.law);
  return static_cast<int>(body_contacts.body_a.size()) - 1;
}

int ProblemArrays::AddRow(const std::vector<uint32_t>& velocity_index,
                          const std::vector<double>& coefficient) {
  rows.entries.push_back(static_cast<uint32_t>(velocity_index.size()));
  rows.velocity_index.insert(rows.velocity_index.end(), velocity_index.begin(),
                             velocity_index.end());
  Append(coefficient, &rows.coefficient);
  return static_cast<int>(rows.entries.size()) - 1;
}

std::vector<double>* FindArray(ProblemArrays* arrays, std::string_view name) {
  std::vector<double>* found = nullptr;
  ForEachArray(
      [&]<typename Value>(std::string_view group, const ProblemField<Value>& field, auto& values) {
        if constexpr (std::is_same_v<Value, double>) {
          if (FieldName(group, field.name).Text() == name) found = &values;
        }
      },
      static_cast<OwnedContactProblem&>(*arrays));
  return found;
}

ContactProblem Checked(const ProblemArrays& arrays) {
  auto problem = ContactProblem::Make(arrays.View());
  EXPECT_TRUE(problem.has_value()) << problem.error().Message();
  return problem ? *std::move(problem) : ContactProblem();
}

std::vector<int> VelocityStarts(const ProblemArrays& arrays) {
  std::vector<int> starts{0};
  for (uint32_t dofs : arrays.trees.dofs) starts.push_back(starts.back() + static_cast<int>(dofs));
  return starts;
}

std::vector<int64_t> JacobianStarts(const ProblemArrays& arrays) {
  const std::vector<int32_t>& tree_a = arrays.contacts.tree_a;
  const std::vector<int32_t>& tree_b = arrays.contacts.tree_b;
  const std::vector<uint32_t>& dofs = arrays.trees.dofs;
  std::vector<int64_t> starts{0};
  for (size_t i = 0; i < tree_a.size(); ++i) {
    const int64_t columns = dofs[tree_a[i]] + (tree_b[i] < 0 ? 0 : dofs[tree_b[i]]);
    starts.push_back(starts.back() + 3 * columns);
  }
  return starts;
}

std::string Complaint(const ProblemArrays& arrays, const ProblemLimits& limits) {
  const auto problem = ContactProblem::Make(arrays.View(), limits);
  return problem ? "" : problem.error().Message();
}

}  // namespace sap::test
