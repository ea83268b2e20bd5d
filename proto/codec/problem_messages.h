// Which field of a message holds which array of a problem, made from problem_fields.inc.
#pragma once

#include "sap/v1/problem.pb.h"
#include "solver/problem/problem_fields.h"

namespace sap {

// visit(field of the message, array) for each array of a ContactProblemArrays.
template <typename Visit, typename Problem>
void ForEachMessageArray(const Visit& visit, const v1::ContactProblem& message, Problem& problem) {
  const auto visit_laws = [&visit](const auto& contacts, auto& law) {
#define SAP_LAW(type, name, ...) visit(contacts.name(), law.name);
#define SAP_HUNT_CROSSLEY(type, name, ...) \
  visit(contacts.hunt_crossley().name(), law.hunt_crossley.name);
#include "solver/problem/problem_fields.inc"
  };
#define SAP_TREE(type, name, ...) visit(message.trees().name(), problem.trees.name);
#define SAP_BODY(type, name, ...) visit(message.bodies().name(), problem.bodies.name);
#define SAP_CONTACT(type, name, ...) visit(message.contacts().name(), problem.contacts.name);
#define SAP_BODY_CONTACT(type, name, ...) \
  visit(message.body_contacts().name(), problem.body_contacts.name);
#define SAP_ROW(type, name, ...) visit(message.rows().name(), problem.rows.name);
#include "solver/problem/problem_fields.inc"
  visit_laws(message.contacts(), problem.contacts.law);
  visit_laws(message.body_contacts(), problem.body_contacts.law);
}

// Visits the fields for writing. The message then has all of its groups, empty ones too.
template <typename Visit, typename Problem>
void ForEachMessageArray(const Visit& visit, v1::ContactProblem* message, Problem& problem) {
  const auto visit_laws = [&visit](auto* contacts, auto& law) {
#define SAP_LAW(type, name, ...) visit(contacts->mutable_##name(), law.name);
#define SAP_HUNT_CROSSLEY(type, name, ...) \
  visit(contacts->mutable_hunt_crossley()->mutable_##name(), law.hunt_crossley.name);
#include "solver/problem/problem_fields.inc"
  };
#define SAP_TREE(type, name, ...) \
  visit(message->mutable_trees()->mutable_##name(), problem.trees.name);
#define SAP_BODY(type, name, ...) \
  visit(message->mutable_bodies()->mutable_##name(), problem.bodies.name);
#define SAP_CONTACT(type, name, ...) \
  visit(message->mutable_contacts()->mutable_##name(), problem.contacts.name);
#define SAP_BODY_CONTACT(type, name, ...) \
  visit(message->mutable_body_contacts()->mutable_##name(), problem.body_contacts.name);
#define SAP_ROW(type, name, ...) \
  visit(message->mutable_rows()->mutable_##name(), problem.rows.name);
#include "solver/problem/problem_fields.inc"
  visit_laws(message->mutable_contacts(), problem.contacts.law);
  visit_laws(message->mutable_body_contacts(), problem.body_contacts.law);
}

// The number of contacts by Jacobian of a message (CountContacts in problem_fields.h).
inline int CountContacts(const v1::Contacts& contacts) {
  return contacts.parts().empty() ? contacts.tree_a_size() : contacts.parts_size();
}

}  // namespace sap
