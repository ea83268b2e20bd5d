// The inputs of a problem: its arrays of doubles by their wire names, and which of them have a
// derivative.
//
// An array has one where the problem gives it, or where it is absent and stands for a number:
// surface_velocity 0, say. It has none where it is absent and a rule takes its place: friction_2,
// tangent, R, w, v_hat, and the stiffness and bounds of rows, which are then infinite. Guesses have
// none. Entries that the problem has but does not read (stiffness where regularization_n is given,
// a material of Hunt & Crossley under another law) have the derivative 0, as have infinite entries
// and, in arrays of rows where 0 stands for a rule, entries of 0.
#pragma once

#include <type_traits>

#include "solver/problem/contact_problem.h"
#include "solver/problem/input_checker.h"

namespace sap {

// A number in place of each array.
template <typename Value>
using Count = int64_t;
using InputSizes = ContactProblemArrays<Count>;

// How many numbers the derivative with respect to each array has; 0 where there is none. The
// problem has been read. Its scalars are not set.
InputSizes SizesOfInputs(const ContactProblemView& problem);

// visit(name, arrays.array...) for each array that is an input; `arrays` are any instances of
// ContactProblemArrays.
template <typename Visit, typename... Arrays>
void ForEachInput(const Visit& visit, Arrays&... arrays) {
  ForEachArray(
      [&visit]<typename Value>(std::string_view group, const ProblemField<Value>& field,
                               auto&... values) {
        if constexpr (std::is_same_v<Value, double>) {
          if (field.input) visit(FieldName(group, field.name), values...);
        }
      },
      arrays...);
}

// visit(name, numbers...) for each input that is a single number, of any instances of
// ContactProblemArrays.
template <typename Visit, typename... Arrays>
void ForEachNumberInput(const Visit& visit, Arrays&... arrays) {
  visit("time_step", arrays.time_step...);
  Regularization::ForEach(
      [&visit](const char* name, bool is_input, auto&... numbers) {
        if (is_input) visit(FieldName("regularization.", name), numbers...);
      },
      arrays.regularization...);
}

}  // namespace sap
