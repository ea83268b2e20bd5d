#include <Eigen/Core>
#include <cmath>
#include <limits>

#include "solver/problem/problem_reader.h"
#include "solver/problem/rigid_bodies.h"

namespace sap {

namespace {

void AppendOr(std::span<const double> values, int64_t n, double otherwise,
              std::vector<double>* to) {
  if (values.empty()) {
    to->insert(to->end(), n, otherwise);
  } else {
    to->insert(to->end(), values.begin(), values.end());
  }
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
  p_.jacobian_start_.assign(1, 0);
  for (int64_t i = 0; i < n; ++i) AppendContact(c.tree_a[i], c.tree_b[i]);
  check_.Array("contacts.jacobian", c.jacobian, p_.jacobian_start_.back(), Range::kFinite,
               {n, "contacts (see contacts.tree_a, contacts.tree_b)"});
  ReadLaw("contacts.", c.law, why);
  if (!check_.ok()) return;
  p_.jacobian_.assign(c.jacobian.begin(), c.jacobian.end());
  AppendOr(c.law.surface_velocity, 3 * n, 0.0, &p_.surface_velocity_);
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
  ReadLaw("body_contacts.", c.law, why);
  if (!check_.ok()) return;
  const int first = static_cast<int>(p_.tree_a_.size());
  for (int64_t i = 0; i < n; ++i) {
    AppendContact(num_trees_ + c.body_a[i], c.body_b[i] < 0 ? -1 : num_trees_ + c.body_b[i]);
  }
  p_.jacobian_.resize(p_.jacobian_start_.back());
  p_.surface_velocity_.resize(p_.surface_velocity_.size() + 3 * n, 0.0);
  for (int64_t i = 0; i < n && check_.ok(); ++i) ReadBodyContact(i, first + static_cast<int>(i));
}

// Builds frame and Jacobian of body contact i, contact number `contact` of the problem.
void ContactProblemReader::ReadBodyContact(int64_t i, int contact) {
  const ContactProblemView::BodyContacts& c = view_.body_contacts;
  const Eigen::Map<const Eigen::Vector3d> point(c.point.data() + 3 * i);
  const Eigen::Map<const Eigen::Vector3d> given_normal(c.normal.data() + 3 * i);
  // Eigen sums up in an order that depends on the address; this does not, and never overflows.
  const double length = std::hypot(given_normal.x(), given_normal.y(), given_normal.z());
  if (!(std::abs(length - 1) <= 1e-6)) {
    return check_.Refuse(
        "body_contacts.normal", 3 * i,
        "starts a vector of length " + ToText(length) + "; it must be 1 within 1e-6");
  }
  const Eigen::Matrix3d R = ContactFrame(given_normal / length);
  double* J = p_.jacobian_.data() + p_.jacobian_start_[contact];
  const auto center = [&](int body) {
    return Eigen::Map<const Eigen::Vector3d>(view_.bodies.center_of_mass.data() + 3 * body);
  };
  WriteBodyJacobian(R, point - center(c.body_a[i]), 1.0, J);
  if (c.body_b[i] >= 0) WriteBodyJacobian(R, point - center(c.body_b[i]), -1.0, J + 18);
  if (!c.law.surface_velocity.empty()) {
    const Eigen::Map<const Eigen::Vector3d> b_W(c.law.surface_velocity.data() + 3 * i);
    Eigen::Map<Eigen::Vector3d>(p_.surface_velocity_.data() + 3 * contact) = R.transpose() * b_W;
  }
}

// All but the surface velocity, which is checked only.
void ContactProblemReader::ReadLaw(std::string_view group, const ContactProblemView::Law& law,
                                   const Needed& why) {
  const int64_t n = why.count;
  const bool reads_stiffness = law.regularization_n.empty();
  const auto name = [&](const char* array) { return FieldName(group, array); };
  check_.Array(name("signed_distance"), law.signed_distance, n, Range::kFinite, why);
  if (reads_stiffness) {
    check_.Array(name("stiffness"), law.stiffness, n, Range::kPositive, why);
  }
  check_.Array(name("relaxation_time"), law.relaxation_time, n, Range::kNonNegative, why);
  check_.Array(name("friction"), law.friction, n, Range::kNonNegative, why);
  check_.Optional(name("regularization_t"), law.regularization_t, n, Range::kPositive, why);
  check_.Optional(name("regularization_n"), law.regularization_n, n, Range::kPositive, why);
  check_.Optional(name("delassus_estimate"), law.delassus_estimate, n, Range::kPositive, why);
  check_.Optional(name("surface_velocity"), law.surface_velocity, 3 * n, Range::kFinite, why);
  if (!check_.ok()) return;
  const double infinity = std::numeric_limits<double>::infinity();
  AppendOr(law.signed_distance, n, 0.0, &p_.phi0_);
  AppendOr(reads_stiffness ? law.stiffness : std::span<const double>(), n, infinity,
           &p_.stiffness_);
  AppendOr(law.relaxation_time, n, 0.0, &p_.tau_d_);
  AppendOr(law.friction, n, 0.0, &p_.mu_);
  AppendOr(law.regularization_t, n, 0.0, &p_.given_R_t_);
  AppendOr(law.regularization_n, n, 0.0, &p_.given_R_n_);
  AppendOr(law.delassus_estimate, n, 0.0, &p_.given_w_);
}

void ContactProblemReader::AppendContact(int tree_a, int tree_b) {
  p_.tree_a_.push_back(tree_a);
  p_.tree_b_.push_back(tree_b);
  const int dofs = p_.dofs_[tree_a] + (tree_b < 0 ? 0 : p_.dofs_[tree_b]);
  p_.jacobian_start_.push_back(p_.jacobian_start_.back() + 3 * static_cast<int64_t>(dofs));
}

}  // namespace sap
