#include "solver/newton/conjugate_gradients.h"

namespace sap {

void ConjugateVectors::Resize(const ConstraintGraph& graph) {
  for (std::vector<double>* array : {&residual, &preconditioned, &direction, &product}) {
    array->resize(graph.velocity_start().back());
  }
  slot_sums.resize(graph.num_slots());
}

namespace {

// sum_i term(i) over the velocities of the island, by chunks of slots.
template <typename Term>
double SumOverVelocities(const IslandView& view, std::vector<double>* slot_sums, Term&& term) {
  const IslandRange& range = view.range();
  const std::span<const int> start = view.graph.velocity_start();
  ForChunks(view.arena, range.slot_begin, range.slot_end, kDotSlots,
            [&](int begin, int end, int chunk) {
              double sum = 0;
              for (int i = start[begin]; i < start[end]; ++i) sum += term(i);
              (*slot_sums)[range.slot_begin + chunk] = sum;
            });
  double sum = 0;
  for (const double part :
       kDotSlots.Parts(*slot_sums, range.slot_begin, range.slot_begin, range.slot_end)) {
    sum += part;
  }
  return sum;
}

}  // namespace

double Dot(const IslandView& view, const std::vector<double>& a, const std::vector<double>& b,
           std::vector<double>* slot_sums) {
  return SumOverVelocities(view, slot_sums, [&](int i) { return a[i] * b[i]; });
}

double ScaledNorm2(const IslandView& view, const std::vector<double>& r,
                   std::vector<double>* slot_sums) {
  const std::span<const double> D = view.model.D();
  return SumOverVelocities(view, slot_sums, [&](int i) { return D[i] * r[i] * (D[i] * r[i]); });
}

}  // namespace sap
