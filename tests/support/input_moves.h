// Problems that differ in one input: directions of the inputs by their wire names, such that the
// problem can be moved both ways along them, and the problem moved.
#pragma once

#include <string>
#include <vector>

#include "solver/problem/input_differential.h"
#include "tests/support/random_problem.h"

namespace sap::test {

// Names of all inputs, "time_step" and "contacts.friction" say.
std::vector<std::string> InputNames();

// A random direction of one input, defaults that are numbers included: of the size of each number,
// or of size 1 where numbers have either sign. 0 where the input is infinite, at a bound of what
// it may be, or tied to another. Empty if the input has no derivative.
std::vector<double> DrawMove(Random* random, const ProblemArrays& arrays, const std::string& name);

// Zeros in place of all inputs, scalars too.
InputDifferential NoDirection();

// The place of an input in a direction; a scalar is an array of one.
void SetDirection(const std::string& name, const std::vector<double>& values,
                  InputDifferential* direction);

// The problem with step * direction added to one input.
ProblemArrays Moved(ProblemArrays arrays, const std::string& name,
                    const std::vector<double>& direction, double step);

}  // namespace sap::test
