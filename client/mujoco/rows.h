// Where the rows of a problem are written to.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace sap::mujoco {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The numbers of a row except for its coefficients, with the names of the schema.
struct RowLaw {
  double regularization = 0.0;   // R; 0: by the slip parameter
  double target_velocity = 0.0;  // v_hat
  double force_lower = -kInfinity;
  double force_upper = kInfinity;
  double force_offset = 0.0;  // u
  double slip_parameter = 0.0;
};

class RowWriter {
 public:
  // Arrays of the lengths in sap_mujoco_layout.
  RowWriter(double* laws, int64_t capacity, double* coefficient, uint32_t* entries,
            uint32_t* column)
      : laws_(laws),
        capacity_(capacity),
        coefficient_(coefficient),
        entries_(entries),
        column_(column) {}

  int64_t rows() const { return rows_; }
  int64_t non_zeros() const { return non_zeros_; }
  std::span<const uint32_t> columns() const { return {column_, static_cast<size_t>(non_zeros_)}; }

  // Non-zeros of the row that the next Finish completes.
  void Add(int64_t dof, double value) {
    column_[non_zeros_] = static_cast<uint32_t>(dof);
    coefficient_[non_zeros_++] = value;
  }

  void Finish(const RowLaw& law) {
    entries_[rows_] = static_cast<uint32_t>(non_zeros_ - first_);
    const double values[] = {law.regularization, law.target_velocity, law.force_lower,
                             law.force_upper,    law.force_offset,    law.slip_parameter};
    for (size_t i = 0; i < std::size(values); ++i) {
      laws_[static_cast<int64_t>(i) * capacity_ + rows_] = values[i];
    }
    first_ = non_zeros_;
    ++rows_;
  }

 private:
  double* laws_;  // [6, capacity]
  int64_t capacity_;
  double* coefficient_;
  uint32_t* entries_;
  uint32_t* column_;
  int64_t rows_ = 0;
  int64_t non_zeros_ = 0;
  int64_t first_ = 0;  // non-zero of the row that is being written
};

}  // namespace sap::mujoco
