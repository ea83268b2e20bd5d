#include <Eigen/Core>
#include <cmath>

#include "solver/problem/problem_reader.h"
#include "solver/problem/rigid_bodies.h"

namespace sap {

namespace {

constexpr double kUnitTolerance = 1e-6;

// Vector i of an array of three components each.
Eigen::Vector3d VectorAt(std::span<const double> values, int64_t i) {
  return {values[3 * i], values[3 * i + 1], values[3 * i + 2]};
}

// Eigen sums up in an order that depends on the address; this does not, and never overflows.
double Length(const Eigen::Vector3d& x) { return std::hypot(x.x(), x.y(), x.z()); }

bool IsUnit(double length) { return std::abs(length - 1) <= kUnitTolerance; }

std::string ReasonAgainstLength(double length) {
  return "starts a vector of length " + ToText(length) + "; it must be 1 within 1e-6";
}

// From world axes to those of the contact.
void Rotate(const Eigen::Matrix3d& R, double* x) {
  const Eigen::Vector3d x_W(x[0], x[1], x[2]);
  Eigen::Map<Eigen::Vector3d>{x} = R.transpose() * x_W;
}

}  // namespace

void ContactProblemReader::ReadContacts() {
  const ContactProblemView::Contacts& c = view_.contacts;
  const int64_t n = static_cast<int64_t>(c.tree_a.size());
  const int trees = num_trees_ + num_bodies_;
  const Needed why{n, "contacts (see contacts.tree_a)"};
  check_.Length("contacts.tree_b", c.tree_b.size(), n, why);
  check_.Indices("contacts.tree_a", c.tree_a, 0, trees);
  check_.Indices("contacts.tree_b", c.tree_b, -1, trees);
  check_.Distinct("contacts.tree_b", c.tree_a, c.tree_b, "contacts.tree_a");
  if (!check_.ok()) return;
  const LawMessage m = MessageOf("contacts.", c.law, why);
  p_.jacobian_start_.assign(1, 0);
  for (int64_t i = 0; i < n; ++i) AppendContact(c.tree_a[i], c.tree_b[i]);
  check_.Array("contacts.jacobian", c.jacobian, p_.jacobian_start_.back(), Range::kFinite,
               {n, "contacts (see contacts.tree_a, contacts.tree_b)"});
  CheckCompliance(m);
  CheckFriction(m);
  AppendAngular(m);
  check_.Array("contacts.angular_jacobian", c.angular_jacobian, p_.angular_start_.back(),
               Range::kFinite, {p_.num_angular(), kAngularContacts});
  CheckTargets(m);
  if (!check_.ok()) return;
  AppendLaw(m);
  p_.jacobian_.assign(c.jacobian.begin(), c.jacobian.end());
  p_.angular_jacobian_.assign(c.angular_jacobian.begin(), c.angular_jacobian.end());
}

void ContactProblemReader::AppendContact(int tree_a, int tree_b) {
  p_.tree_a_.push_back(tree_a);
  p_.tree_b_.push_back(tree_b);
  const int dofs = p_.dofs_[tree_a] + (tree_b < 0 ? 0 : p_.dofs_[tree_b]);
  p_.jacobian_start_.push_back(p_.jacobian_start_.back() + 3 * static_cast<int64_t>(dofs));
}

void ContactProblemReader::ReadBodyContacts() {
  const ContactProblemView::BodyContacts& c = view_.body_contacts;
  const int64_t n = static_cast<int64_t>(c.body_a.size());
  const Needed why{n, "body contacts (see body_contacts.body_a)"};
  check_.Length("body_contacts.body_b", c.body_b.size(), n, why);
  check_.Indices("body_contacts.body_a", c.body_a, 0, num_bodies_);
  check_.Indices("body_contacts.body_b", c.body_b, -1, num_bodies_);
  check_.Distinct("body_contacts.body_b", c.body_a, c.body_b, "body_contacts.body_a");
  check_.Array("body_contacts.point", c.point, 3 * n, Range::kFinite, why);
  check_.Array("body_contacts.normal", c.normal, 3 * n, Range::kFinite, why);
  if (!check_.ok()) return;
  const LawMessage m = MessageOf("body_contacts.", c.law, why);
  for (int64_t i = 0; i < n; ++i) {
    AppendContact(num_trees_ + c.body_a[i], c.body_b[i] < 0 ? -1 : num_trees_ + c.body_b[i]);
  }
  CheckCompliance(m);
  CheckFriction(m);
  AppendAngular(m);
  CheckTargets(m);
  check_.Optional("body_contacts.tangent", c.tangent, 3 * n, Range::kFinite, why);
  if (!check_.ok()) return;
  AppendLaw(m);
  p_.jacobian_.resize(p_.jacobian_start_.back());
  p_.angular_jacobian_.resize(p_.angular_start_.back());
  for (int64_t i = 0; i < n && check_.ok(); ++i) {
    ReadBodyContact(i, m.first_contact + static_cast<int>(i));
  }
}

// Builds frame and Jacobians of body contact i, contact number `contact` of the problem, and brings
// its velocities into this frame.
void ContactProblemReader::ReadBodyContact(int64_t i, int contact) {
  const ContactProblemView::BodyContacts& c = view_.body_contacts;
  const Eigen::Matrix3d R = ReadFrame(i);
  if (!check_.ok()) return;
  const Eigen::Vector3d point = VectorAt(c.point, i);
  const std::span<const double> centers = view_.bodies.center_of_mass;
  const bool has_b = c.body_b[i] >= 0;
  double* J = p_.jacobian_.data() + p_.jacobian_start_[contact];
  WriteBodyJacobian(R, point - VectorAt(centers, c.body_a[i]), 1.0, J);
  if (has_b) WriteBodyJacobian(R, point - VectorAt(centers, c.body_b[i]), -1.0, J + 18);
  if (!c.law.surface_velocity.empty()) Rotate(R, p_.surface_velocity_.data() + 3 * contact);
  if (!c.law.target_velocity.empty()) Rotate(R, p_.v_hat_.data() + 3 * contact);
  if (!HasAngularRows(p_.contact_kind_[contact])) return;
  const int angular = p_.general_friction_[p_.contact_extra_[contact]].angular_contact;
  double* J_angular = p_.angular_jacobian_.data() + p_.angular_start_[angular];
  WriteBodyAngularJacobian(R, 1.0, J_angular);
  if (has_b) WriteBodyAngularJacobian(R, -1.0, J_angular + 18);
  Rotate(R, p_.angular_v_hat_.data() + 3 * angular);
}

// (t1, t2, n) of body contact i.
Eigen::Matrix3d ContactProblemReader::ReadFrame(int64_t i) {
  const ContactProblemView::BodyContacts& c = view_.body_contacts;
  const Eigen::Vector3d given_normal = VectorAt(c.normal, i);
  const double length = Length(given_normal);
  if (!IsUnit(length)) {
    check_.Refuse("body_contacts.normal", 3 * i, ReasonAgainstLength(length));
    return Eigen::Matrix3d::Identity();
  }
  const Eigen::Vector3d normal = given_normal / length;
  if (c.tangent.empty()) return ContactFrame(normal);
  const Eigen::Vector3d tangent = VectorAt(c.tangent, i);
  const double tangent_length = Length(tangent);
  const double along_normal = tangent.dot(normal);
  if (!IsUnit(tangent_length)) {
    check_.Refuse("body_contacts.tangent", 3 * i, ReasonAgainstLength(tangent_length));
  } else if (std::abs(along_normal) > kUnitTolerance) {
    check_.Refuse("body_contacts.tangent", 3 * i,
                  "starts a vector whose product with the normal is " + ToText(along_normal) +
                      "; it must be 0 within 1e-6");
  }
  return ContactFrame(normal, tangent);
}

}  // namespace sap
