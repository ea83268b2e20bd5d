#include "solver/sap/line_search.h"

#include "solver/sap/jacobian_kernels.h"

namespace sap {

namespace {

constexpr Chunks kMomentumChunks{kSlotsPerChunk, 600};

// Slope and curvature of the quadratic part: first + alpha second. Fills momentum_step.
LineSlope MomentumAlongStep(const IslandView& view, SapData* data) {
  const ContactGraph& graph = view.graph;
  const IslandRange& range = view.range();
  ForChunks(view.arena, range.slot_begin, range.slot_end, kMomentumChunks,
            [&](int begin, int end, int chunk) {
              LineSlope sum;
              for (int slot = begin; slot < end; ++slot) {
                const int start = graph.velocity_start()[slot];
                const double* step = data->step.data() + start;
                const double* change = data->momentum_change.data() + start;
                double* momentum = data->momentum_step.data() + start;
                ForSize(graph.dofs()[slot], [&](auto n) {
                  MultiplySymmetric(view.model.A(graph, slot), n, step, momentum);
                  for (int i = 0; i < n; ++i) {
                    sum.first += step[i] * change[i];
                    sum.second += step[i] * momentum[i];
                  }
                });
              }
              data->slot_slopes[range.slot_begin + chunk] = sum;
            });
  LineSlope slope;
  ForChunks(nullptr, range.slot_begin, range.slot_end, kMomentumChunks, [&](int, int, int chunk) {
    slope.first += data->slot_slopes[range.slot_begin + chunk].first;
    slope.second += data->slot_slopes[range.slot_begin + chunk].second;
  });
  return slope;
}

// Slope and curvature of the contacts at alpha.
LineSlope ContactsAlongStep(const IslandView& view, double alpha, SapData* data) {
  const IslandRange& range = view.range();
  const auto slope_of = [&](int begin, int end) {
    return view.model.contacts().AlongLine(begin, end, data->v_c, data->v_c_step, alpha);
  };
  if (range.num_contacts() <= kContactsPerChunk) {
    return slope_of(range.contact_begin, range.contact_end);
  }
  ForChunks(view.arena, range.contact_begin, range.contact_end, kConeChunks,
            [&](int begin, int end, int chunk) {
              data->contact_slopes[range.contact_begin + chunk] = slope_of(begin, end);
            });
  LineSlope slope;
  ForChunks(nullptr, range.contact_begin, range.contact_end, kConeChunks, [&](int, int, int chunk) {
    slope.first += data->contact_slopes[range.contact_begin + chunk].first;
    slope.second += data->contact_slopes[range.contact_begin + chunk].second;
  });
  return slope;
}

// The slope at 0, and what rounding errors may make of it.
struct StartingSlope {
  double f{0};
  double roundoff{0};
};

StartingSlope SlopeAtZero(const IslandView& view, const SapData& data) {
  StartingSlope slope;
  double sizes = 0;
  for (int i = view.range().velocity_begin; i < view.range().velocity_end; ++i) {
    const double impulse = data.momentum_change[i] - data.gradient[i];
    slope.f += data.gradient[i] * data.step[i];
    sizes += std::abs(data.step[i]) * (std::abs(data.momentum_change[i]) + std::abs(impulse));
  }
  slope.roundoff = RoundoffOf(sizes);
  return slope;
}

}  // namespace

LineSearchResult SearchAlongStep(const IslandView& view, double tolerance, const StopToken& stop,
                                 SapData* data) {
  const LineSlope momentum = MomentumAlongStep(view, data);
  ContactVelocities(view, data->step, stop, &data->v_c_step);
  const StartingSlope start = SlopeAtZero(view, *data);
  if (!(start.f < 0)) return {0.0, false};

  const auto slope_at = [&](double alpha) {
    if (stop.Requested()) return LineSlope();  // as at the root: the search ends
    LineSlope slope = ContactsAlongStep(view, alpha, data);
    slope.first += momentum.first + alpha * momentum.second;
    slope.second += momentum.second;
    return slope;
  };
  return {RootOfSlope(start.f, tolerance, slope_at, start.roundoff), true};
}

}  // namespace sap
