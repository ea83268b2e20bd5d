// Messages as structs of the C interface, and back: the same fields by the same names.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "client/c/sap_islands.h"
#include "sap/v1/gradient.pb.h"
#include "sap/v1/problem.pb.h"
#include "sap/v1/solution.pb.h"
#include "sap/v1/solver_service.pb.h"

namespace sap::test {

// A problem in structs that point into the message, which must outlive it.
class CProblem {
 public:
  explicit CProblem(const v1::ContactProblem& message);
  // The structs of the library.
  explicit CProblem(const sap_problem& problem);
  CProblem(const CProblem&) = delete;
  CProblem& operator=(const CProblem&) = delete;

  const sap_problem* get() const { return &problem; }

  // All doubles that are set, as a message.
  v1::ContactProblem Doubles();

  sap_trees trees{};
  sap_bodies bodies{};
  sap_hunt_crossley hunt_crossley{}, body_hunt_crossley{};
  sap_contact_laws laws{}, body_laws{};
  sap_contacts contacts{};
  sap_body_contacts body_contacts{};
  sap_rows rows{};
  sap_regularization regularization{};
  sap_problem problem{};

 private:
  // visit(path, array) for each array of doubles.
  template <typename Visit>
  void ForEachDoubles(const Visit& visit);

  std::list<std::vector<double>> doubles_;
  double numbers_[6];
};

// The options that a message has; the others are absent. The message must outlive it.
class COptions {
 public:
  explicit COptions(const v1::SolveOptions& message);
  COptions(const COptions&) = delete;
  COptions& operator=(const COptions&) = delete;

  const sap_options* get() const { return &options_; }

 private:
  double relative_tolerance_, absolute_speed_tolerance_, time_budget_s_, coulomb_tolerance_,
      horizon_;
  uint32_t max_iterations_, max_rounds_;
  std::vector<const char*> response_mask_;
  sap_coulomb_friction coulomb_{};
  sap_rest rest_{};
  sap_options options_{};
};

// A request; the message must outlive it.
class CDifferentiation {
 public:
  explicit CDifferentiation(const v1::DifferentiateRequest& message);

  const sap_differentiation* get() const { return &request_; }

 private:
  CProblem problem_;
  COptions options_;
  std::vector<std::unique_ptr<CProblem>> tangents_;
  std::vector<sap_cotangent> cotangents_;
  std::vector<const sap_cotangent*> cotangent_list_;
  std::vector<const sap_problem*> tangent_list_;
  std::vector<const char*> wanted_;
  sap_differentiation request_{};
};

// Without times.
v1::ContactSolution MessageOf(const sap_solution& solution);
// Without the solution.
v1::DifferentiateResponse MessageOf(const sap_derivatives& derivatives);

}  // namespace sap::test
