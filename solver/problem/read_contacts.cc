#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "solver/problem/problem_reader.h"
#include "solver/problem/rigid_bodies.h"

namespace sap {

namespace {

constexpr double kUnitTolerance = 1e-6;
constexpr Chunks kReadContacts{64, 2500};

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
  const int64_t n = CountContacts(c);
  const bool in_parts = !c.parts.empty();
  const Needed why{n,
                   in_parts ? "contacts (see contacts.parts)" : "contacts (see contacts.tree_a)"};
  const LawMessage m = MessageOf("contacts.", c.law, why);
  p_.jacobian_start_.assign(1, 0);
  if (in_parts) {
    ReadParts(why);
  } else {
    ReadPairsOfTrees(why);
  }
  if (!check_.ok()) return;
  check_.Array("contacts.jacobian", c.jacobian, p_.jacobian_start_.back(), Range::kFinite,
               {n, in_parts ? "contacts (see contacts.parts, contacts.part_tree)"
                            : "contacts (see contacts.tree_a, contacts.tree_b)"});
  CheckCompliance(m);
  CheckFriction(m);
  AppendAngular(m);
  check_.Array("contacts.angular_jacobian", c.angular_jacobian, p_.angular_start_.back(),
               Range::kFinite, {p_.num_angular(), kAngularContacts});
  CheckTargets(m);
  if (!check_.ok()) return;
  AppendLaw(m);
  p_.jacobian_.resize(std::max(p_.jacobian_.size(), c.jacobian.size()));
  std::ranges::copy(c.jacobian, p_.jacobian_.begin());
  p_.angular_jacobian_.assign(c.angular_jacobian.begin(), c.angular_jacobian.end());
}

// Contacts of one tree or two.
void ContactProblemReader::ReadPairsOfTrees(const Needed& why) {
  const ContactProblemView::Contacts& c = view_.contacts;
  const int trees = num_trees_ + num_bodies_;
  check_.Length("contacts.part_tree", c.part_tree.size(), 0, {0, "parts (see contacts.parts)"});
  check_.Length("contacts.tree_b", c.tree_b.size(), why.count, why);
  check_.Indices("contacts.tree_a", c.tree_a, 0, trees);
  check_.Indices("contacts.tree_b", c.tree_b, -1, trees);
  check_.Distinct("contacts.tree_b", c.tree_a, c.tree_b, "contacts.tree_a");
  if (!check_.ok()) return;
  AppendPairs(c.tree_a, c.tree_b, 0);
}

// Contacts of any number of trees.
void ContactProblemReader::ReadParts(const Needed& why) {
  const ContactProblemView::Contacts& c = view_.contacts;
  if (check_.ok() && !(c.tree_a.empty() && c.tree_b.empty())) {
    return check_.Refuse(
        "contacts.parts", -1,
        "has " + std::to_string(why.count) +
            " values; it must be empty where contacts.tree_a or contacts.tree_b is "
            "given");
  }
  CheckParts();
  if (!check_.ok()) return;
  p_.contact_trees_.assign(c.part_tree.begin(), c.part_tree.end());
  for (const uint32_t parts : c.parts) {
    p_.contact_start_.push_back(p_.contact_start_.back() + parts);
  }
  SizeJacobians(0);
}

void ContactProblemReader::CheckParts() {
  const ContactProblemView::Contacts& c = view_.contacts;
  const bool by_load = p_.regularization_.rule == DelassusRule::kLoadPath;
  int64_t parts = 0;
  for (size_t i = 0; i < c.parts.size() && check_.ok(); ++i) {
    parts += c.parts[i];
    if (c.parts[i] >= 1 && (c.parts[i] <= 2 || !by_load)) continue;
    check_.Refuse(
        "contacts.parts", static_cast<int64_t>(i),
        "is " + std::to_string(c.parts[i]) +
            (c.parts[i] < 1 ? "; it must be >= 1"
                            : "; it must be at most 2 where regularization.rule is LOAD_PATH"));
  }
  check_.Length("contacts.part_tree", c.part_tree.size(), parts,
                {static_cast<int64_t>(c.parts.size()), "contacts (see contacts.parts)"});
  check_.Indices("contacts.part_tree", c.part_tree, 0, num_trees_ + num_bodies_);
  last_contact_.assign(num_trees_ + num_bodies_, -1);
  int64_t pairs = 0;
  int64_t at = 0;
  for (size_t i = 0; i < c.parts.size() && check_.ok(); ++i) {
    pairs += static_cast<int64_t>(c.parts[i]) * (c.parts[i] - 1) / 2;
    for (const int64_t end = at + c.parts[i]; at < end && check_.ok(); ++at) {
      int64_t& last = last_contact_[c.part_tree[at]];
      if (last == static_cast<int64_t>(i)) {
        check_.Refuse("contacts.part_tree", at,
                      "is " + std::to_string(c.part_tree[at]) + " a second time in contact " +
                          std::to_string(i) + "; the trees of a contact must differ");
      }
      last = static_cast<int64_t>(i);
    }
  }
  if (!check_.ok() || pairs <= limits_.max_row_pairs) return;
  check_.Refuse("contacts.parts", -1,
                "makes " + std::to_string(pairs) + " pairs of trees; the limit is " +
                    std::to_string(limits_.max_row_pairs));
}

// Appends contacts of the trees first_tree + a[i] and first_tree + b[i]; of the first alone where
// b[i] < 0.
void ContactProblemReader::AppendPairs(std::span<const int32_t> a, std::span<const int32_t> b,
                                       int first_tree) {
  const int first_contact = p_.num_contacts();
  const size_t first_part = p_.contact_trees_.size();
  p_.contact_trees_.resize(first_part + 2 * a.size());
  p_.contact_start_.resize(p_.contact_start_.size() + a.size());
  int* trees = p_.contact_trees_.data();
  int64_t* ends = p_.contact_start_.data() + first_contact + 1;
  size_t part = first_part;
  for (size_t i = 0; i < a.size(); ++i) {
    trees[part] = first_tree + a[i];
    trees[part + 1] = first_tree + b[i];
    part += b[i] < 0 ? 1 : 2;
    ends[i] = static_cast<int64_t>(part);
  }
  p_.contact_trees_.resize(part);
  SizeJacobians(first_contact);
}

// Where the Jacobians of the contacts from this one on begin and end.
void ContactProblemReader::SizeJacobians(int first_contact) {
  const int contacts = p_.num_contacts();
  p_.jacobian_start_.resize(contacts + 1);
  const int* tree = p_.contact_trees_.data() + p_.contact_start_[first_contact];
  int64_t start = p_.jacobian_start_[first_contact];
  int most_trees = p_.most_trees_of_contact_;
  for (int i = first_contact; i < contacts; ++i) {
    const int* end = p_.contact_trees_.data() + p_.contact_start_[i + 1];
    most_trees = std::max(most_trees, static_cast<int>(end - tree));
    for (; tree != end; ++tree) start += 3 * p_.dofs_[*tree];
    p_.jacobian_start_[i + 1] = start;
  }
  p_.most_trees_of_contact_ = most_trees;
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
  AppendPairs(c.body_a, c.body_b, num_trees_);
  CheckCompliance(m);
  CheckFriction(m);
  AppendAngular(m);
  CheckTargets(m);
  check_.Optional("body_contacts.tangent", c.tangent, 3 * n, Range::kFinite, why);
  if (!check_.ok()) return;
  AppendLaw(m);
  p_.jacobian_.resize(p_.jacobian_start_.back());
  p_.angular_jacobian_.resize(p_.angular_start_.back());
  ForAll(static_cast<int>(n), kReadContacts,
         [&](int i, InputChecker* check) { ReadBodyContact(i, m.first_contact + i, check); });
}

// Builds frame and Jacobians of body contact i, contact number `contact` of the problem, and brings
// its velocities into this frame.
void ContactProblemReader::ReadBodyContact(int64_t i, int contact, InputChecker* check) {
  const ContactProblemView::BodyContacts& c = view_.body_contacts;
  const Eigen::Matrix3d R = ReadFrame(i, check);
  if (!check->ok()) return;
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
Eigen::Matrix3d ContactProblemReader::ReadFrame(int64_t i, InputChecker* check) const {
  const ContactProblemView::BodyContacts& c = view_.body_contacts;
  const Eigen::Vector3d given_normal = VectorAt(c.normal, i);
  const double length = Length(given_normal);
  if (!IsUnit(length)) {
    check->Refuse("body_contacts.normal", 3 * i, ReasonAgainstLength(length));
    return Eigen::Matrix3d::Identity();
  }
  const Eigen::Vector3d normal = given_normal / length;
  if (c.tangent.empty()) return ContactFrame(normal);
  const Eigen::Vector3d tangent = VectorAt(c.tangent, i);
  const double tangent_length = Length(tangent);
  const double along_normal = tangent.dot(normal);
  if (!IsUnit(tangent_length)) {
    check->Refuse("body_contacts.tangent", 3 * i, ReasonAgainstLength(tangent_length));
  } else if (std::abs(along_normal) > kUnitTolerance) {
    check->Refuse("body_contacts.tangent", 3 * i,
                  "starts a vector whose product with the normal is " + ToText(along_normal) +
                      "; it must be 0 within 1e-6");
  }
  return ContactFrame(normal, tangent);
}

}  // namespace sap
