#include "solver/problem/input_checker.h"

#include <charconv>
#include <cmath>

namespace sap {

namespace {

bool InRange(double value, Range range) {
  if (!std::isfinite(value)) return false;
  return range == Range::kFinite || (range == Range::kPositive ? value > 0 : value >= 0);
}

std::string_view RuleOf(Range range) {
  if (range == Range::kFinite) return "finite";
  return range == Range::kPositive ? "finite and > 0" : "finite and >= 0";
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

void InputChecker::RefuseValue(const FieldName& field, int64_t index, double value, Range range) {
  Refuse(field, index, "is " + ToText(value) + "; it must be " + std::string(RuleOf(range)));
}

void InputChecker::Value(const FieldName& field, double value, Range range) {
  if (ok() && !InRange(value, range)) RefuseValue(field, -1, value, range);
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
  for (size_t i = 0; i < values.size(); ++i) {
    if (!InRange(values[i], range)) return RefuseValue(field, i, values[i], range);
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

}  // namespace sap
