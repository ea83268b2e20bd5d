// Checks of the arrays of a problem, which remember the first refusal.
//
// Once something has been refused, every further check returns at once. A reader thus runs straight
// through its checks, and asks ok() before it uses what has been checked. Names and reasons are put
// together only when something is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "solver/problem/contact_problem.h"

namespace sap {

// The wire name of a field: "time_step", or group and array as in "contacts." and "friction".
struct FieldName {
  FieldName(const char* whole) : group(whole) {}
  FieldName(std::string_view group_name, std::string_view array) : group(group_name), name(array) {}
  std::string Text() const { return std::string(group) + std::string(name); }

  std::string_view group;
  std::string_view name;
};

// Origin of a length, as in "100 contacts (see contacts.tree_a)".
struct Needed {
  int64_t count;
  std::string_view noun;
};

// Range of a value. NaN is in no range.
enum class Range {
  kFinite,
  kNonNegative,            // and finite
  kPositive,               // and finite
  kPositiveOrInfinite,     // a stiffness
  kFiniteOrMinusInfinity,  // a lower bound
  kFiniteOrInfinity,       // an upper bound
};

std::string ToText(double value);

class InputChecker {
 public:
  bool ok() const { return !refusal_.has_value(); }
  const ProblemError& refusal() const { return *refusal_; }

  // Requires ok(). The reason follows the name of the field: "is 3; it must be ...".
  void Refuse(const FieldName& field, int64_t index, std::string reason);

  void Value(const FieldName& field, double value, Range range) {
    ValueAt(field, -1, value, range);
  }
  void ValueAt(const FieldName& field, int64_t index, double value, Range range);
  void Length(const FieldName& field, size_t length, int64_t needed, const Needed& why);
  void Values(const FieldName& field, std::span<const double> values, Range range);
  // An array of the needed length whose values are all in range.
  void Array(const FieldName& field, std::span<const double> values, int64_t needed, Range range,
             const Needed& why);
  // The same, or empty.
  void Optional(const FieldName& field, std::span<const double> values, int64_t needed, Range range,
                const Needed& why);
  // Numbers of trees or bodies, in [lowest, count).
  void Indices(const FieldName& field, std::span<const int32_t> values, int lowest, int count);
  // b[i] differs from a[i], which is in the field called `other`.
  void Distinct(const FieldName& field, std::span<const int32_t> a, std::span<const int32_t> b,
                std::string_view other);

 private:
  std::optional<ProblemError> refusal_;
};

// Checks a reference time step that a problem gives. 0 stands for an absent one in Regularization,
// so that whoever reads a problem in which it may be absent calls this for one that is present.
tl::expected<void, ProblemError> CheckReferenceTimeStep(double reference_time_step);

}  // namespace sap
