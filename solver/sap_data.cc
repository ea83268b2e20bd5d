#include "solver/sap_data.h"

#include <cmath>

#include "solver/jacobian_kernels.h"

namespace sap {

void SapData::Resize(const ContactGraph& graph) {
  const size_t velocities = graph.velocity_start().back();
  for (std::vector<double>* array :
       {&v, &v_before, &momentum_change, &gradient, &step, &momentum_step}) {
    array->resize(velocities);
  }
  const size_t contacts = graph.num_contacts();
  for (ContactVectors* vectors : {&v_c, &gamma, &v_c_step}) vectors->resize(contacts);
  G.resize(contacts);
  w.resize(contacts);
}

void ContactVelocities(const IslandView& view, const std::vector<double>& u, ContactVectors* v_c) {
  const ContactGraph& graph = view.graph;
  for (int p = view.range().pair_begin; p < view.range().pair_end; ++p) {
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

namespace {

// f := J' gamma of one slot, summed over its pairs in their fixed order.
void GeneralizedImpulse(const IslandView& view, int slot, const ContactVectors& gamma, double* f) {
  const ContactGraph& graph = view.graph;
  ForSize(graph.dofs()[slot], [&](auto n) {
    for (int i = 0; i < n; ++i) f[i] = 0;
    for (int s = graph.side_start()[slot]; s < graph.side_start()[slot + 1]; ++s) {
      const PairSide side = graph.sides()[s];
      const ContactPair& pair = graph.pairs()[side.pair];
      for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
        AddJtGamma(view.model.J(pair, i, side.is_high), n, gamma.At(i, double{}), f);
      }
    }
  });
}

}  // namespace

IslandNorms Evaluate(const IslandView& view, SapData* data) {
  const ContactGraph& graph = view.graph;
  const IslandRange& range = view.range();
  ContactVelocities(view, data->v, &data->v_c);
  IslandNorms norms;
  norms.cost = view.model.contacts().Impulses(range.contact_begin, range.contact_end, data->v_c,
                                              &data->gamma);
  double gradient2 = 0, momentum2 = 0, impulse2 = 0, kinetic = 0;
  for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
    const int start = graph.velocity_start()[slot];
    double* gradient = data->gradient.data() + start;
    double* change = data->momentum_change.data() + start;
    double* difference = data->step.data() + start;  // free until the next Newton step
    const double* v = data->v.data() + start;
    const double* v_star = view.model.v_star().data() + start;
    const double* D = view.model.D().data() + start;
    GeneralizedImpulse(view, slot, data->gamma, gradient);
    ForSize(graph.dofs()[slot], [&](auto n) {
      const double* A = view.model.A(graph, slot);
      double* momentum = data->momentum_step.data() + start;
      MultiplySymmetric(A, n, v, momentum);
      for (int i = 0; i < n; ++i) difference[i] = v[i] - v_star[i];
      MultiplySymmetric(A, n, difference, change);
      for (int i = 0; i < n; ++i) {
        const double j = gradient[i];
        gradient[i] = change[i] - j;
        gradient2 += D[i] * gradient[i] * (D[i] * gradient[i]);
        momentum2 += D[i] * momentum[i] * (D[i] * momentum[i]);
        impulse2 += D[i] * j * (D[i] * j);
        kinetic += difference[i] * change[i];
      }
    });
  }
  norms.gradient = std::sqrt(gradient2);
  norms.momentum = std::sqrt(momentum2);
  norms.impulse = std::sqrt(impulse2);
  norms.cost += 0.5 * kinetic;
  norms.finite = std::isfinite(norms.gradient) && std::isfinite(norms.momentum) &&
                 std::isfinite(norms.impulse) && std::isfinite(norms.cost);
  return norms;
}

}  // namespace sap
