// How a model is filled with the constraints of one island: Jacobians, w, parameters of laws. It
// names no kind: what a law is made of is in its header.
#include <algorithm>
#include <array>
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

// Contact i of a pool, and its group.
struct ContactPlace {
  const ContactGroup* group;
  int i;
};

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

  // Jacobians and laws of 1 to `together` contacts of a pool. False if a constant left the range of
  // doubles.
  template <int together, int index>
  bool GatherContacts(PoolIndex<index> pool, std::span<const ContactPlace> contacts) {
    using Laws = typename PoolAt<index>::Laws;
    const ContactLayout& layout = LayoutOf(graph_, pool);
    std::array<typename Laws::Inputs, together> inputs;
    std::array<ContactColumns, together> columns;  // without parts where w is not estimated
    // A constant where it is one, so that inputs of a single contact stay in registers.
    const size_t count = together == 1 ? 1 : contacts.size();
    for (size_t k = 0; k < count; ++k) {
      const auto [group, i] = contacts[k];
      const int contact = layout.order()[i];
      CopyJacobian(pool, *group, i);
      inputs[k] = InputsOf<typename Laws::Inputs>(problem_, contact, mass_unit_);
      columns[k] = {};
      if (!inputs[k].NeedsDelassus()) continue;
      inputs[k].w = problem_.given_w()[contact] * mass_unit_;
      if (inputs[k].w != 0) continue;
      columns[k].parts = layout.parts_of(*group);
      columns[k].J = model_.pools[pool].jacobians.of(*group, i);
      delassus_.AddTrees(Laws::kRows, &columns[k]);
    }
    if constexpr (together > 1) {
      delassus_.template AddComponents<together>(std::span(columns).first(count), Laws::kRows);
    }
    bool representable = true;
    for (size_t k = 0; k < count; ++k) {
      const int contact = layout.order()[contacts[k].i];
      if (!columns[k].parts.empty()) {
        inputs[k].w = delassus_.OfContact<Laws::kRows>(contact, columns[k], inputs[k]);
      }
      model_.w[contact] = inputs[k].w;
      representable &= SetLaw(pool, contacts[k].i, inputs[k]);
    }
    return representable;
  }

  // Jacobian and law of a row of a pool.
  template <int index>
  bool GatherRow(PoolIndex<index> pool, int row) {
    auto& [laws, jacobians] = model_.pools[pool];
    const RowLayout& layout = LayoutOf(graph_, pool);
    const int number = layout.order()[row];
    jacobians.SetRow(layout, row,
                     problem_.row_coefficients().data() + problem_.row_start()[number]);
    auto inputs = InputsOf<RowInputs>(problem_, number, mass_unit_);
    if (inputs.NeedsDelassus()) inputs.w = delassus_.OfRow(layout, jacobians, row);
    return SetLaw(pool, row, inputs);
  }

 private:
  template <int index>
  void CopyJacobian(PoolIndex<index> pool, const ContactGroup& group, int i) {
    constexpr int kRows = PoolAt<index>::Laws::kRows;
    const ContactLayout& layout = LayoutOf(graph_, pool);
    auto& jacobians = model_.pools[pool].jacobians;
    const int contact = layout.order()[i];
    const double* linear = problem_.jacobian().data() + problem_.jacobian_start()[contact];
    const double* angular = AngularJacobian<kRows>(contact);
    for (int p = group.part_begin; p < group.part_end; ++p) {
      const ContactPart& part = layout.parts()[p];
      const int from = 3 * layout.source_column(group, i, p);
      CopyBlock<kRows>(linear + from, kRows > 3 ? angular + from : nullptr, part.dofs,
                       jacobians.of(group, i, part));
      jacobians.FindColumns(group, i, part);
    }
  }

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

// Gathers the contacts of units [begin, end) of a pool, `together` of them at once. False if a
// constant left the range of doubles.
template <int together, int index>
bool GatherContactsOf(ConstraintGatherer gatherer, const ConstraintGraph& graph,
                      PoolIndex<index> pool, int begin, int end, const StopToken& stop) {
  bool representable = true;
  std::array<ContactPlace, together> contacts;
  size_t count = 0;
  const auto gather = [&] {
    representable &= gatherer.GatherContacts<together>(pool, std::span(contacts).first(count));
    count = 0;
  };
  for (int unit = begin; unit < end; ++unit) {
    const ContactGroup& group = LayoutOf(graph, pool).groups()[unit];
    for (int i = group.contact_begin; i < group.contact_end; ++i) {
      if (stop.Cancelled()) return true;
      contacts[count++] = {&group, i};
      if (count == together) gather();
    }
  }
  if (count > 0) gather();
  return representable;
}

// Gathers units [begin, end) of a pool. False if a constant left the range of doubles.
template <int index>
bool GatherUnits(ConstraintGatherer gatherer, const ConstraintGraph& graph, PoolIndex<index> pool,
                 bool coupled, int begin, int end, const StopToken& stop) {
  if constexpr (IsRow(pool)) {
    bool representable = true;
    for (int row = begin; row < end; ++row) {
      if (stop.Cancelled()) return true;
      representable &= gatherer.GatherRow(pool, row);
    }
    return representable;
  } else if (coupled) {
    return GatherContactsOf<kContactsTogether>(gatherer, graph, pool, begin, end, stop);
  } else {
    return GatherContactsOf<1>(gatherer, graph, pool, begin, end, stop);
  }
}

}  // namespace

bool SapModel::GatherConstraints(const ContactProblem& problem, const ConstraintGraph& graph,
                                 int island, const StopToken& stop, TaskArena* arena) {
  const ConstraintGatherer gatherer(problem, graph, island, this);
  const IslandRange& island_range = graph.island_ranges()[island];
  const bool coupled = island_range.coupled;
  std::atomic<bool> representable{true};
  ForEachPool([&](auto pool) {
    if (!island_range.has(pool.kind())) return;
    const PoolRange range = RangeOf(LayoutOf(graph, pool).island(island));
    ForChunks(arena, range.unit_begin, range.unit_end, kGatherUnits, [&](int begin, int end, int) {
      if (stop.Cancelled()) return;
      if (!GatherUnits(gatherer, graph, pool, coupled, begin, end, stop)) {
        representable.store(false, std::memory_order_relaxed);
      }
    });
  });
  return representable.load(std::memory_order_relaxed);
}

}  // namespace sap
