// How a model is filled with the constraints of one island: Jacobians, w, parameters of laws. It
// names no kind: what a law is made of is in its header.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "solver/model/constraint_inputs.h"
#include "solver/model/delassus.h"
#include "solver/model/sap_model.h"
#include "solver/pools/jacobian_kernels.h"
#include "solver/pools/loop_costs.h"

namespace sap {

namespace {

// Copies the block of one tree out of the Jacobian of a contact and, where it has one, the rows
// `first_angular` and on of its angular Jacobian.
template <int num_rows>
void CopyBlock(const double* linear, const double* angular, int dofs, double* to) {
  ForSize(dofs, [&](auto n) { std::memcpy(to, linear, 3 * n * sizeof(double)); });
  if constexpr (num_rows > 3) {
    constexpr int kAngular = num_rows - 3;
    std::copy_n(angular + (3 - kAngular) * dofs, kAngular * dofs, to + 3 * dofs);
  }
}

// Gathers the constraints of one island into a model.
class ConstraintGatherer {
 public:
  ConstraintGatherer(const ContactProblem& problem, const ConstraintGraph& graph, int island,
                     SapModel* model)
      : problem_(problem),
        graph_(graph),
        model_(*model),
        mass_unit_(model->constants(island).mass_unit),
        delassus_{problem, graph, *model, mass_unit_} {}

  // Jacobian and law of contact i of a pool. False if a constant left the range of doubles.
  template <int index>
  bool GatherContact(PoolIndex<index> pool, const ContactGroup& group, int i) {
    constexpr int kRows = PoolAt<index>::Laws::kRows;
    const ContactLayout& layout = LayoutOf(graph_, pool);
    const int contact = layout.order()[i];
    auto& jacobians = model_.pools[pool].jacobians;
    const double* linear = problem_.jacobian().data() + problem_.jacobian_start()[contact];
    const double* angular = AngularJacobian<kRows>(contact);
    for (int p = group.part_begin; p < group.part_end; ++p) {
      const ContactPart& part = layout.parts()[p];
      const int from = 3 * layout.source_column(group, i, p);
      CopyBlock<kRows>(linear + from, kRows > 3 ? angular + from : nullptr, part.dofs,
                       jacobians.of(group, i, part));
    }
    auto inputs = InputsOf<typename PoolAt<index>::Laws::Inputs>(problem_, contact, mass_unit_);
    if (inputs.NeedsDelassus()) {
      inputs.w =
          delassus_.OfContact(contact, layout.parts_of(group), jacobians.of(group, i), kRows);
    }
    model_.w[contact] = inputs.w;
    return SetLaw(pool, i, inputs);
  }

  // Jacobian and law of a row of a pool.
  template <int index>
  bool GatherRow(PoolIndex<index> pool, int row) {
    auto& [laws, jacobians] = model_.pools[pool];
    const RowLayout& layout = LayoutOf(graph_, pool);
    const std::span<const RowPart> parts = layout.parts_of_row(row);
    const int number = layout.order()[row];
    const int64_t from = problem_.row_start()[number];
    for (int64_t e = parts.front().entry_begin; e < parts.back().entry_end; ++e) {
      jacobians.at(e) = problem_.row_coefficients()[from + e - parts.front().entry_begin];
    }
    auto inputs = InputsOf<RowInputs>(problem_, number, mass_unit_);
    if (inputs.NeedsDelassus()) inputs.w = delassus_.OfRow(layout, jacobians, row);
    return SetLaw(pool, row, inputs);
  }

 private:
  template <int num_rows>
  const double* AngularJacobian(int contact) const {
    if constexpr (num_rows == 3) return nullptr;
    return problem_.angular_jacobian().data() +
           problem_.angular_start()[problem_.angular_contact(contact)];
  }

  // False if a constant left the range of doubles.
  template <int index>
  bool SetLaw(PoolIndex<index> pool, int i, const typename PoolAt<index>::Laws::Inputs& inputs) {
    auto& laws = model_.pools[pool].laws;
    const auto parameters = laws.Make(inputs, inputs, NoPartials());
    laws.Set(i, parameters);
    return parameters.IsRepresentable();
  }

  const ContactProblem& problem_;
  const ConstraintGraph& graph_;
  SapModel& model_;
  const double mass_unit_;
  const DelassusEstimate delassus_;
};

// Gathers units [begin, end) of a pool. False if a constant left the range of doubles.
template <int index>
bool GatherUnits(ConstraintGatherer gatherer, const ConstraintGraph& graph, PoolIndex<index> pool,
                 int begin, int end, const StopToken& stop) {
  bool representable = true;
  for (int unit = begin; unit < end; ++unit) {
    if (stop.Cancelled()) return true;
    if constexpr (IsRow(pool)) {
      representable &= gatherer.GatherRow(pool, unit);
    } else {
      const ContactGroup& group = LayoutOf(graph, pool).groups()[unit];
      for (int i = group.contact_begin; i < group.contact_end; ++i) {
        if (stop.Cancelled()) return true;
        representable &= gatherer.GatherContact(pool, group, i);
      }
    }
  }
  return representable;
}

}  // namespace

bool SapModel::GatherConstraints(const ContactProblem& problem, const ConstraintGraph& graph,
                                 int island, const StopToken& stop, TaskArena* arena) {
  const ConstraintGatherer gatherer(problem, graph, island, this);
  std::atomic<bool> representable{true};
  ForEachPool([&](auto pool) {
    const PoolRange range = RangeOf(LayoutOf(graph, pool).island(island));
    ForChunks(arena, range.unit_begin, range.unit_end, kGatherPairs, [&](int begin, int end, int) {
      if (stop.Cancelled()) return;
      if (!GatherUnits(gatherer, graph, pool, begin, end, stop)) {
        representable.store(false, std::memory_order_relaxed);
      }
    });
  });
  return representable.load(std::memory_order_relaxed);
}

}  // namespace sap
