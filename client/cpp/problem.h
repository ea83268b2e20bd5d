// A contact problem that owns its arrays, laid out as on the wire, and a builder that fills them
// body by body, contact by contact and row by row.
//
// The arrays are listed in solver/problem/problem_fields.inc; meaning, length and range of each are
// those of proto/sap/v1/problem.proto. Nothing is checked here: ContactProblem::Make of the solver
// checks everything and names the field at fault. SI units.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "solver/problem/problem_fields.h"

namespace sap::client {

using Problem = OwnedContactProblem;

// One side of a contact or row: a tree or body added to a builder, or the world.
struct Member {
  enum class Kind : uint8_t { kWorld, kTree, kBody };
  Kind kind{Kind::kWorld};
  int index{-1};  // among the trees, or among the bodies
};

inline constexpr Member kWorld{};

// A free rigid body in world axes.
struct RigidBody {
  double mass{0};                                // kg
  std::array<double, 6> inertia{};               // xx yy zz xy xz yz about the center of mass
  std::array<double, 3> center_of_mass{};        // m
  std::array<double, 6> free_motion_velocity{};  // v of the center of mass, angular velocity
};

// Normal force of Hunt & Crossley.
struct HuntCrossleyLaw {
  // Bound of friction: mu n_0, or mu times the normal impulse at v_n - mu |v_t|.
  enum class Friction : uint8_t { kLagged, kSimilar };
  Friction friction{Friction::kLagged};
  double elastic_force{0};          // f_e [N]
  double dissipation{0};            // d [s/m]
  double lagged_normal_impulse{0};  // n_0 [N s]
};

// Material and gap of one contact. Velocities are in the axes of the function that adds it.
struct ContactLaw {
  double signed_distance{0};                               // phi0, negative in penetration [m]
  double stiffness{0};                                     // k > 0 [N/m]
  double relaxation_time{0};                               // tau_d [s]; 0 where phi0 > 0
  double friction{0};                                      // mu [-]
  std::array<double, 3> surface_velocity{};                // b [m/s]
  std::optional<double> friction_2{};                      // mu along t2; absent: mu
  double torsional_friction{0};                            // about n [m]
  std::array<double, 2> rolling_friction{};                // about t1 and t2 [m]
  double adhesion{0};                                      // a [N]
  std::optional<std::array<double, 3>> target_velocity{};  // v_hat [m/s]; absent: by phi0
  std::array<double, 3> target_angular_velocity{};         // with torsional or rolling friction
  std::optional<HuntCrossleyLaw> hunt_crossley{};          // absent: the law of SAP
  // Where the interior-point method starts, in (t1, t2, n) as impulses of solutions [N s, N m s].
  std::array<double, 3> guess_impulse{};
  std::array<double, 3> guess_angular_impulse{};  // with torsional or rolling friction
};

// One term of v_c = sum coefficient * velocity + b.
struct RowTerm {
  Member member;
  int dof{0};  // of the tree; of a body: 0 to 2 linear, 3 to 5 angular, as free_motion_velocity
  double coefficient{0};
};

// Stiffness, bounds and target of one constraint row. The default is a rigid equality.
struct RowLaw {
  double position_error{0};                                      // g_0 [m, rad]
  double velocity_offset{0};                                     // b [m/s, rad/s]
  double stiffness{std::numeric_limits<double>::infinity()};     // k [N/m, N m/rad]
  double relaxation_time{0};                                     // tau [s]
  double force_lower{-std::numeric_limits<double>::infinity()};  // N, N m
  double force_upper{std::numeric_limits<double>::infinity()};   // N, N m
  double regularization{0};                                      // R; 0: by rule
  std::optional<double> target_velocity{};                       // v_hat; absent: -g_0 / (dt + tau)
  double delassus_estimate{0};                                   // w; 0: by rule
  double slip_parameter{0};                                      // > 0: R = slip_parameter w
  double force_offset{0};                                        // u [N, N m]
  double guess_impulse{0};  // where the interior-point method starts [N s, N m s]
};

// Collects trees, bodies, contacts and rows, in any order.
//
//   ProblemBuilder builder(/*time_step=*/0.01);
//   const Member ball = builder.AddBody({.mass = 1, ...});
//   builder.AddBodyContact(ball, kWorld, point, normal, {.stiffness = 1e5, .friction = 0.5});
//   const Problem problem = builder.Build();
//
// Rows on the joints of a tree `arm`, which have the positions q:
//
//   // Joint 2 stays below its limit: q_2 <= q_max.
//   builder.AddRow({{arm, 2, -1}}, {.position_error = q_max - q[2], .force_lower = 0});
//   // Coupler: q_3 = 0.5 q_2.
//   builder.AddRow({{arm, 3, 1}, {arm, 2, -0.5}}, {.position_error = q[3] - 0.5 * q[2]});
//   // Weld of two bodies at points r_a and r_b from their centers of mass, first of six rows: x.
//   builder.AddRow({{a, 0, 1}, {a, 4, r_a[2]}, {a, 5, -r_a[1]},
//                   {b, 0, -1}, {b, 4, -r_b[2]}, {b, 5, r_b[1]}},
//                  {.position_error = p_a[0] - p_b[0]});
//   // Tendon over two joints with moment arms of 3 and 2 cm; it only pulls.
//   builder.AddRow({{arm, 0, 0.03}, {arm, 1, 0.02}},
//                  {.position_error = length - rest_length, .stiffness = 1e4, .force_upper = 0});
//   // Motor that holds 2 rad/s with an effort of at most 5 N m.
//   builder.AddRow({{arm, 0, 1}},
//                  {.force_lower = -5, .force_upper = 5, .target_velocity = 2});
//   // Dry friction of 0.3 N m in a joint.
//   builder.AddRow({{arm, 1, 1}},
//                  {.force_lower = -0.3, .force_upper = 0.3, .slip_parameter = 1e-3});
class ProblemBuilder {
 public:
  explicit ProblemBuilder(double time_step);

