#include "solver/problem/body_contact_differential.h"

#include <Eigen/Core>
#include <Eigen/Geometry>
#include <array>
#include <cmath>

namespace sap {

namespace {

using Eigen::Matrix3d;
using Eigen::Vector3d;

Vector3d VectorOrZero(std::span<const double> values, int64_t i) {
  if (values.empty()) return Vector3d::Zero();
  return {values[3 * i], values[3 * i + 1], values[3 * i + 2]};
}

void AddAt(const Vector3d& x, int64_t i, double* values) {
  for (int k = 0; k < 3; ++k) values[3 * i + k] += x[k];
}

void AddAt(const Vector3d& x, int64_t i, std::vector<double>* values) {
  if (!values->empty()) AddAt(x, i, values->data());
}

// t2 . d t1 = spin . dn for the frame of ContactFrame(n), on either side of its equator.
Vector3d SpinOfFrame(const Vector3d& n) {
  const double a = 1.0 / (std::copysign(1.0, n.z()) + n.z());
  return {a * n.y(), -a * n.x(), 0.0};
}

// A body contact at its inputs.
struct BodyContact {
  BodyContact(const ContactProblemView& inputs, const ContactProblem& problem, int64_t number,
              int first_contact, int first_angular);

  int64_t i;    // among body contacts
  int contact;  // of the problem
  bool rotates_v_hat;
  int angular{-1};              // of the problem; -1: none
  int64_t angular_input{0};     // the same among body contacts
  std::array<int, 2> body{};    // -1: the world
  std::array<Vector3d, 2> arm;  // from center of mass to point
  Matrix3d R;                   // (t1, t2, n)
  double normal_length;
  Vector3d spin_by_n, spin_by_tangent;  // t2 . d t1 of a change of n, and of the tangent
  Vector3d surface_velocity, target_velocity, target_angular_velocity;  // world axes
};

BodyContact::BodyContact(const ContactProblemView& inputs, const ContactProblem& problem,
                         int64_t number, int first_contact, int first_angular)
    : i(number), contact(first_contact + static_cast<int>(number)) {
  const ContactProblemView::BodyContacts& c = inputs.body_contacts;
  const ConstraintKind kind = problem.contact_kind()[contact];
  rotates_v_hat = !c.law.target_velocity.empty() && !IsHuntCrossley(kind);
  if (HasAngularRows(kind)) {
    angular = problem.general_friction()[problem.contact_extra()[contact]].angular_contact;
    angular_input = angular - first_angular;
    target_angular_velocity = VectorOrZero(c.law.target_angular_velocity, angular_input);
  }
  body = {c.body_a[i], c.body_b[i]};
  for (int side = 0; side < 2; ++side) {
    if (body[side] < 0) continue;
    arm[side] = VectorOrZero(c.point, i) - VectorOrZero(inputs.bodies.center_of_mass, body[side]);
  }
  const double* J = problem.jacobian().data() + problem.jacobian_start()[contact];
  for (int axis = 0; axis < 3; ++axis) R.col(axis) << J[6 * axis], J[6 * axis + 1], J[6 * axis + 2];
  surface_velocity = VectorOrZero(c.law.surface_velocity, i);
  target_velocity = VectorOrZero(c.law.target_velocity, i);

  normal_length = R.col(2).dot(VectorOrZero(c.normal, i));
  if (c.tangent.empty()) {
    spin_by_n = SpinOfFrame(R.col(2));
    spin_by_tangent.setZero();
  } else {
    const Vector3d tangent = VectorOrZero(c.tangent, i);
    spin_by_tangent = R.col(1) / tangent.dot(R.col(0));
    spin_by_n = -tangent.dot(R.col(2)) * spin_by_tangent;
  }
}

// The part of x orthogonal to the unit vector n.
Vector3d Orthogonal(const Vector3d& n, const Vector3d& x) { return x - n.dot(x) * n; }

// The rotation of the frame.
Vector3d Theta(const BodyContact& c, const Vector3d& d_normal, const Vector3d& d_tangent) {
  const Vector3d n = c.R.col(2);
  const Vector3d dn = Orthogonal(n, d_normal) / c.normal_length;
  return n.cross(dn) + (c.spin_by_n.dot(dn) + c.spin_by_tangent.dot(d_tangent)) * n;
}

void From(const BodyContact& c, const ContactProblem& problem, const ContactProblemView& direction,
          ProblemDifferential* change) {
  const ContactProblemView::BodyContacts& d = direction.body_contacts;
  const Vector3d theta = Theta(c, VectorOrZero(d.normal, c.i), VectorOrZero(d.tangent, c.i));
  double* J = change->jacobian.data() + problem.jacobian_start()[c.contact];
  for (int side = 0; side < 2 && c.body[side] >= 0; ++side, J += 18) {
    const double sign = side == 0 ? 1.0 : -1.0;
    const Vector3d d_arm =
        VectorOrZero(d.point, c.i) - VectorOrZero(direction.bodies.center_of_mass, c.body[side]);
    for (int axis = 0; axis < 3; ++axis) {
      const Vector3d e = sign * c.R.col(axis);
      const Vector3d de = theta.cross(e);
      AddAt(de, 0, J + 6 * axis);
      AddAt(d_arm.cross(e) + c.arm[side].cross(de), 1, J + 6 * axis);
    }
  }
  const auto rotate = [&](const Vector3d& b, const Vector3d& db) -> Vector3d {
    return c.R.transpose() * (db + b.cross(theta));
  };
  AddAt(rotate(c.surface_velocity, VectorOrZero(d.law.surface_velocity, c.i)), c.contact,
        &change->surface_velocity);
  if (c.rotates_v_hat) {
    AddAt(rotate(c.target_velocity, VectorOrZero(d.law.target_velocity, c.i)), c.contact,
          &change->v_hat);
  }
  if (c.angular < 0) return;
  AddAt(rotate(c.target_angular_velocity,
               VectorOrZero(d.law.target_angular_velocity, c.angular_input)),
        c.angular, &change->angular_v_hat);
  double* J_angular = change->angular_jacobian.data() + problem.angular_start()[c.angular];
  for (int side = 0; side < 2 && c.body[side] >= 0; ++side, J_angular += 18) {
    const double sign = side == 0 ? 1.0 : -1.0;
    for (int axis = 0; axis < 3; ++axis) {
      AddAt(theta.cross(sign * c.R.col(axis)), 1, J_angular + 6 * axis);
    }
  }
}

// dL/d theta by the rows of the angular Jacobian.
Vector3d ThetaByAngularRows(const BodyContact& c, const ContactProblem& problem,
                            const ProblemDifferential& derivative) {
  Vector3d theta = Vector3d::Zero();
  const double* J = derivative.angular_jacobian.data() + problem.angular_start()[c.angular];
  for (int side = 0; side < 2 && c.body[side] >= 0; ++side, J += 18) {
    for (int axis = 0; axis < 3; ++axis) {
      const Vector3d by_e = VectorOrZero({J + 6 * axis, 6}, 1);
      theta += (side == 0 ? 1.0 : -1.0) * c.R.col(axis).cross(by_e);
    }
  }
  return theta;
}

// Adds the derivatives by point and centers; dL/d theta by the rows of the Jacobian.
Vector3d ToArms(const BodyContact& c, const ContactProblem& problem,
                const ProblemDifferential& derivative, InputDifferential* gradient) {
  Vector3d theta = Vector3d::Zero();
  const double* J = derivative.jacobian.data() + problem.jacobian_start()[c.contact];
  for (int side = 0; side < 2 && c.body[side] >= 0; ++side, J += 18) {
    const double sign = side == 0 ? 1.0 : -1.0;
    Vector3d by_arm = Vector3d::Zero();
    for (int axis = 0; axis < 3; ++axis) {
      const Vector3d e = sign * c.R.col(axis);
      const Vector3d linear = VectorOrZero({J + 6 * axis, 6}, 0);
      const Vector3d moment = VectorOrZero({J + 6 * axis, 6}, 1);
      by_arm += e.cross(moment);
      theta += e.cross(linear + moment.cross(c.arm[side]));
    }
    AddAt(by_arm, c.i, &gradient->body_contacts.point);
    AddAt(-by_arm, c.body[side], &gradient->bodies.center_of_mass);
  }
  return theta;
}

void To(const BodyContact& c, const ContactProblem& problem, const ProblemDifferential& derivative,
        InputDifferential* gradient) {
  auto& g = gradient->body_contacts;
  Vector3d theta = ToArms(c, problem, derivative, gradient);
  const auto rotate = [&](const Vector3d& b, const Vector3d& derivative_of_rotated) -> Vector3d {
    Vector3d in_world = c.R * derivative_of_rotated;
    theta += in_world.cross(b);
    return in_world;
  };
  AddAt(rotate(c.surface_velocity, VectorOrZero(derivative.surface_velocity, c.contact)), c.i,
        &g.law.surface_velocity);
  if (c.rotates_v_hat) {
    AddAt(rotate(c.target_velocity, VectorOrZero(derivative.v_hat, c.contact)), c.i,
          &g.law.target_velocity);
  }
  if (c.angular >= 0) {
    AddAt(rotate(c.target_angular_velocity, VectorOrZero(derivative.angular_v_hat, c.angular)),
          c.angular_input, &g.law.target_angular_velocity);
    theta += ThetaByAngularRows(c, problem, derivative);
  }
  const Vector3d n = c.R.col(2);
  const double spin = theta.dot(n);
  AddAt(Orthogonal(n, theta.cross(n) + spin * c.spin_by_n) / c.normal_length, c.i, &g.normal);
  AddAt(spin * c.spin_by_tangent, c.i, &g.tangent);
}

template <typename Visit>
void ForEachBodyContact(const ContactProblemView& inputs, const ContactProblem& problem,
                        const Visit& visit) {
  const int64_t count = static_cast<int64_t>(inputs.body_contacts.body_a.size());
  const int first_contact = problem.num_contacts() - static_cast<int>(count);
  int first_angular = 0;
  for (int contact = 0; contact < first_contact; ++contact) {
    first_angular += HasAngularRows(problem.contact_kind()[contact]) ? 1 : 0;
  }
  for (int64_t i = 0; i < count; ++i) {
    visit(BodyContact(inputs, problem, i, first_contact, first_angular));
  }
}

}  // namespace

void FromBodyContacts(const ContactProblemView& inputs, const ContactProblem& problem,
                      const ContactProblemView& direction, ProblemDifferential* change) {
  ForEachBodyContact(inputs, problem, [&](const BodyContact& contact) {
    From(contact, problem, direction, change);
  });
}

void ToBodyContacts(const ContactProblemView& inputs, const ContactProblem& problem,
                    const ProblemDifferential& derivative, InputDifferential* gradient) {
  ForEachBodyContact(inputs, problem, [&](const BodyContact& contact) {
    To(contact, problem, derivative, gradient);
  });
}

}  // namespace sap
