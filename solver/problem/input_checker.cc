#include "solver/problem/input_checker.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace sap {

namespace {

struct Bounds {
  double lowest;
  double highest;
  std::string_view rule;

  bool Hold(double value) const { return value >= lowest && value <= highest; }

  // Without a branch per value, so that compilers vectorize it.
  bool HoldAll(std::span<const double> values) const {
    int64_t outside = 0;
    for (const double value : values) outside += !((value >= lowest) & (value <= highest));
    return outside == 0;
  }
};

Bounds BoundsOf(Range range) {
  using Limits = std::numeric_limits<double>;
  switch (range) {
    case Range::kFinite:
      return {Limits::lowest(), Limits::max(), "finite"};
    case Range::kNonNegative:
      return {0, Limits::max(), "finite and >= 0"};
    case Range::kPositive:
      return {Limits::denorm_min(), Limits::max(), "finite and > 0"};
    case Range::kPositiveOrInfinite:
      return {Limits::denorm_min(), Limits::infinity(), "> 0"};
    case Range::kFiniteOrMinusInfinity:
      return {-Limits::infinity(), Limits::max(), "finite or -inf"};
    case Range::kFiniteOrInfinity:
      return {Limits::lowest(), Limits::infinity(), "finite or inf"};
  }
  return {};
}

std::string ReasonAgainst(double value, const Bounds& bounds) {
  return "is " + ToText(value) + "; it must be " + std::string(bounds.rule);
}

}  // namespace

std::string ToText(double value) {
  if (std::isnan(value)) return "NaN";
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  return std::string(text, end);
}

void InputChecker::Refuse(const FieldName& field, int64_t index, std::string reason) {
  refusal_ = ProblemError{field.Text(), index, std::move(reason)};
}

void InputChecker::ValueAt(const FieldName& field, int64_t index, double value, Range range) {
  if (!ok()) return;
  const Bounds bounds = BoundsOf(range);
  if (!bounds.Hold(value)) Refuse(field, index, ReasonAgainst(value, bounds));
}

void InputChecker::Length(const FieldName& field, size_t length, int64_t needed,
                          const Needed& why) {
  if (!ok() || static_cast<int64_t>(length) == needed) return;
  Refuse(field, -1,
         "has " + std::to_string(length) + " values; " + std::to_string(needed) +
             " are needed for " + std::to_string(why.count) + " " + std::string(why.noun));
}

void InputChecker::Values(const FieldName& field, std::span<const double> values, Range range) {
  if (!ok()) return;
  const Bounds bounds = BoundsOf(range);
  if (bounds.HoldAll(values)) return;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!bounds.Hold(values[i])) return Refuse(field, i, ReasonAgainst(values[i], bounds));
  }
}

void InputChecker::Array(const FieldName& field, std::span<const double> values, int64_t needed,
                         Range range, const Needed& why) {
  Length(field, values.size(), needed, why);
  Values(field, values, range);
}

void InputChecker::Optional(const FieldName& field, std::span<const double> values, int64_t needed,
                            Range range, const Needed& why) {
  if (!values.empty()) Array(field, values, needed, range, why);
}

void InputChecker::Indices(const FieldName& field, std::span<const int32_t> values, int lowest,
                           int count) {
  if (!ok()) return;
  int64_t outside = 0;  // without a branch per value, as in HoldAll
  for (const int32_t value : values) outside += !((value >= lowest) & (value < count));
  if (outside == 0) return;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= lowest && values[i] < count) continue;
    return Refuse(field, i,
                  "is " + std::to_string(values[i]) + "; it must be in [" + std::to_string(lowest) +
                      ", " + std::to_string(count) + ")");
  }
}

void InputChecker::Distinct(const FieldName& field, std::span<const int32_t> a,
                            std::span<const int32_t> b, std::string_view other) {
  if (!ok()) return;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) continue;
    return Refuse(field, i,
                  "is " + std::to_string(b[i]) + "; it must differ from " + std::string(other));
  }
}

tl::expected<void, ProblemError> CheckReferenceTimeStep(double reference_time_step) {
  InputChecker check;
  check.Value("regularization.reference_time_step", reference_time_step, Range::kPositive);
  if (!check.ok()) return tl::unexpected(check.refusal());
  return {};
}

}  // namespace sap
