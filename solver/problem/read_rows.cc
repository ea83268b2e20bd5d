#include <algorithm>
#include <limits>

#include "solver/problem/problem_reader.h"

namespace sap {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

void ContactProblemReader::ReadRows() {
  const int64_t n = static_cast<int64_t>(view_.rows.entries.size());
  const Needed why{n, "rows (see rows.entries)"};
  ReadRowEntries();
  CheckRowArrays(why);
  if (!check_.ok()) return;
  p_.row_coefficients_.assign(view_.rows.coefficient.begin(), view_.rows.coefficient.end());
  p_.guess_row_impulse_.assign(view_.rows.guess_impulse.begin(), view_.rows.guess_impulse.end());
  for (int64_t i = 0; i < n && check_.ok(); ++i) ReadRow(i);
}

// Where rows start, and tree and dof of every entry.
void ContactProblemReader::ReadRowEntries() {
  if (!check_.ok()) return;
  const ContactProblemView::Rows& r = view_.rows;
  const int64_t n = static_cast<int64_t>(r.entries.size());
  p_.row_start_.resize(n + 1);
  for (int64_t i = 0; i < n; ++i) {
    if (r.entries[i] < 1) return check_.Refuse("rows.entries", i, "is 0; it must be >= 1");
    p_.row_start_[i + 1] = p_.row_start_[i] + r.entries[i];
  }
  check_.Length("rows.velocity_index", r.velocity_index.size(), p_.row_start_.back(),
                {n, "rows (see rows.entries)"});
  if (!check_.ok()) return;
  p_.row_entries_.resize(r.velocity_index.size());
  int64_t pairs = 0;
  for (int64_t i = 0; i < n && check_.ok(); ++i) pairs += ReadEntriesOfRow(i);
  if (!check_.ok() || pairs <= limits_.max_row_pairs) return;
  check_.Refuse("rows.velocity_index", -1,
                "makes " + std::to_string(pairs) + " pairs of trees; the limit is " +
                    std::to_string(limits_.max_row_pairs));
}

// The pairs of trees that the row joins.
int64_t ContactProblemReader::ReadEntriesOfRow(int64_t row) {
  const uint32_t* const index = view_.rows.velocity_index.data();
  const uint32_t num_velocities = static_cast<uint32_t>(p_.num_velocities());
  const std::span<const int> start = p_.velocity_start_;
  RowEntry* const entries = p_.row_entries_.data();
  uint32_t lowest = 0;
  int tree = -1;
  int first = 0;  // velocities of the tree
  int end = 0;
  int64_t trees = 0;
  for (int64_t e = p_.row_start_[row]; e < p_.row_start_[row + 1]; ++e) {
    if (index[e] >= num_velocities || index[e] < lowest) {
      RefuseRowEntry(e);
      return 0;
    }
    lowest = index[e] + 1;
    const int velocity = static_cast<int>(index[e]);
    if (velocity >= end) {
      const auto next = std::upper_bound(start.begin() + tree + 1, start.end(), velocity);
      tree = static_cast<int>(next - start.begin()) - 1;
      first = start[tree];
      end = start[tree + 1];
      ++trees;
    }
    entries[e] = {tree, velocity - first};
  }
  return trees * (trees - 1) / 2;
}

// An entry that is out of range, or not above the one before it in its row.
void ContactProblemReader::RefuseRowEntry(int64_t entry) {
  const std::span<const uint32_t> index = view_.rows.velocity_index;
  const int num_velocities = p_.num_velocities();
  std::string reason = "is " + std::to_string(index[entry]);
  if (index[entry] >= static_cast<uint32_t>(num_velocities)) {
    reason += "; it must be in [0, " + std::to_string(num_velocities) + ")";
  } else {
    reason += " after " + std::to_string(index[entry - 1]) + "; it must ascend within a row";
  }
  check_.Refuse("rows.velocity_index", entry, std::move(reason));
}

void ContactProblemReader::CheckRowArrays(const Needed& why) {
  const ContactProblemView::Rows& r = view_.rows;
  const int64_t n = why.count;
  const auto optional = [&](const char* field, std::span<const double> values, Range range) {
    check_.Optional(field, values, n, range, why);
  };
  check_.Array("rows.coefficient", r.coefficient, p_.row_start_.back(), Range::kFinite, why);
  if (r.target_velocity.empty()) {
    optional("rows.position_error", r.position_error, Range::kFinite);
  }
  optional("rows.velocity_offset", r.velocity_offset, Range::kFinite);
  optional("rows.stiffness", r.stiffness, Range::kPositiveOrInfinite);
  optional("rows.relaxation_time", r.relaxation_time, Range::kNonNegative);
  optional("rows.force_lower", r.force_lower, Range::kFiniteOrMinusInfinity);
  optional("rows.force_upper", r.force_upper, Range::kFiniteOrInfinity);
  CheckRowBounds();
  optional("rows.regularization", r.regularization, Range::kNonNegative);
  optional("rows.target_velocity", r.target_velocity, Range::kFinite);
  optional("rows.delassus_estimate", r.delassus_estimate, Range::kNonNegative);
  optional("rows.slip_parameter", r.slip_parameter, Range::kNonNegative);
  optional("rows.force_offset", r.force_offset, Range::kFinite);
  optional("rows.guess_impulse", r.guess_impulse, Range::kFinite);
}

void ContactProblemReader::CheckRowBounds() {
  const ContactProblemView::Rows& r = view_.rows;
  if (!check_.ok() || r.force_lower.empty() || r.force_upper.empty()) return;
  for (size_t i = 0; i < r.force_upper.size(); ++i) {
    if (r.force_upper[i] >= r.force_lower[i]) continue;
    return check_.Refuse("rows.force_upper", static_cast<int64_t>(i),
                         "is " + ToText(r.force_upper[i]) +
                             "; it must be >= rows.force_lower, which is " +
                             ToText(r.force_lower[i]));
  }
}

void ContactProblemReader::ReadRow(int64_t row) {
  const ContactProblemView::Rows& r = view_.rows;
  const double tau = ValueOr(r.relaxation_time, row, 0);
  const double v_hat = r.target_velocity.empty()
                           ? -ValueOr(r.position_error, row, 0) / (p_.time_step_ + tau)
                           : r.target_velocity[row];
  p_.rows_.push_back({.v_hat = v_hat,
                      .offset = ValueOr(r.velocity_offset, row, 0),
                      .stiffness = ValueOr(r.stiffness, row, kInfinity),
                      .relaxation_time = tau,
                      .force_lower = ValueOr(r.force_lower, row, -kInfinity),
                      .force_upper = ValueOr(r.force_upper, row, kInfinity),
                      .force_offset = ValueOr(r.force_offset, row, 0),
                      .given_R = ValueOr(r.regularization, row, 0),
                      .given_w = ValueOr(r.delassus_estimate, row, 0),
                      .slip_parameter = ValueOr(r.slip_parameter, row, 0)});
  const RowParameters& read = p_.rows_.back();
  const bool bounded = read.force_lower > -kInfinity || read.force_upper < kInfinity;
  p_.row_kind_.push_back(bounded ? ConstraintKind::kBoundedRow : ConstraintKind::kBilateralRow);
  CheckRowRegularization(row);
}

// Refuses a row with R = 0 by rule. Whether R > 0 is within the range of doubles is up to the
// solver.
void ContactProblemReader::CheckRowRegularization(int64_t row) {
  const RowParameters& r = p_.rows_[row];
  if (r.given_R > 0) return;
  if (r.slip_parameter == 0) {
    if (r.stiffness < kInfinity) return;
    if (p_.regularization_.row_beta == 0) {
      return check_.Refuse("rows.stiffness", row,
                           "is inf, as where it is absent; it must be finite where "
                           "regularization.row_beta is 0");
    }
  }
  if (r.given_w > 0) return;
  const auto begin = view_.rows.coefficient.begin();
  const int64_t first = p_.row_start_[row];
  if (std::any_of(begin + first, begin + p_.row_start_[row + 1], [](double J) { return J != 0; })) {
    return;
  }
  check_.Refuse("rows.coefficient", first,
                "starts a row of zeros (rows[" + std::to_string(row) +
                    "]); one of them must differ from 0 where R follows from w");
}

}  // namespace sap
