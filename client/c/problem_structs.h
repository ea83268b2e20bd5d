// A problem in structs of the C interface that point to arrays of their own.
#pragma once

#include <vector>

#include "client/c/sap_islands.h"
#include "solver/problem/input_selection.h"
#include "solver/problem/problem_fields.h"

namespace sap::c {

// All of its numbers.
inline constexpr GivenRegularization kAllGiven = {
#define SAP_NUMBER(name, input) .name = true,
#include "solver/problem/problem_fields.inc"
};

inline sap_doubles ArrayOf(const std::vector<double>& values) {
  return {values.data(), static_cast<int64_t>(values.size())};
}

inline sap_int32s ArrayOf(const std::vector<int32_t>& values) {
  return {values.data(), static_cast<int64_t>(values.size())};
}

inline sap_uint32s ArrayOf(const std::vector<uint32_t>& values) {
  return {values.data(), static_cast<int64_t>(values.size())};
}

// The structs point into the object, which stays where it is.
class ProblemStructs {
 public:
  ProblemStructs() = default;
  ProblemStructs(const ProblemStructs&) = delete;
  ProblemStructs& operator=(const ProblemStructs&) = delete;

  OwnedContactProblem arrays;

  // Points the structs at the arrays, and those of the regularization at its numbers; NULL stands
  // for those that were not given.
  void Point(const GivenRegularization& given);

  // After Point.
  const sap_problem* get() const { return &problem_; }
  sap_regularization* regularization() { return &regularization_; }

 private:
  sap_trees trees_{};
  sap_bodies bodies_{};
  sap_hunt_crossley contact_hunt_crossley_{}, body_contact_hunt_crossley_{};
  sap_contact_laws contact_laws_{}, body_contact_laws_{};
  sap_contacts contacts_{};
  sap_body_contacts body_contacts_{};
  sap_rows rows_{};
  sap_regularization regularization_{};
  sap_problem problem_{};
};

}  // namespace sap::c
