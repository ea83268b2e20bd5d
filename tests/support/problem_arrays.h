// A contact problem that owns its arrays, to be built, changed and passed to the solver as a view.
//
// Meanings, lengths and units are those of ContactProblemView. The functions append one tree, body
// or contact at a time, so that a test reads as the scene it means.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <string>
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

struct LawArrays {
  std::vector<double> signed_distance, stiffness, relaxation_time, friction;
  std::vector<double> regularization_t, regularization_n, delassus_estimate, surface_velocity;
  std::vector<double> friction_2, torsional_friction, rolling_friction;
  std::vector<double> target_velocity, target_angular_velocity, adhesion;
  std::vector<int32_t> law;
  std::vector<double> elastic_force, dissipation, lagged_normal_impulse;

  void Add(const Material& material);
  ContactProblemView::Law View() const;
};

struct ProblemArrays {
  using Jacobian = Eigen::Matrix<double, 3, Eigen::Dynamic, Eigen::RowMajor>;

  double time_step{0.01};
  struct Trees {
    std::vector<uint32_t> dofs;
    std::vector<double> dynamics_matrix, free_motion_velocity, guess_velocity;
    std::vector<uint32_t> tree_id;
    std::vector<double> initial_velocity;
  } trees;
  struct Bodies {
    std::vector<double> mass, inertia, center_of_mass, free_motion_velocity, guess_velocity;
    std::vector<uint32_t> body_id;
    std::vector<double> initial_velocity;
  } bodies;
  struct Contacts {
    std::vector<int32_t> tree_a, tree_b;
    std::vector<double> jacobian, angular_jacobian;
    LawArrays law;
  } contacts;
  struct BodyContacts {
    std::vector<int32_t> body_a, body_b;
    std::vector<double> point, normal, tangent;
    LawArrays law;
  } body_contacts;
  struct Rows {
    std::vector<uint32_t> entries, velocity_index;
    std::vector<double> coefficient, position_error, velocity_offset, stiffness, relaxation_time;
    std::vector<double> force_lower, force_upper, regularization, target_velocity;
    std::vector<double> delassus_estimate, slip_parameter, force_offset;
  } rows;
  ContactProblemView::Regularization regularization;

  ContactProblemView View() const;
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

// The problem as the solver takes it. Fails the test where it is refused.
ContactProblem Checked(const ProblemArrays& arrays);

// Where the velocities of each tree start [trees + 1], and the Jacobian of each contact [contacts +
// 1]; only of what is given as trees and by Jacobians.
std::vector<int> VelocityStarts(const ProblemArrays& arrays);
std::vector<int64_t> JacobianStarts(const ProblemArrays& arrays);

// What is wrong with the problem, or nothing.
std::string Complaint(const ProblemArrays& arrays, const ProblemLimits& limits = {});

}  // namespace sap::test
