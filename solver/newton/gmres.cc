#include "solver/newton/gmres.h"

namespace sap {

void KrylovVectors::Resize(const ConstraintGraph& graph) {
  const size_t velocities = graph.velocity_start().back();
  for (std::vector<double>& q : basis) q.resize(velocities);
  scaled.resize(velocities);
  preconditioned.resize(velocities);
  slot_sums.resize(graph.num_slots());
}

void HessenbergLeastSquares::AddColumn() {
  auto& column = columns_[size_];
  for (int i = 0; i < size_; ++i) {
    const double upper = column[i];
    column[i] = cosines_[i] * upper + sines_[i] * column[i + 1];
    column[i + 1] = -sines_[i] * upper + cosines_[i] * column[i + 1];
  }
  const double length = std::hypot(column[size_], column[size_ + 1]);
  cosines_[size_] = length > 0 ? column[size_] / length : 1;
  sines_[size_] = length > 0 ? column[size_ + 1] / length : 0;
  column[size_] = length;
  right_side_[size_ + 1] = -sines_[size_] * right_side_[size_];
  right_side_[size_] *= cosines_[size_];
  ++size_;
}

std::array<double, kMaxGmresProducts> HessenbergLeastSquares::Solution() const {
  std::array<double, kMaxGmresProducts> y{};
  for (int i = size_ - 1; i >= 0; --i) {
    double sum = right_side_[i];
    for (int k = i + 1; k < size_; ++k) sum -= columns_[k][i] * y[k];
    y[i] = sum / columns_[i][i];
  }
  return y;
}

}  // namespace sap
