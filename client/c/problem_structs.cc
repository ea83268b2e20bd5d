#include "client/c/problem_structs.h"

namespace sap::c {
namespace {

// A struct of one group, with the arrays of the group.
template <typename Struct, typename Group>
Struct StructOf(const Group& group) {
  Struct result{};
  result.struct_size = sizeof result;
  Group::ForEach([](const auto&, auto& array, const auto& values) { array = ArrayOf(values); },
                 result, group);
  return result;
}

sap_contact_laws LawsOf(const OwnedContactProblem::Law& law, sap_hunt_crossley* hunt_crossley) {
  *hunt_crossley = StructOf<sap_hunt_crossley>(law.hunt_crossley);
  auto laws = StructOf<sap_contact_laws>(law);
  laws.hunt_crossley = hunt_crossley;
  return laws;
}

int32_t NumberOf(DelassusRule rule) {
  switch (rule) {
    case DelassusRule::kFull:
      return SAP_REGULARIZATION_RULE_FULL;
    case DelassusRule::kDiagonal:
      return SAP_REGULARIZATION_RULE_DIAGONAL;
    case DelassusRule::kLoadPath:
      return SAP_REGULARIZATION_RULE_LOAD_PATH;
  }
  return 0;
}

}  // namespace

void ProblemStructs::Point(const GivenRegularization& given) {
  trees_ = StructOf<sap_trees>(arrays.trees);
  bodies_ = StructOf<sap_bodies>(arrays.bodies);
  contacts_ = StructOf<sap_contacts>(arrays.contacts);
  contact_laws_ = LawsOf(arrays.contacts.law, &contact_hunt_crossley_);
  contacts_.laws = &contact_laws_;
  body_contacts_ = StructOf<sap_body_contacts>(arrays.body_contacts);
  body_contact_laws_ = LawsOf(arrays.body_contacts.law, &body_contact_hunt_crossley_);
  body_contacts_.laws = &body_contact_laws_;
  rows_ = StructOf<sap_rows>(arrays.rows);
  regularization_ = {};
  regularization_.struct_size = sizeof regularization_;
  regularization_.rule = NumberOf(arrays.regularization.rule);
  Regularization::ForEach([](const char*, bool, const double*& pointer, const double& number,
                             bool is_given) { pointer = is_given ? &number : nullptr; },
                          regularization_, arrays.regularization, given);
  problem_ = {.struct_size = sizeof problem_,
              .time_step = arrays.time_step,
              .trees = &trees_,
              .bodies = &bodies_,
              .contacts = &contacts_,
              .body_contacts = &body_contacts_,
              .rows = &rows_,
              .regularization = &regularization_};
}

}  // namespace sap::c
