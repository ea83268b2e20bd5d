#include "solver/line_search.h"

#include "solver/jacobian_kernels.h"

namespace sap {

namespace {

// Slope and curvature of the quadratic part: first + alpha second.
LineSlope MomentumAlongStep(const IslandView& view, SapData* data) {
  const ContactGraph& graph = view.graph;
  const IslandRange& range = view.range();
  LineSlope slope;
  for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
    const int start = graph.velocity_start()[slot];
    const double* step = data->step.data() + start;
    const double* change = data->momentum_change.data() + start;
    double* momentum = data->momentum_step.data() + start;
    ForSize(graph.dofs()[slot], [&](auto n) {
      MultiplySymmetric(view.model.A(graph, slot), n, step, momentum);
      for (int i = 0; i < n; ++i) {
        slope.first += step[i] * change[i];
        slope.second += step[i] * momentum[i];
      }
    });
  }
  return slope;
}

double SlopeAtZero(const IslandView& view, const SapData& data) {
  double slope = 0;
  for (int i = view.range().velocity_begin; i < view.range().velocity_end; ++i) {
    slope += data.gradient[i] * data.step[i];
  }
  return slope;
}

}  // namespace

LineSearchResult SearchAlongStep(const IslandView& view, double tolerance, SapData* data) {
  const IslandRange& range = view.range();
  const LineSlope momentum = MomentumAlongStep(view, data);
  ContactVelocities(view, data->step, &data->v_c_step);
  const double f_zero = SlopeAtZero(view, *data);
  if (!(f_zero < 0)) return {0.0, false};

  const double alpha = RootOfSlope(f_zero, tolerance, [&](double at) {
    LineSlope slope = view.model.contacts().AlongLine(range.contact_begin, range.contact_end,
                                                      data->v_c, data->v_c_step, at);
    slope.first += momentum.first + at * momentum.second;
    slope.second += momentum.second;
    return slope;
  });
  return {alpha, true};
}

}  // namespace sap
