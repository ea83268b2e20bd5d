// The problem of a state, in memory that is kept for the next one.
#pragma once

#include <cstdint>
#include <vector>

#include "client/mujoco/mujoco_calls.h"
#include "client/mujoco/problem_writer.h"
#include "solver/problem/contact_solution.h"
#include "solver/problem/problem_fields.h"

namespace sap::mujoco {

class ProblemBuffers {
 public:
  // Writes the problem of a state whose smooth forces are computed, under the law of SAP or
  // MuJoCo's. J v_0 is MuJoCo's product.
  EngineStatus Build(const MujocoCalls& calls, const void* model, const void* data,
                     const Fields& fields, bool as_sap);

  // Writes the problem of MuJoCo's constraint solver, in v - v_0; needs no J v_0.
  void BuildChange(const Fields& fields, const Trees& trees, bool is_sparse);

  double* guess() { return doubles_.data() + layout_.guess; }                // [nv]
  const double* v_star() const { return doubles_.data() + layout_.v_star; }  // [nv]

  // Valid until the next problem is built.
  ContactProblemView View(const Fields& fields);

  // Writes the forces of a solution to the state of which the problem is.
  void Store(const Fields& fields, const ContactSolution& solution);

 private:
  // Determines the layout of the problem, and makes room for it.
  //   flags   as for sap_mujoco_measure
  void Measure(const Fields& fields, const Trees& trees, int32_t flags);
  // Writes the problem that was measured; `sigma` as for sap_mujoco_build.
  void Write(const Fields& fields, const Trees& trees, double sigma);
  void ViewContacts(ContactProblemView::Contacts* contacts);
  bool is_sap() const { return (flags_ & SAP_MUJOCO_LAW_SAP) != 0; }

  int32_t flags_ = 0;
  KeptCouplings couplings_;
  bool has_slip_ = false;
  sap_mujoco_layout layout_ = {};
  std::vector<double> doubles_;
  std::vector<uint32_t> unsigned_;
  std::vector<int32_t> integers_;
  std::vector<double> zeros_;
};

}  // namespace sap::mujoco