  // A tree of n degrees of freedom, n the size of v*; the matrix has n x n entries, row-major.
  Member AddTree(std::span<const double> dynamics_matrix,
                 std::span<const double> free_motion_velocity);
  Member AddBody(const RigidBody& body);

  // A contact given by its Jacobian with rows t1, t2, n: 3 x n_a row-major for the tree or body a,
  // and 3 x n_b for b unless b is the world. Angular Jacobians, of the same form, are read where
  // the law has a torsional or rolling coefficient > 0. Velocities in the contact frame.
  void AddContact(Member a, Member b, std::span<const double> jacobian_a,
                  std::span<const double> jacobian_b, const ContactLaw& law,
                  std::span<const double> angular_jacobian_a = {},
                  std::span<const double> angular_jacobian_b = {});

  // A contact at a point, with the unit normal from b to a; a is a body, b a body or the world.
  // Point, normal, tangent t1 and velocities in world axes. Without a tangent, t1 is the one that
  // BodyContacts in problem.proto states.
  void AddBodyContact(Member a, Member b, const std::array<double, 3>& point,
                      const std::array<double, 3>& normal, const ContactLaw& law,
                      const std::optional<std::array<double, 3>>& tangent = std::nullopt);

  // A constraint row with terms in any order; terms of one velocity are added up, terms of the
  // world left out. A dof that its member does not have gets an index that the solver refuses.
  void AddRow(const std::vector<RowTerm>& terms, const RowLaw& law);

  // The problem of everything added so far; bodies are numbered after the trees. Optional arrays
  // that hold only defaults are empty.
  Problem Build() const;

 private:
  Problem problem_;  // without what Build fills from the following
  std::vector<std::array<Member, 2>> contact_members_;
  std::vector<ContactLaw> contact_laws_;
  std::vector<ContactLaw> body_contact_laws_;
  std::vector<std::optional<std::array<double, 3>>> tangents_;
  std::vector<std::vector<RowTerm>> row_terms_;
  std::vector<RowLaw> row_laws_;
};

}  // namespace sap::client
