// A contact problem that owns its arrays, to be built, changed and passed to the solver as a view.
//
// Meanings, lengths and units are those of ContactProblemView. The functions append one tree, body
// or contact at a time, so that a test reads as the scene it means.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "solver/problem/contact_problem.h"

namespace sap::test {

// Material of one contact.
struct Material {
  double signed_distance{0};
  double stiffness{1e5};
  double relaxation_time{0.01};
  double friction{0.5};
};

using LawArrays = OwnedContactProblem::Law;

struct ProblemArrays : OwnedContactProblem {
  using Jacobian = Eigen::Matrix<double, 3, Eigen::Dynamic, Eigen::RowMajor>;

  ProblemArrays() { time_step = 0.01; }

  ContactProblemView View() const { return ViewOf(*this); }
  int num_trees() const { return static_cast<int>(trees.dofs.size() + bodies.mass.size()); }

  // Appends a tree with dynamics matrix A [n x n] and free-motion velocity v* [n]; its number.
  int AddTree(const Eigen::MatrixXd& A, const Eigen::VectorXd& v_star);
  // Appends a body: mass [kg], principal inertia along world axes [kg m^2]; its number among
  // bodies.
  int AddBody(double mass, const Eigen::Vector3d& inertia, const Eigen::Vector3d& center,
              const Eigen::Matrix<double, 6, 1>& v_star);
  // A contact of tree_a alone, or of two trees; its number among contacts.
  int AddContact(int tree_a, const Jacobian& J_a, const Material& material);
  int AddContact(int tree_a, const Jacobian& J_a, int tree_b, const Jacobian& J_b,
                 const Material& material);
  // A contact of body_a with body_b, or with the world for -1.
  int AddBodyContact(int body_a, int body_b, const Eigen::Vector3d& point,
                     const Eigen::Vector3d& normal, const Material& material);
  // A row over the velocities of these indices; its number among rows.
  int AddRow(const std::vector<uint32_t>& velocity_index, const std::vector<double>& coefficient);
};

// h [s], which is that of the problem where it is absent.
inline double ReferenceTimeStep(const ProblemArrays& arrays) {
  const double h = arrays.regularization.reference_time_step;
  return h == 0 ? arrays.time_step : h;
}

// An array of doubles by its wire name, as "contacts.friction"; null if there is none.
std::vector<double>* FindArray(ProblemArrays* arrays, std::string_view name);

// The problem as the solver takes it. Fails the test where it is refused.
ContactProblem Checked(const ProblemArrays& arrays);

// Where the velocities of each tree start [trees + 1], and the Jacobian of each contact [contacts +
// 1]; only of what is given as trees and by Jacobians.
std::vector<int> VelocityStarts(const ProblemArrays& arrays);
std::vector<int64_t> JacobianStarts(const ProblemArrays& arrays);

// The error of the problem, or nothing.
std::string Complaint(const ProblemArrays& arrays, const ProblemLimits& limits = {});

}  // namespace sap::test
