// The problem of a state, in memory that is kept for the next one.
#pragma once

#include <cstdint>
#include <vector>

#include "client/mujoco/adapter.h"
#include "client/mujoco/fields.h"
#include "solver/problem/problem_fields.h"

namespace sap::mujoco {

class ProblemBuffers {
 public:
  // Determines the layout of the problem, and makes room for it.
  //   flags   as for sap_mujoco_measure
  void Measure(const sap_mujoco_field* table, const void* model, const void* data, int32_t flags);

  // Where J v_0 goes [nefc] before Build, unless the flags have SAP_MUJOCO_CHANGE.
  double* velocities() { return doubles_.data() + layout_.velocities; }

  // Writes the problem that was measured; `sigma` as for sap_mujoco_build.
  void Build(const sap_mujoco_field* table, const void* model, const void* data, double sigma);

  // Valid until the next Measure.
  ContactProblemView View(const Fields& fields);

  const sap_mujoco_layout& layout() const { return layout_; }
  double* doubles() { return doubles_.data(); }
  int32_t* integers() { return integers_.data(); }

 private:
  void ViewContacts(ContactProblemView::Contacts* contacts);
  bool is_sap() const { return (flags_ & SAP_MUJOCO_LAW_SAP) != 0; }

  int32_t flags_ = 0;
  bool has_slip_ = false;
  sap_mujoco_layout layout_ = {};
  std::vector<double> doubles_;
  std::vector<uint32_t> unsigned_;
  std::vector<int32_t> integers_;
  std::vector<double> zeros_;
};

}  // namespace sap::mujoco
