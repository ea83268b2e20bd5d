// A contact problem that owns its arrays, laid out as on the wire, and a builder that fills them
// body by body and contact by contact.
//
// Meaning, length and range of each array are those of proto/sap/v1/problem.proto. Nothing is
// checked here: ContactProblem::Make of the solver checks everything and names the field at fault.
// SI units.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "solver/problem/contact_problem.h"

namespace sap::client {

struct Problem {
  struct Trees {                               // T articulated trees
    std::vector<uint32_t> dofs;                // [T], n_t
    std::vector<double> dynamics_matrix;       // [sum n_t^2], row-major blocks
    std::vector<double> free_motion_velocity;  // [sum n_t]
    std::vector<double> guess_velocity;        // [sum n_t] or empty
    std::vector<uint32_t> tree_id;             // [T] or empty
  };
  struct RigidBodies {                         // B free bodies
    std::vector<double> mass;                  // [B]
    std::vector<double> inertia;               // [6 B] xx yy zz xy xz yz
    std::vector<double> center_of_mass;        // [3 B]
    std::vector<double> free_motion_velocity;  // [6 B] linear, angular
    std::vector<double> guess_velocity;        // [6 B] or empty
    std::vector<uint32_t> body_id;             // [B] or empty
  };
  struct Law {  // material of n contacts
    std::vector<double> signed_distance;
    std::vector<double> stiffness;
    std::vector<double> relaxation_time;
    std::vector<double> friction;
    std::vector<double> regularization_t;   // [n] or empty
    std::vector<double> regularization_n;   // [n] or empty
    std::vector<double> delassus_estimate;  // [n] or empty
    std::vector<double> surface_velocity;   // [3 n] or empty
  };
  struct Contacts {               // C contacts by Jacobian
    std::vector<int32_t> tree_a;  // [C]
    std::vector<int32_t> tree_b;  // [C], -1: none
    std::vector<double> jacobian;
    Law law;
  };
  struct BodyContacts {           // C' contacts between bodies
    std::vector<int32_t> body_a;  // [C']
    std::vector<int32_t> body_b;  // [C'], -1: the world
    std::vector<double> point;    // [3 C']
    std::vector<double> normal;   // [3 C']
    Law law;
  };

  double time_step{0};
  Trees trees;
  RigidBodies bodies;
  Contacts contacts;
  BodyContacts body_contacts;
  ContactProblemView::Regularization regularization;
};

// One side of a contact: a tree or body added to a builder, or the world.
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

// Material and gap of one contact.
struct ContactLaw {
  double signed_distance{0};                 // phi0, negative in penetration [m]
  double stiffness{0};                       // k > 0 [N/m]
  double relaxation_time{0};                 // tau_d [s]
  double friction{0};                        // mu [-]
  std::array<double, 3> surface_velocity{};  // b [m/s]
};

// Collects trees, bodies and contacts, in any order.
//
//   ProblemBuilder builder(/*time_step=*/0.01);
//   const Member ball = builder.AddBody({.mass = 1, ...});
//   builder.AddBodyContact(ball, kWorld, point, normal, {.stiffness = 1e5, .friction = 0.5});
//   const Problem problem = builder.Build();
class ProblemBuilder {
 public:
  explicit ProblemBuilder(double time_step);

  // A tree of n degrees of freedom, n the size of v*; the matrix has n x n entries, row-major.
  Member AddTree(std::span<const double> dynamics_matrix,
                 std::span<const double> free_motion_velocity);
  Member AddBody(const RigidBody& body);

  // A contact given by its Jacobian with rows t1, t2, n: 3 x n_a row-major for the tree or body a,
  // and 3 x n_b for b unless b is the world. Surface velocity in the contact frame.
  void AddContact(Member a, Member b, std::span<const double> jacobian_a,
                  std::span<const double> jacobian_b, const ContactLaw& law);

  // A contact at a point, with the unit normal from b to a; a is a body, b a body or the world.
  // Point, normal and surface velocity in world axes.
  void AddBodyContact(Member a, Member b, const std::array<double, 3>& point,
                      const std::array<double, 3>& normal, const ContactLaw& law);

  // The problem of everything added so far; bodies are numbered after the trees.
  Problem Build() const;

 private:
  Problem problem_;
  std::vector<std::array<Member, 2>> contact_members_;
};

}  // namespace sap::client
