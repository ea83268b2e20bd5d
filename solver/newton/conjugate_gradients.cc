#include "solver/newton/conjugate_gradients.h"

namespace sap {

void ConjugateVectors::Resize(const ConstraintGraph& graph) {
  for (std::vector<double>* array : {&residual, &preconditioned, &direction, &product}) {
    array->resize(graph.velocity_start().back());
  }
  slot_sums.resize(graph.num_slots());
}

double Dot(const IslandView& view, const std::vector<double>& a, const std::vector<double>& b,
           std::vector<double>* slot_sums) {
  const IslandRange& range = view.range();
  const std::span<const int> start = view.graph.velocity_start();
  ForChunks(view.arena, range.slot_begin, range.slot_end, kDotSlots,
            [&](int begin, int end, int chunk) {
              double sum = 0;
              for (int i = start[begin]; i < start[end]; ++i) sum += a[i] * b[i];
              (*slot_sums)[range.slot_begin + chunk] = sum;
            });
  double sum = 0;
  for (const double part :
       kDotSlots.Parts(*slot_sums, range.slot_begin, range.slot_begin, range.slot_end)) {
    sum += part;
  }
  return sum;
}

double ScaledNorm2(const IslandView& view, const std::vector<double>& r) {
  double sum = 0;
  for (int i = view.range().velocity_begin; i < view.range().velocity_end; ++i) {
    const double scaled = view.model.D()[i] * r[i];
    sum += scaled * scaled;
  }
  return sum;
}

}  // namespace sap
