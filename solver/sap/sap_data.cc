#include "solver/sap/sap_data.h"

#include <cmath>

#include "solver/sap/jacobian_kernels.h"

namespace sap {

void SapData::Resize(const ContactGraph& graph) {
  const size_t velocities = graph.velocity_start().back();
  for (std::vector<double>* array : {&v, &momentum_change, &gradient}) array->resize(velocities);
  const size_t contacts = graph.num_contacts();
  v_c.resize(contacts);
  gamma.resize(contacts);
  G.resize(contacts);
  s.resize(contacts);
}

void SapStep::Resize(const ContactGraph& graph) {
  v.resize(graph.velocity_start().back());
  momentum.resize(graph.velocity_start().back());
  v_c.resize(graph.num_contacts());
}

void SapScratch::Resize(const ContactGraph& graph) {
  difference.resize(graph.velocity_start().back());
  momentum.resize(graph.velocity_start().back());
  slot_sums.resize(graph.num_slots());
  slot_norms.resize(graph.num_slots());
  slot_slopes.resize(graph.num_slots());
  contact_costs.resize(graph.num_contacts());
  contact_slopes.resize(graph.num_contacts());
  impulse_errors.resize(graph.num_contacts());
}

namespace {

// v_c := J u for the contacts of pairs [begin, end).
void PairVelocities(const IslandView& view, int begin, int end, const std::vector<double>& u,
                    ContactVectors* v_c) {
  const ContactGraph& graph = view.graph;
  for (int p = begin; p < end; ++p) {
    const ContactPair& pair = graph.pairs()[p];
    const double* u_low = u.data() + graph.velocity_start()[pair.low];
    const double* u_high = pair.high < 0 ? nullptr : u.data() + graph.velocity_start()[pair.high];
    ForSize(pair.dofs_low, [&](auto n_low) {
      for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
        ContactVector<double> sum{0, 0, 0};
        AddJv(view.model.J(pair, i, false), n_low, u_low, &sum);
        if (u_high != nullptr) {
          ForSize(pair.dofs_high,
                  [&](auto n_high) { AddJv(view.model.J(pair, i, true), n_high, u_high, &sum); });
        }
        v_c->Set(i, sum);
      }
    });
  }
}

}  // namespace

void ContactVelocities(const IslandView& view, const std::vector<double>& u, const StopToken& stop,
                       ContactVectors* v_c) {
  const IslandRange& range = view.range();
  ForChunks(view.arena, range.pair_begin, range.pair_end, kEvaluatePairs,
            [&](int begin, int end, int) {
              if (!stop.Requested()) PairVelocities(view, begin, end, u, v_c);
            });
}

namespace {

// f := J' gamma of one slot, summed over its pairs in their fixed order.
void GeneralizedImpulse(const IslandView& view, int slot, const ContactVectors& gamma, double* f) {
  const ContactGraph& graph = view.graph;
  ForSize(graph.dofs()[slot], [&](auto n) {
    for (int i = 0; i < n; ++i) f[i] = 0;
    for (const PairSide& side : graph.sides_of(slot)) {
      const ContactPair& pair = graph.pairs()[side.pair];
      for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
        AddJtGamma(view.model.J(pair, i, side.is_high), n, gamma.At(i, double{}), f);
      }
    }
  });
}

// Momentum and gradient of one slot, from impulses; adds to the sums.
template <typename Size>
void EvaluateSlot(const IslandView& view, int slot, Size n, SapData* data, SapScratch* scratch,
                  PartialSums* sums) {
  const ContactGraph& graph = view.graph;
  const int start = graph.velocity_start()[slot];
  const double* v = data->v.data() + start;
  const double* v_star = view.model.v_star().data() + start;
  const double* D = view.model.D().data() + start;
  const double* A = view.model.A(graph, slot);
  double* gradient = data->gradient.data() + start;
  double* change = data->momentum_change.data() + start;
  double* difference = scratch->difference.data() + start;
  double* momentum = scratch->momentum.data() + start;
  GeneralizedImpulse(view, slot, data->gamma, gradient);
  for (int i = 0; i < n; ++i) difference[i] = v[i] - v_star[i];
  MultiplySymmetric(A, n, v, momentum);
  MultiplySymmetric(A, n, difference, change);
  for (int i = 0; i < n; ++i) {
    const double impulse = gradient[i];
    gradient[i] = change[i] - impulse;
    sums->gradient2 += D[i] * gradient[i] * (D[i] * gradient[i]);
    sums->momentum2 += D[i] * momentum[i] * (D[i] * momentum[i]);
    sums->impulse2 += D[i] * impulse * (D[i] * impulse);
    sums->cost += 0.5 * difference[i] * change[i];
  }
}

}  // namespace

IslandNorms Evaluate(const IslandView& view, SapData* data, SapScratch* scratch,
                     const StopToken& stop) {
  const ContactGraph& graph = view.graph;
  const IslandRange& range = view.range();
  ForChunks(view.arena, range.pair_begin, range.pair_end, kEvaluatePairs,
            [&](int begin, int end, int chunk) {
              if (stop.Cancelled()) return;
              PairVelocities(view, begin, end, data->v, &data->v_c);
              scratch->contact_costs[range.contact_begin + chunk] = view.model.contacts().Impulses(
                  graph.pairs()[begin].contact_begin, graph.pairs()[end - 1].contact_end, data->v_c,
                  &data->gamma);
            });
  ForChunks(view.arena, range.slot_begin, range.slot_end, kEvaluateSlots,
            [&](int begin, int end, int chunk) {
              if (stop.Cancelled()) return;
              PartialSums sums;
              for (int slot = begin; slot < end; ++slot) {
                ForSize(graph.dofs()[slot],
                        [&](auto n) { EvaluateSlot(view, slot, n, data, scratch, &sums); });
              }
              scratch->slot_sums[range.slot_begin + chunk] = sums;
            });
  PartialSums sums;
  ForChunks(nullptr, range.pair_begin, range.pair_end, kEvaluatePairs, [&](int, int, int chunk) {
    sums.cost += scratch->contact_costs[range.contact_begin + chunk];
  });
  ForChunks(nullptr, range.slot_begin, range.slot_end, kEvaluateSlots, [&](int, int, int chunk) {
    const PartialSums& part = scratch->slot_sums[range.slot_begin + chunk];
    sums.gradient2 += part.gradient2;
    sums.momentum2 += part.momentum2;
    sums.impulse2 += part.impulse2;
    sums.cost += part.cost;
  });
  IslandNorms norms;
  norms.gradient = std::sqrt(sums.gradient2);
  norms.momentum = std::sqrt(sums.momentum2);
  norms.impulse = std::sqrt(sums.impulse2);
  norms.cost = sums.cost;
  norms.finite = std::isfinite(norms.gradient) && std::isfinite(norms.momentum) &&
                 std::isfinite(norms.impulse) && std::isfinite(norms.cost);
  return norms;
}

}  // namespace sap
