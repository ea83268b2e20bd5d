// Converts the constraints that MuJoCo assembled for a step to rows and contacts of a problem.
//
// MuJoCo minimizes 1/2 |a - a_smooth|_M^2 + s(J a - a_ref) over accelerations, with the
// regularization R of every row. In velocities, v = v_0 + dt a, that is a problem of this solver:
//
//   R as it is,   v_hat = J v_0 + dt a_ref,   impulse = dt force,   bounds by the kind of the row
//
//   row                                                                     bounds of its force
//   equality                                                                none
//   friction loss of a joint or tendon                                      -+ frictionloss
//   limit of a joint or tendon, contact of condim 1, edge of a pyramid      >= 0
//   contact of condim 3, 4 or 6 with an elliptic cone                       the cone
//
// R_t of a cone is that of its first axis.
//
// In the law of SAP every contact with friction has its cone. Edges n +- mu_j t_j of a pyramid give
// back J_n and J_j as half their sum and difference; the normal R is that of all 2 (condim - 1)
// edges together, R_edge / (2 (condim - 1)), so that bodies rest as deep as in MuJoCo. Friction has
// v_hat = -s with s the velocity of the surface, and the R_t of the solver, so that what is held
// stays held. Friction loss of joints and tendons has v_hat = 0 and R = sigma w.
//
// A cone parts what slips with v_n = mu |v_t|. Where no motion changes v_n, J_n = 0, it would hold
// it instead, by N = F_t / mu. There the normal impulse v_hat_n / R_n is known: under the law of
// SAP v_hat_n and R_n are multiplied by the same large number, which leaves that impulse, and takes
// from it what slip would add. With v_hat_n <= 0, as before touch, there is none.
//
// A contact of geoms touches the trees of their bodies; one of a flex the trees of its vertices, of
// which efc_J has values: up to eight of two elements, 27 and more where vertices are interpolated.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "client/mujoco/rows.h"
#include "client/mujoco/trees.h"

namespace sap::mujoco {

// Numbers of what the constraints become.
struct ConstraintCounts {
  int64_t rows = 0;
  int64_t non_zeros = 0;
  int64_t contacts = 0;
  int64_t jacobian = 0;  // values of the linear blocks
  int64_t angular = 0;   // values of the angular blocks
  int64_t turning = 0;   // contacts with angular blocks
  int64_t parts = 0;     // trees of the contacts, in a model with flexes
};

// Arrays of C contacts, of which N have an angular Jacobian, as in sap_mujoco_layout.
struct ContactArrays {
  int32_t* tree_a;  // these two in a model without flexes
  int32_t* tree_b;
  uint32_t* parts;  // otherwise these
  int32_t* part_tree;
  double* jacobian;
  double* angular;
  double* friction;
  double* friction_2;
  double* torsional;
  double* rolling;  // [C, 2]
  double* R_t;
  double* R_n;
  double* signed_distance;  // of the same normal force, as stiffness and relaxation time
  double* stiffness;
  double* relaxation_time;
  double* target;          // [C, 3] v_hat
  double* target_angular;  // [N, 3]
};

class Constraints {
 public:
  // `is_sparse`: the rows of efc_J are. `as_sap`: the law of SAP, otherwise MuJoCo's.
  Constraints(const Fields& fields, const Trees& trees, bool is_sparse, bool as_sap)
      : fields_(fields), trees_(trees), is_sparse_(is_sparse), as_sap_(as_sap) {}

  ConstraintCounts Count() const;

  // Writes the rows, and to `row_index` the index in efc_* of each.
  //   velocity  [nefc] J v_0
  //   sigma     slip parameter of friction loss; 0: MuJoCo's R and v_hat
  void WriteRows(const double* velocity, double sigma, int32_t* row_index, RowWriter* writer) const;

  // Writes the contacts, and to `contact_index` the index of each among MuJoCo's.
  // Returns whether friction along t1 and t2 differs somewhere.
  bool WriteContacts(const double* velocity, int32_t* contact_index,
                     const ContactArrays& arrays) const;

 private:
  // One tree's dofs in a contact's Jacobian, which has three lines of `dofs` values for it.
  struct Part {
    int32_t tree;
    int64_t first_dof;
    int64_t dofs;
    int64_t begin;
  };

  // Two rows, and factors with which they add up to an axis of a contact.
  struct Axis {
    int64_t row[2];
    double factor[2];
  };

  bool IsCone(int64_t row) const;
  bool IsContact(int64_t contact) const;
  int Rows(int64_t contact) const;
  Axis AxisOf(int64_t first_row, int axis, double mu) const;
  void FindParts(int64_t contact, std::vector<Part>* parts) const;
  double Target(const double* velocity, int64_t row, bool at_rest) const;
  void AddRow(int64_t row, double factor, int line, std::span<const Part> parts,
              double* jacobian) const;
  void WriteParts(std::span<const Part> parts, int64_t i, const ContactArrays& arrays,
                  int32_t** part_tree) const;
  void WriteFriction(int64_t contact, int64_t i, const ContactArrays& arrays) const;
  void WriteNormalForce(int64_t contact, int64_t i, const ContactArrays& arrays) const;
  double Square(std::span<const Part> parts, const double* jacobian, int line) const;
  bool IsGuided(int64_t contact, std::span<const Part> parts, const double* linear,
                const double* angular) const;
  void WriteJacobian(int64_t contact, std::span<const Part> parts, const double* velocity,
                     double* linear, double* angular, double* v_hat) const;

  template <typename Use>
  void ForValues(int64_t row, const Use& use) const;  // use(dof, value) for each value of efc_J
  template <typename Use>
  void ForContacts(const Use& use) const;  // use(contact, parts) for each contact of the problem

  const Fields& fields_;
  const Trees& trees_;
  bool is_sparse_;
  bool as_sap_;
};

// Least and largest force of a row.
std::pair<double, double> ForceBounds(const Fields& fields, int64_t row);

// Line (t1, t2, n) of the linear or angular Jacobian for each axis of a contact in MuJoCo's order:
// normal, t1, t2; spin, roll 1, roll 2.
inline constexpr int kAxes = 6;
inline constexpr int kLineOfAxis[kAxes] = {2, 0, 1, 2, 0, 1};

}  // namespace sap::mujoco
