#include "solver/problem/problem_reader.h"

namespace sap {

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

}  // namespace sap
